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


# Chunks that are nothing but text may also come as a *run*, as the provider wrote them, since a run of tokens should
# not cost an object for each: the contents of JSON strings, none of them empty, with a NUL between two. No such string
# can hold a NUL itself.
Run = bytes
Chunks = list[Chunk] | Run


def as_list(chunks: Chunks) -> list[Chunk]:
    """A run's chunks one by one; a list as it is."""
    if isinstance(chunks, list):
        return chunks
    return [Chunk(orjson.loads(b'"%b"' % text)) for text in chunks.split(b"\0")]


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
