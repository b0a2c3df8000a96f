"""Arguments of a function call that come value by value, as Vertex AI streams Gemini's.

A piece is `{"jsonPath": "$.a.b[0]", "stringValue": "..."}`, or with `numberValue`, `boolValue` or `nullValue`. A string
may come in several pieces of one path. https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling.
"""

import re
from itertools import pairwise
from typing import Any

MAX_PATH_CHARS = 1_000
MAX_PIECES = 10_000  # of one call
MAX_CHARS = 256 * 1024  # of one call's strings, each piece of which is appended to those before it

_STEP = re.compile(r"""\.([^.\[\]'"\s]+)|\[(\d{1,9})\]|\[('[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+")\]""")
_ESCAPE = re.compile(r"\\(.)")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class PartialArguments:
    """The arguments of one call; `value` is what has come so far."""

    __slots__ = ("_chars", "_pieces", "value")

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value
        self._pieces = 0
        self._chars = 0

    def add(self, piece: dict[str, Any]) -> None:
        """Set the value at the piece's path, or append to the string that is there.

        Objects and arrays are made, an array grows by one at a time. ValueError for a path that cannot be followed, and
        for more pieces or characters than a call may have.
        """
        kind = next((kind for kind in _VALUES if kind in piece), None)
        if kind is None:
            return
        self._pieces += 1
        self._chars += len(piece[kind]) if isinstance(piece[kind], str) else 0
        if self._pieces > MAX_PIECES or self._chars > MAX_CHARS:
            raise ValueError("too many arguments")
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
    """Return the names and indexes of a path to one value. Read here: compiling a JSONPath takes 100 times as long."""
    steps: list[str | int] = []
    position = 1
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            break
        name, index, quoted = step.groups()
        steps.append(int(index) if index else name or _ESCAPE.sub(r"\1", quoted[1:-1]))
        position = step.end()
    if not path.startswith("$") or not steps or position < len(path) or len(path) > MAX_PATH_CHARS:
        raise ValueError("a JSONPath that does not name one value")
    return tuple(steps)


def _child(parent: Any, step: str | int, default: Any) -> Any:
    """Return the child at a key or index; it is made with the default if it is not there."""
    if isinstance(parent, dict) and isinstance(step, str):
        return parent.setdefault(step, default)
    if isinstance(parent, list) and isinstance(step, int) and 0 <= step <= len(parent):
        if step == len(parent):
            parent.append(default)
        return parent[step]
    raise ValueError("a JSONPath that does not fit the arguments so far")
