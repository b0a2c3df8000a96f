r"""Patterns of guardrails: compiled once, matched as ML Commons does, and searched in a stream where that is possible.

ML Commons refuses a text that a pattern matches as a whole. Here `.` matches a newline too, since otherwise a newline
anywhere would hide the rest of the text from a pattern such as `.*bomb.*`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.regex import compile_regex

# An escape, a quoted part, a character class, a group of nothing but flags, or a single character.
_TOKEN = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\(\?[a-zA-Z-]+\)|.", re.DOTALL)
_ANY_CHARACTER = (".", r"[\s\S]", r"[\S\s]", r"[\d\D]", r"[\w\W]")
_REPEATS = ("*", "+", "?", "{")
_STARTS = ("^", r"\A")
_ENDS = ("$", r"\z")


@dataclass(frozen=True, slots=True)
class GuardPattern:
    """A pattern of a guardrail.

    `core` is what is left without `.*` around it: the pattern matches a text as a whole exactly if the core is found
    in it. None if only the whole text can tell. `regex` is the core, or the whole pattern without one.
    """

    source: str
    regex: Any = field(compare=False, repr=False)
    core: Any | None = field(compare=False, repr=False)

    @classmethod
    def compile(cls, source: str) -> "GuardPattern":
        """Compile a pattern. InvalidRequest if RE2 does not take it."""
        core = _core(source)
        if core is not None:
            try:
                regex = compile_regex(core, dot_all=True)
                return cls(source, regex, regex)
            except InvalidRequest:  # which does not show the pattern as its author knows it
                pass
        return cls(source, compile_regex(source, dot_all=True), None)

    def refuses(self, text: bytes) -> bool:
        """Return whether the pattern matches the whole UTF-8 text."""
        return (self.regex.fullmatch(text) if self.core is None else self.core.search(text)) is not None


def _core(source: str) -> str | None:
    """Return the pattern without `.*` at both ends of each alternative, None if an alternative lacks it at an end."""
    cores = [_without_any_text(alternative) for alternative in _alternatives(_TOKEN.findall(source))]
    return None if None in cores else "|".join(core for core in cores if core is not None)


def _alternatives(tokens: Sequence[str]) -> list[list[str]]:
    """Split tokens at each `|` outside of groups."""
    alternatives: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token == "(") - (token == ")")
        if token == "|" and depth == 0:
            alternatives.append([])
        else:
            alternatives[-1].append(token)
    return alternatives


def _without_any_text(tokens: list[str]) -> str | None:
    """Return the pattern without the `.*` at its beginning and at its end, None if it has not both."""
    flags = [token for token in tokens[:1] if token.startswith("(?")]
    start, end = len(flags), len(tokens)
    start += tokens[start : start + 1] != [] and tokens[start] in _STARTS
    end -= end > start and tokens[end - 1] in _ENDS
    after = _skip_any_text(tokens, start, end)
    if after == start:
        return None
    if after == end:
        return "".join(flags)
    before = _drop_any_text(tokens, after, end)
    if before == end or tokens[after] in _REPEATS:
        return None
    return "".join(flags + tokens[after:before])


def _skip_any_text(tokens: Sequence[str], start: int, end: int) -> int:
    while start + 1 < end and tokens[start] in _ANY_CHARACTER and tokens[start + 1] == "*":
        start += 2
        start += start < end and tokens[start] == "?"
    return start


def _drop_any_text(tokens: Sequence[str], start: int, end: int) -> int:
    while True:
        star = end - 1 - (tokens[end - 1] == "?")
        if star - 1 < start or tokens[star] != "*" or tokens[star - 1] not in _ANY_CHARACTER:
            return end
        end = star - 1
