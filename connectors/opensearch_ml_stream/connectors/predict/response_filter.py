"""JSONPath as ML Commons has it (Jayway's rules), compiled once.

A definite path (names and indexes only) gives the value, any other gives the list of values. A path whose definite
beginning is not there gives MISSING, also where the rest of it would be a list.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Literal

import jsonpath
from jsonpath.selectors import IndexSelector, NameSelector, WildcardSelector

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.jsonpath_environment import parse_path

MAX_PATH_CHARS = 2_000  # paths come from callers and are kept compiled


class _Missing(Enum):
    MISSING = "missing"


MISSING: Final = _Missing.MISSING
Missing = Literal[_Missing.MISSING]


class _Every(Enum):
    EVERY = "*"


# A name, an index, or all that there is.
_Token = str | int | _Every


@dataclass(frozen=True, slots=True)
class ResponsePath:
    """`tokens` hold the whole path if it is plain; `path` reads any."""

    source: str
    path: jsonpath.JSONPath
    tokens: tuple[_Token, ...] | None
    beginning: tuple[_Token, ...]  # the names and indexes before the first token that can match more than one value

    @property
    def is_definite(self) -> bool:
        return self.tokens is not None and len(self.tokens) == len(self.beginning)

    def read(self, document: Any) -> Any | Missing:
        """The value, the list of values, or MISSING. The result is part of the document, not a copy."""
        start = _descend(document, self.beginning)
        if start is MISSING or self.is_definite:
            return start
        if self.tokens is None:
            return self.path.findall(document)
        return _collect(start, self.tokens[len(self.beginning) :])


def compile_path(source: str) -> ResponsePath:
    """The path; InvalidRequest says what is wrong with it."""
    if len(source) > MAX_PATH_CHARS:
        raise InvalidRequest(f"A JSONPath may have {MAX_PATH_CHARS} characters; this one has {len(source)}")
    return _compile(source)


@lru_cache(maxsize=512)
def _compile(source: str) -> ResponsePath:
    path = parse_path(source)
    tokens: list[_Token | None] = [_token(segment) for segment in path.segments]
    known = tuple(token for token in tokens if token is not None)
    beginning: list[_Token] = []
    for token in tokens:
        if token is None or token is _Every.EVERY:
            break
        beginning.append(token)
    return ResponsePath(source, path, known if len(known) == len(tokens) else None, tuple(beginning))


def _token(segment: Any) -> _Token | None:
    """The token of a plain segment, None for one that only the JSONPath library reads."""
    if not isinstance(segment, jsonpath.segments.JSONPathChildSegment) or len(segment.selectors) != 1:
        return None
    selector = segment.selectors[0]
    if isinstance(selector, NameSelector):
        return selector.name
    if isinstance(selector, IndexSelector):
        return selector.index
    return _Every.EVERY if isinstance(selector, WildcardSelector) else None


def _descend(value: Any, tokens: Sequence[_Token]) -> Any | Missing:
    for token in tokens:
        if isinstance(token, str):
            if not isinstance(value, dict) or token not in value:
                return MISSING
            value = value[token]
        elif isinstance(token, int):
            if not isinstance(value, list) or not -len(value) <= token < len(value):
                return MISSING
            value = value[token]
    return value


def _collect(value: Any, tokens: Sequence[_Token]) -> list[Any]:
    values = [value]
    for token in tokens:
        if token is _Every.EVERY:
            values = [inner for outer in values for inner in _inside(outer)]
        else:
            found = [_descend(outer, (token,)) for outer in values]
            values = [inner for inner in found if inner is not MISSING]
    return values


def _inside(value: Any) -> Sequence[Any]:
    if isinstance(value, list):
        return value
    return list(value.values()) if isinstance(value, dict) else ()
