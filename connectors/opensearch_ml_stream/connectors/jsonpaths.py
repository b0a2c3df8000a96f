"""JSONPath, compiled once: plain child paths such as `$.choices[0].delta.content` are walked without the library.

Both ways give the list of the values that the path selects, empty if there is none.
"""

import re
from collections.abc import Callable
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.jsonpath_environment import parse_path

Select = Callable[[Any], list[Any]]

_CHILD = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\['([^'\\]+)'\]|\[(0|[1-9][0-9]{0,8})\]")


def compile_path(path: str, field: str) -> Select:
    """InvalidRequest names `field` if `path` is no JSONPath (RFC 9535)."""
    if not path.startswith("$"):
        raise InvalidRequest(f"{field}: a JSONPath begins with $")
    steps = plain_steps(path)
    if steps is not None:
        return lambda value: _walk(steps, value)
    try:
        compiled = parse_path(path)
    except InvalidRequest as error:
        raise InvalidRequest(f"{field}: {error.reason}") from None
    # The library would read a text as JSON, and a number as nothing it knows.
    return lambda value: compiled.findall(value) if isinstance(value, dict | list) else []


def plain_steps(path: str) -> tuple[str | int, ...] | None:
    """The keys and indices of a plain child path, None for any other."""
    steps: list[str | int] = []
    position = 1
    while position < len(path):
        found = _CHILD.match(path, position)
        if found is None:
            return None
        steps.append(found[1] or found[2] or int(found[3]))
        position = found.end()
    return tuple(steps)


def _walk(steps: tuple[str | int, ...], value: Any) -> list[Any]:
    for step in steps:
        if isinstance(step, str):
            if not isinstance(value, dict) or step not in value:
                return []
        elif not isinstance(value, list) or step >= len(value):
            return []
        value = value[step]
    return [value]
