"""Arguments of a function call that come value by value, as Vertex AI streams Gemini's.

A piece is `{"jsonPath": "$.a.b[0]", "stringValue": "..."}`, or with `numberValue`, `boolValue` or `nullValue`. A string
may come in several pieces of one path. https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling.
"""

from itertools import pairwise
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.jsonpath import compile_path

_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class PartialArguments:
    """The arguments of one call; `value` is what has come so far."""

    __slots__ = ("value",)

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value

    def add(self, piece: dict[str, Any]) -> None:
        """Set the value at the piece's path, or append to the string that is there.

        ValueError for a path that cannot be followed: objects and arrays are made, an array grows by one at a time.
        """
        kind = next((kind for kind in _VALUES if kind in piece), None)
        if kind is None:
            return
        steps = _steps(piece["jsonPath"])
        parent: Any = self.value
        for step, next_step in pairwise(steps):
            parent = _child(parent, step, [] if isinstance(next_step, int) else {})
        value: Any = None if kind == "nullValue" else piece[kind]
        last = steps[-1]
        present = _child(parent, last, value)
        if present is value:
            return
        is_more_text = isinstance(present, str) and isinstance(value, str)
        parent[last] = f"{present}{value}" if is_more_text else value


def _steps(path: str) -> tuple[str | int, ...]:
    try:
        compiled = compile_path(path)
    except InvalidRequest as error:
        raise ValueError("a JSONPath that cannot be read") from error
    if not compiled.is_definite or not compiled.prefix:
        raise ValueError("a JSONPath that does not name one value")
    return tuple(step for step in compiled.prefix if isinstance(step, str | int))


def _child(parent: Any, step: str | int, default: Any) -> Any:
    """Return the child at a key or index; it is made with the default if it is not there."""
    if isinstance(parent, dict) and isinstance(step, str):
        return parent.setdefault(step, default)
    if isinstance(parent, list) and isinstance(step, int) and 0 <= step <= len(parent):
        if step == len(parent):
            parent.append(default)
        return parent[step]
    raise ValueError("a JSONPath that does not fit the arguments so far")
