"""JSONPath (RFC 9535): compile a path once, read values and find nodes with it, by Jayway's rules as ML Commons does.

A definite path (names and indexes only) reads the value, any other path the list of values. A path whose definite
prefix leads nowhere reads MISSING, even if the rest of it would give a list. Paths of names, indexes and wildcards are
walked here, all others by the library python-jsonpath. Regular expressions in a path run on RE2, since callers write
them and Python's own may take exponential time.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Literal

import jsonpath
from jsonpath.function_extensions import Match, Search
from jsonpath.segments import JSONPathChildSegment
from jsonpath.selectors import IndexSelector, NameSelector, WildcardSelector

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.regex import compile_regex

MAX_PATH_CHARS = 2_000  # paths come from callers and are kept compiled


class _Missing(Enum):
    MISSING = "missing"


MISSING: Final = _Missing.MISSING
Missing = Literal[_Missing.MISSING]


class _Wildcard(Enum):
    EVERY = "*"


_Token = str | int | _Wildcard  # a name, an index, or every element


@dataclass(frozen=True, slots=True)
class JSONPath:
    """A compiled path.

    `tokens` is None for a path that only the library can read. `prefix` holds the names and indexes before the first
    token that can match more than one value.
    """

    source: str
    tokens: tuple[_Token, ...] | None
    prefix: tuple[_Token, ...]
    _compiled: jsonpath.JSONPath

    @property
    def is_definite(self) -> bool:
        """Return whether the path can match one value at most."""
        return self.tokens is not None and len(self.tokens) == len(self.prefix)

    def read(self, document: Any) -> Any | Missing:
        """Return the value, the list of values, or MISSING. Values are parts of the document, not copies."""
        start = _descend(document, self.prefix)
        if start is MISSING or self.is_definite:
            return start
        if self.tokens is not None:
            return _collect(start, self.tokens[len(self.prefix) :])
        # The library would parse a string as JSON, and does not take a number.
        return self._compiled.findall(document) if isinstance(document, dict | list) else []

    def select(self, document: Any) -> list[Any]:
        """Return the matched values as a list, empty if the path matches nothing."""
        result = self.read(document)
        if result is MISSING:
            return []
        return [result] if self.is_definite else list(result)

    def find_nodes(self, document: Any) -> Iterable[jsonpath.JSONPathMatch]:
        """Return the library's matches with value and location (`obj`, `parts`), for edits in place."""
        return self._compiled.finditer(document)


def compile_path(source: str) -> JSONPath:
    """Compile a path. InvalidRequest if it is too long or not a JSONPath."""
    if len(source) > MAX_PATH_CHARS:
        raise InvalidRequest(f"A JSONPath may have {MAX_PATH_CHARS} characters; this one has {len(source)}")
    return _compile(source)


@lru_cache(maxsize=512)
def _compile(source: str) -> JSONPath:
    path = _parse(source)
    tokens: list[_Token | None] = [_token(segment) for segment in path.segments]
    plain = tuple(token for token in tokens if token is not None)
    prefix: list[_Token] = []
    for token in tokens:
        if token is None or token is _Wildcard.EVERY:
            break
        prefix.append(token)
    return JSONPath(source, plain if len(plain) == len(tokens) else None, tuple(prefix), path)


def _parse(source: str) -> jsonpath.JSONPath:
    try:
        path = _ENVIRONMENT.compile(source)
    except jsonpath.JSONPathError as error:
        reason = str(error).splitlines()[0]
        raise InvalidRequest(f"[{source}] is not a JSONPath that is understood here: {reason}") from None
    if not isinstance(path, jsonpath.JSONPath):
        raise InvalidRequest(f"[{source}] joins several JSONPaths; give one")
    return path


def _token(segment: Any) -> _Token | None:
    """Return the token of a plain segment, None for one that only the library can read."""
    if not isinstance(segment, JSONPathChildSegment) or len(segment.selectors) != 1:
        return None
    selector = segment.selectors[0]
    if isinstance(selector, NameSelector):
        return selector.name
    if isinstance(selector, IndexSelector):
        return selector.index
    return _Wildcard.EVERY if isinstance(selector, WildcardSelector) else None


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
        if token is _Wildcard.EVERY:
            values = [inner for outer in values for inner in _children(outer)]
        else:
            inner_values = [_descend(outer, (token,)) for outer in values]
            values = [inner for inner in inner_values if inner is not MISSING]
    return values


def _children(value: Any) -> Sequence[Any]:
    if isinstance(value, list):
        return value
    return list(value.values()) if isinstance(value, dict) else ()


class _Match(Match):
    def __call__(self, value: object, pattern: object) -> bool:
        return isinstance(value, str) and isinstance(pattern, str) and bool(compile_regex(pattern).fullmatch(value))


class _Search(Search):
    def __call__(self, value: object, pattern: object) -> bool:
        return isinstance(value, str) and isinstance(pattern, str) and bool(compile_regex(pattern).search(value))


class _Environment(jsonpath.JSONPathEnvironment):
    """The library's environment with `match`, `search` and `=~` run by RE2."""

    def setup_function_extensions(self) -> None:
        super().setup_function_extensions()
        self.function_extensions["match"] = _Match()
        self.function_extensions["search"] = _Search()

    def compare(self, left: object, operator: str, right: object) -> bool:
        if operator != "=~":
            return super().compare(left, operator, right)
        pattern, flags = getattr(right, "pattern", None), getattr(right, "flags", 0)
        if not isinstance(left, str) or not isinstance(pattern, str):
            return False
        regex = compile_regex(pattern, dot_all=bool(flags & re.DOTALL), ignore_case=bool(flags & re.IGNORECASE))
        return bool(regex.fullmatch(left))


_ENVIRONMENT = _Environment()
