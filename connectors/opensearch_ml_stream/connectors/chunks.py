"""What every provider's stream is made of, whatever its framing: chunks, then one outcome.

A `Chunk` is what one provider event adds to the answer. An `Ending` is how a whole answer ended; its
vocabulary is one for all providers, the provider's own word stays beside it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

FINISH_REASONS = ("stop", "length", "tool_calls", "content_filter", "error")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A fragment of a tool call. `index` keeps parallel calls apart; `id` and `name` come once."""

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Index and arguments always, id and name where this fragment has them."""
        named = {"id": self.id, "name": self.name}
        known = {key: value for key, value in named.items() if value is not None}
        return {"index": self.index, **known, "arguments": self.arguments}


class Chunk(NamedTuple):
    """Text, reasoning text and tool-call fragments of one event. A tuple, for speed: one is made per token."""

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()


class TextRun(bytes):
    """Chunks of text alone, as the provider wrote them: contents of JSON strings, none empty, a SEPARATOR between two.

    A run of tokens is one object instead of one for each token, and its text is never decoded on the way.
    """

    __slots__ = ()

    SEPARATOR = b"\0"  # which no JSON string can hold

    @property
    def length(self) -> int:
        """How many chunks the run holds."""
        return self.count(self.SEPARATOR) + 1

    def enclosed(self, before: bytes, between: bytes, after: bytes) -> bytes:
        """Put `before` in front of the first text, `between` each two, and `after` the last: a copy or two in all."""
        return before + self.replace(self.SEPARATOR, between) + after

    def decoded(self) -> list[Chunk]:
        """Decode the run into chunks."""
        return [Chunk(orjson.loads(b'"%b"' % text)) for text in self.split(self.SEPARATOR)]


Chunks = list[Chunk] | TextRun


def as_list(chunks: Chunks) -> list[Chunk]:
    """Return the chunks one by one, whichever form they came in."""
    return chunks if isinstance(chunks, list) else chunks.decoded()


@dataclass(slots=True)
class Usage:
    """Tokens as the provider counted them; None where it did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None

    def as_dict(self) -> dict[str, int]:
        """The counts that are known; the total is derived where both parts are."""
        known = {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.total_tokens,
            "cached_tokens": self.cached_tokens,
            "reasoning_tokens": self.reasoning_tokens,
        }
        if self.total_tokens is None and self.input_tokens is not None and self.output_tokens is not None:
            known["total_tokens"] = self.input_tokens + self.output_tokens
        return {name: count for name, count in known.items() if count is not None}


@dataclass(frozen=True, slots=True)
class Ending:
    """A good end: `finish_reason` is one of FINISH_REASONS, `native_finish_reason` the provider's word."""

    finish_reason: str = "stop"
    native_finish_reason: str | None = None
    usage: Usage | None = None
    model: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
