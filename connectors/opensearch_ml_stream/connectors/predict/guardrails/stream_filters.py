"""Filters that hold back a stream's text until a guardrail has seen enough of it; text goes in and comes out later.

filter.feed(text) -> text     that may go on now
filter.close()    -> text     that may go on at the stream's end
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from opensearch_ml_stream.connectors.chunks import ToolCall
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.predict.guardrails.patterns import GuardPattern

MAX_HELD_CHARACTERS = 2**20  # of a stream that is held to its end; models end long before
MAX_SENTENCE_CHARACTERS = 1000

# With `held` characters searched again for each search, a search is due for every so-many'th part of them.
_SEARCHES_PER_HELD = 16
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[\n。！？｡]")  # noqa: RUF001


class PatternFilter:
    """Holds back the last `held` characters, so that no match of up to that length gets out.

    Patterns that need the whole text hold all of it until `close`. `refused_by` is the index of the pattern that was
    found; from then on nothing comes out.
    """

    __slots__ = ("_context", "_held", "_kept", "_kept_length", "_patterns", "_unsearched", "_window", "refused_by")

    def __init__(self, patterns: Sequence[GuardPattern], held: int) -> None:
        self._patterns = patterns
        self._held = max(held, 1)
        self._window = ""  # the held characters, after one that was let out: `\b` and `^` look at it
        self._context = 0  # 1 if there is such a character
        self._unsearched = 0
        self._kept: list[str] | None = [] if any(pattern.core is None for pattern in patterns) else None
        self._kept_length = 0
        self.refused_by: int | None = None

    def feed(self, text: str) -> str:
        """Return the text that no match of up to `held` characters can reach any more.

        UpstreamError if the text is too long to be held to its end.
        """
        if self.refused_by is not None:
            return ""
        self._window += text
        self._unsearched += len(text)
        if self._unsearched * _SEARCHES_PER_HELD < self._held:
            return ""
        self._unsearched = 0
        # One character less, so that `\b` and `$` see what follows a match.
        self._search(len(self._window) - 1)
        return self._release(self._held)

    def close(self) -> str:
        """Return all that is still held, if no pattern refuses it."""
        if self.refused_by is None:
            self._search(len(self._window))
        rest = self._release(0)
        if self._kept is None or self.refused_by is not None:
            return rest
        whole = "".join(self._kept)
        for index, pattern in enumerate(self._patterns):
            if pattern.core is None and pattern.refuses(whole.encode()):
                self.refused_by = index
                return ""
        return whole

    def _search(self, end: int) -> None:
        for index, pattern in enumerate(self._patterns):
            if pattern.core is not None and pattern.core.search(self._window, self._context, end) is not None:
                self.refused_by = index
                return

    def _release(self, held: int) -> str:
        end = len(self._window) - held
        if self.refused_by is not None or end <= self._context:
            return ""
        released = self._window[self._context : end]
        self._window = self._window[end - 1 :]
        self._context = 1
        if self._kept is None:
            return released
        self._kept.append(released)
        self._kept_length += len(released)
        check_held_length(self._kept_length)
        return ""


class SentenceCutter:
    """Collects text up to the end of a sentence, or up to MAX_SENTENCE_CHARACTERS."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """Return the held text up to the last sentence that has ended in it."""
        self._held += text
        end = max((match.end() for match in _SENTENCE_END.finditer(self._held)), default=0)
        if not end and len(self._held) >= MAX_SENTENCE_CHARACTERS:
            end = len(self._held)
        piece, self._held = self._held[:end], self._held[end:]
        return piece

    def close(self) -> str:
        """Return the rest."""
        piece, self._held = self._held, ""
        return piece


class HeldToolCalls:
    """The tool calls of a stream, joined from their fragments and kept to its end: half a call is of use to nobody."""

    __slots__ = ("_arguments", "_calls", "_length")

    def __init__(self) -> None:
        self._calls: dict[int, ToolCall] = {}
        self._arguments: dict[int, list[str]] = {}
        self._length = 0

    def add(self, fragments: Sequence[ToolCall]) -> None:
        """Keep fragments. UpstreamError if they are too long to be held."""
        for fragment in fragments:
            call = self._calls.get(fragment.index, fragment)
            self._calls[fragment.index] = replace(call, id=call.id or fragment.id, name=call.name or fragment.name)
            self._arguments.setdefault(fragment.index, []).append(fragment.arguments)
            self._length += len(fragment.arguments) + 1
        check_held_length(self._length)

    def joined(self) -> tuple[ToolCall, ...]:
        """Return the calls, each in one piece."""
        return tuple(replace(call, arguments="".join(self._arguments[index])) for index, call in self._calls.items())


def check_held_length(length: int) -> None:
    """Raise UpstreamError if so many characters of a stream are too many to be held."""
    if length > MAX_HELD_CHARACTERS:
        raise UpstreamError(
            f"The provider's response has more than {MAX_HELD_CHARACTERS} characters, and the model's output "
            "guardrail has to read it as a whole"
        )
