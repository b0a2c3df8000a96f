"""Arguments of a function call that come value by value, as Vertex AI streams Gemini's, written as JSON text.

A piece is `{"jsonPath": "$.a.b[0]", "stringValue": "..."}`, or with `numberValue`, `boolValue` or `nullValue`. A string
may come in several pieces of one path. Each piece is given on as the text that continues the one before, so the values
must come in the order of a text: https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling.
"""

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import orjson

MAX_PATH_CHARS = 1_000
MAX_PIECES = 10_000  # of one call
MAX_NAME_CHARS = 256 * 1024  # of one call's names, which are kept while their object is open

_STEP = re.compile(r"""\.([^.\[\]'"\s]+)|\[(\d{1,9})\]|\[('[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+")\]""")
_ESCAPE = re.compile(r"\\(.)")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")
_Step = str | int


@dataclass(slots=True)
class _Open:
    """An object or array whose end has not been written: where it stands in the one around it, and what it holds."""

    step: _Step
    is_array: bool
    names: set[str] = field(default_factory=set)
    count: int = 0

    def takes(self, step: _Step) -> bool:
        """Return whether a new value may stand at a key or index: an array grows at its end."""
        if self.is_array or isinstance(step, int):
            return self.is_array and step == self.count
        return step not in self.names


class PartialArguments:
    """The arguments of one call, of which all is written but the ends of a string, objects and arrays."""

    __slots__ = ("_name_chars", "_open", "_pieces", "_string", "_unsent")

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._open = [_Open("", is_array=False, names=set(arguments), count=len(arguments))]
        self._unsent = orjson.dumps(arguments).decode()[:-1]
        self._string: tuple[_Step, ...] | None = None  # the path of the string that may go on
        self._pieces = 0
        self._name_chars = 0

    def add(self, piece: dict[str, Any]) -> str:
        """Return the text of the value at the piece's path, or the rest of a string.

        ValueError for a path that cannot be followed from where the text ends, and for more pieces or names than a call
        may have.
        """
        kind = next((kind for kind in _VALUES if kind in piece), None)
        if kind is None:
            return ""
        self._pieces += 1
        if self._pieces > MAX_PIECES or self._name_chars > MAX_NAME_CHARS:
            raise ValueError("too many arguments")
        value = None if kind == "nullValue" else piece[kind]
        text, steps = orjson.dumps(value).decode(), _steps(piece["jsonPath"])
        if isinstance(value, str):
            text = text[1:-1]
            if steps == self._string:
                return text
        before = self._go_to(steps)
        if isinstance(value, str):
            self._string = steps
            return f'{before}"{text}'
        return before + text

    def end(self) -> str:
        """Return what is left to write of the arguments."""
        return self._take_unsent() + self._close_to(0)

    def _go_to(self, steps: tuple[_Step, ...]) -> str:
        """Return the text up to the value at a path, all of which that is not open yet is opened."""
        depth = 0
        while depth < min(len(self._open), len(steps)) - 1 and self._open[depth + 1].step == steps[depth]:
            depth += 1
        starts = all(step == 0 for step in steps[depth + 1 :] if isinstance(step, int))
        if not starts or not self._open[depth].takes(steps[depth]):
            raise ValueError("a JSONPath that does not fit the arguments so far")
        text = [self._take_unsent(), self._close_to(depth + 1)]
        for step, next_step in pairwise(steps[depth:]):
            is_array = isinstance(next_step, int)
            text += [self._enter(step), "[" if is_array else "{"]
            self._open.append(_Open(step, is_array))
        return "".join([*text, self._enter(steps[-1])])

    def _close_to(self, count: int) -> str:
        """Return the end of the open string, if any, and of all but so many open objects and arrays."""
        text = "" if self._string is None else '"'
        self._string = None
        while len(self._open) > count:
            text += "]" if self._open.pop().is_array else "}"
        return text

    def _enter(self, step: _Step) -> str:
        """Return what stands before the next value of the innermost object or array."""
        parent = self._open[-1]
        separator = "," if parent.count else ""
        parent.count += 1
        if isinstance(step, int):
            return separator
        parent.names.add(step)
        self._name_chars += len(step)
        return f"{separator}{orjson.dumps(step).decode()}:"

    def _take_unsent(self) -> str:
        unsent, self._unsent = self._unsent, ""
        return unsent


def _steps(path: str) -> tuple[_Step, ...]:
    """Return the names and indexes of a path to one value. Read here: compiling a JSONPath takes 100 times as long."""
    steps: list[_Step] = []
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
