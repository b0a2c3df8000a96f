r"""Endpoint patterns: RE2 expressions for URLs, matched in two parts so that no path can pass for a host.

A pattern is split at the first `/` after `://`. Its left part must match a URL's origin (`https://host:port`) as a
whole, its right part the path and query. After `://` an origin holds none of `/ ? # @ \`, so no `.` of a left part
matches one: `https://.*\.example\.com/.*` does not allow `https://evil.example/x.example.com/`. A pattern without a
right part allows every path.
"""

import re
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.regex import compile_regex

MAX_PATTERN_LENGTH = 256  # as in ML Commons

# The parts of a regular expression that matter here: quoted text, an escape, a class, a group of flags, a character.
_TOKEN = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?[a-z]*:\]|\\.|[^\]\\])*\]|\(\?[A-Za-z-]+\)|.", re.DOTALL)
_NOT_LITERAL = frozenset("^$.*+?()|{}")


@dataclass(frozen=True, slots=True)
class EndpointPattern:
    """A compiled pattern: `origin` and `path` are RE2 expressions, `path` is None if every path is allowed."""

    origin: Any
    path: Any

    def matches(self, origin: str, path: str) -> bool:
        """Return whether the pattern allows a URL. `path` is with its query."""
        return self.origin.fullmatch(origin) is not None and (
            self.path is None or self.path.fullmatch(path) is not None
        )


def compile_endpoint(pattern: str) -> EndpointPattern:
    """Compile a pattern. InvalidRequest if it is too long, not RE2, or cannot be split into origin and path.

    Schemes and hosts are compared without regard to case, as DNS does.
    """
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise InvalidRequest(f"a regex has more than {MAX_PATTERN_LENGTH} characters: {pattern[:40]}...")
    compile_regex(pattern)  # before it is taken apart, so that an error shows all of it
    end, flags = _end_of_origin(pattern)
    path = None if end is None else compile_regex(flags + pattern[end:])
    return EndpointPattern(compile_regex(pattern[:end], ignore_case=True), path)


def _end_of_origin(pattern: str) -> tuple[int | None, str]:
    """Return where the path of a pattern begins (None if nowhere), and the flags that hold for all of the pattern."""
    flags = ""
    end: int | None = None
    depth = 0
    literals = ""  # the last three, so that "://" can be seen
    has_slash = has_scheme = False
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        depth += (text == "(") - (text == ")")
        if depth == 0:
            _check_not_alternation(pattern, text)
            flags += text if text.startswith("(?") else ""
        if end is not None:
            continue
        _check_slash_is_literal(pattern, text)
        literal = _literal(text)
        if literal == "/" and has_scheme:
            end = token.start()
        literals = (literals + literal)[-3:] if literal else ""
        has_slash |= literal == "/"
        has_scheme |= literals == "://"
        if depth and (end is not None or literals == "://"):
            raise _unsplittable(pattern, "write :// and the first / after it outside of any group")
    if has_slash and not has_scheme:
        raise _unsplittable(pattern, "begin it with the scheme, such as ^https://")
    return end, flags


def _check_not_alternation(pattern: str, token: str) -> None:
    if token == "|":
        raise _unsplittable(pattern, "give each alternative an entry of its own")


def _check_slash_is_literal(pattern: str, token: str) -> None:
    """Refuse a `/` that may or may not be the one at which the path begins."""
    if len(token) > 2 and "/" in token and not token.startswith("[^"):
        raise _unsplittable(pattern, "write the / between host and path as it is, not in [...] or \\Q...\\E")


def _literal(token: str) -> str:
    """Return the character that a token stands for, "" if it stands for none or for one that does not matter here."""
    if token in ("\\/", "\\:"):
        return token[1]
    return token if len(token) == 1 and token not in _NOT_LITERAL else ""


def _unsplittable(pattern: str, advice: str) -> InvalidRequest:
    return InvalidRequest(f"the regex [{pattern}] cannot be split into a URL's origin and path: {advice}")
