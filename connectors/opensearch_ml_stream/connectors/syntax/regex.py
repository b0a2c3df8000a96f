"""Regular expressions that users write, run by RE2: its time is linear in the text, whatever the expression.

Linear in the text means up to 5 ns for each character and instruction of the expression, so the product is bounded.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

from opensearch_ml_stream.connectors.errors import InvalidRequest

MAX_PATTERN_CHARS = 10_000  # patterns come from callers and are kept compiled
MAX_UNICODE_CLASSES = 50  # such as `\\pL`, of hundreds of ranges each, in one pattern
MAX_GROUPS = 100  # RE2 copies the positions of all groups for each instruction of a pattern
MAX_INSTRUCTIONS = 100_000  # of all patterns of a schema or of a chain of processors: 50 ms to compile
_INSTRUCTIONS_A_PATTERN = 50  # in time, beside its own
_MAX_MEMORY = 2 << 20  # bytes, of one compiled pattern with its states
_MAX_WORK = 1 << 26  # instructions times bytes, for each started MiB of text
_WORK_A_STEP = 1 << 10  # of a work limit
_BYTES_A_HALF_MICROSECOND = 128  # where the states of an expression fit into its memory
_WORK_A_HALF_MICROSECOND = 170  # where they do not
_SMALL_WEIGHT = 24  # of expressions whose states do, such as ^[A-Za-z0-9+/=]+$
_GROUPS_A_WEIGHT = 8
_STEPS_A_MATCH = 20
# After a match, an expression with both may have looked at all the text behind it, in vain, and do so at each match.
_UNBOUNDED = re.compile(r"[*+]|\{\d+,\}")
_BRANCHING = re.compile(r"\||\)[*+?{]")


@dataclass(frozen=True, slots=True)
class Regex:
    """A compiled expression. Half a surrogate pair, which UTF-8 cannot encode, matches what `?` matches.

    Texts are strings, or bytes of UTF-8, for which positions are those of bytes.
    """

    pattern: str
    groups: int
    _compiled: Any
    _weight: int  # instructions, more with groups
    _looks_far: bool

    @property
    def compile_steps(self) -> int:
        """Return the steps of half a microsecond that it takes to compile the expression, at most."""
        return _INSTRUCTIONS_A_PATTERN + int(self._compiled.programsize)

    def search(self, text: str | bytes, start: int | None = None, end: int | None = None) -> Any:
        """Return the first match in the text, None without one. InvalidRequest if the text is too long for it.

        Only what lies between `start` and `end` is searched.
        """
        return self._compiled.search(self._checked(text), start, end)

    def fullmatch(self, text: str | bytes, start: int | None = None, end: int | None = None) -> Any:
        """Return the match of all between `start` and `end`, None without one. InvalidRequest as for `search`."""
        return self._compiled.fullmatch(self._checked(text), start, end)

    def finditer(self, text: str, spend: Callable[[int], None]) -> Iterator[Any]:
        """Return all matches, after `spend` has been called with the steps of work that each takes."""
        spend(self.steps(text))
        for match in self._compiled.finditer(self._checked(text)):
            behind = len(text) - match.end() if self._looks_far else min(len(text), self._weight)
            spend(_STEPS_A_MATCH + 2 * self.groups + behind * self._weight // _WORK_A_STEP)
            yield match

    def steps(self, text: str) -> int:
        """Return the steps of a work limit that one search of the text takes at most."""
        return 1 + _count_bytes(text) * self._weight // _WORK_A_STEP

    def search_steps(self, text: str) -> int:
        """Return the steps of half a microsecond that one search of the text takes, for each started MiB of it."""
        size = _count_bytes(text)
        work = size * self._weight // (_WORK_A_HALF_MICROSECOND * (1 + (size >> 20)))
        return size // _BYTES_A_HALF_MICROSECOND + (work if self._weight > _SMALL_WEIGHT else 0)

    def _checked(self, text: str | bytes) -> str | bytes:
        size = _count_bytes(text)
        limit = _MAX_WORK * (size // (1 << 20) + 1)
        if size * self._weight > limit:
            raise InvalidRequest(
                f"A regular expression of {self._weight} instructions can be used on {limit // self._weight} bytes"
                f" here; the text has {size}. Make the expression simpler: fewer alternatives, smaller repetitions"
            )
        return text if isinstance(text, bytes) or text.isascii() else text.encode("utf-8", "replace").decode()


class PatternLimit:
    """The instructions that all patterns of one document may have together, at most the largest one more."""

    __slots__ = ("_left", "_limit", "_name")

    def __init__(self, name: str, limit: int = MAX_INSTRUCTIONS) -> None:
        self._name = name
        self._limit = self._left = limit

    def spend(self, regex: Regex) -> None:
        """Count a pattern's instructions. InvalidRequest if there are too many."""
        self._left -= regex.compile_steps
        if self._left < 0:
            raise InvalidRequest(
                f"The regular expressions of {self._name} have more than {self._limit} instructions together; use"
                r" fewer and simpler ones: repetitions such as {100} and classes such as \p{L} have many"
            )


def _count_bytes(text: str | bytes) -> int:
    return len(text) if isinstance(text, bytes) or text.isascii() else len(text.encode("utf-8", "replace"))


def compile_regex(pattern: str, *, dot_all: bool = False, ignore_case: bool = False, has_groups: bool = True) -> Regex:
    """Compile a pattern with RE2. InvalidRequest if RE2 does not take it, as for look-around and back-references.

    Without `has_groups` parentheses only hold together, which is up to 400 times as fast: RE2 need not follow them.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise InvalidRequest(
            f"A regular expression may have {MAX_PATTERN_CHARS} characters; this one has {len(pattern)}"
        )
    if pattern.count("\\p") + pattern.count("\\P") > MAX_UNICODE_CLASSES:
        raise InvalidRequest(f"A regular expression may have {MAX_UNICODE_CLASSES} Unicode classes such as \\p{{L}}")
    return _compile(pattern, dot_all, ignore_case, has_groups)


@lru_cache(maxsize=128)
def _compile(pattern: str, dot_all: bool, ignore_case: bool, has_groups: bool) -> Regex:
    options = re2.Options()
    options.log_errors = False
    options.dot_nl = dot_all
    options.case_sensitive = not ignore_case
    options.never_capture = not has_groups
    options.max_mem = _MAX_MEMORY
    try:
        compiled = re2.compile(pattern, options)
    except UnicodeEncodeError:
        raise InvalidRequest("A regular expression holds half of a surrogate pair, which cannot be matched") from None
    except re2.error as error:
        reason = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else str(error)
        raise InvalidRequest(f"The regular expression [{pattern}] cannot be used: {reason}") from None
    if compiled.groups > MAX_GROUPS:
        raise InvalidRequest(f"A regular expression may have {MAX_GROUPS} groups; this one has {compiled.groups}")
    weight = compiled.programsize * (1 + compiled.groups // _GROUPS_A_WEIGHT)
    looks_far = _UNBOUNDED.search(pattern) is not None and _BRANCHING.search(pattern) is not None
    return Regex(pattern, compiled.groups, compiled, weight, looks_far)
