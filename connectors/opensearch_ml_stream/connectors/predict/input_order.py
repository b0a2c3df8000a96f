"""Match the embeddings of a provider's response to the inputs, by the index beside each, else by position."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from opensearch_ml_stream.connectors.errors import UpstreamError

_NAMES = ("index", "text_index")  # the second is DashScope's


def put_in_order(rows: list[Any], path: str) -> str | None:
    """Put the rows that were read at a path in the order of the inputs; return the name of their index, if any.

    UpstreamError if some rows have an index and others have none, or if they do not count from 0.
    """
    name = next((name for name in _NAMES if any(_get(row, name) is not None for row in rows)), None)
    if name is None:
        return None
    numbers = [_get(row, name) for row in rows]
    if numbers[0] is None:
        numbers[0] = 0  # Protocol Buffers leave out a zero in JSON: Gemini's first row
    _check(numbers, f"The provider's response numbers its {len(rows)} embeddings at [{path}] wrongly")
    rows[:] = [row for _, row in sorted(zip(numbers, rows, strict=True), key=itemgetter(0))]
    return name


def check_count(found: int, inputs: int | None, what: str, path: str) -> None:
    """Raise UpstreamError if a response does not have `what` for each of so many inputs; None is any number."""
    if inputs is not None and found != inputs:
        raise UpstreamError(
            f"The provider's response to {inputs} {'text' if inputs == 1 else 'texts'} has {found} "
            f"{what if found == 1 else f'{what}s'} at [{path}]"
        )


def _get(row: Any, name: str) -> Any:
    return row.get(name) if isinstance(row, dict) else None


def _check(numbers: Sequence[Any], what: str) -> None:
    for position, number in enumerate(numbers):
        if number is None:
            raise UpstreamError(f"{what}: element {position} has no index, though others have one")
        if isinstance(number, bool) or not isinstance(number, int | float) or number % 1:
            raise UpstreamError(f"{what}: the index of element {position} is not a whole number")
    found = set(numbers)
    if len(found) < len(numbers):
        raise UpstreamError(f"{what}: an index is there more than once")
    if missing := set(range(len(numbers))) - found:
        raise UpstreamError(f"{what}: none has the index {min(missing)}")
