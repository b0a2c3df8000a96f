"""Chunks, tool calls, token usage and endings: what every provider's stream is decoded into, whatever its framing.

A stream is any number of chunks, then one outcome: an `Ending`, or an error of `errors`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import orjson

from opensearch_ml_stream.connectors.event import Event

FINISH_REASONS = ("stop", "length", "tool_calls", "content_filter", "error")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A fragment of a tool call. `index` tells parallel calls apart; only the first fragment has `id` and `name`.

    It also says whether the arguments are no JSON, but the text that a free-form tool is called with (`is_text`).
    """

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""
    is_text: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the fragment for JSON: `index` and `arguments` always, `id` and `name` where it has them."""
        identity = {"id": self.id, "name": self.name}
        present = {key: value for key, value in identity.items() if value is not None}
        return {"index": self.index, **present, "arguments": self.arguments}


class Chunk(NamedTuple):
    """Text, reasoning text and tool-call fragments of one event. A tuple, for speed: one is made per token.

    `outputs` are the outputs of a runtime's response beside its text, tensors as V2 has them in JSON. `signature` is
    the provider's proof of the reasoning before it, which it wants back with that. `refusal` is the end of the text in
    which the model refuses, where the provider tells that apart. `event` is the event as the provider
    sent it, where the client speaks its dialect and the other fields do not say all of it; its payload is an object.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    outputs: tuple[Mapping[str, Any], ...] = ()
    signature: str = ""
    refusal: str = ""
    event: Event | None = None


class _Run(bytes):
    """Chunks that are still encoded, at least one, a SEPARATOR between two."""

    __slots__ = ()

    SEPARATOR: ClassVar[bytes] = b"\0"  # no JSON text can hold this byte

    @property
    def length(self) -> int:
        """Return the number of chunks in the run."""
        return self.count(self.SEPARATOR) + 1

    def wrap_each(self, prefix: bytes, between: bytes, suffix: bytes) -> bytes:
        """Return the parts with bytes around each: `between` is the suffix of a part and the prefix of the next."""
        return prefix + self.replace(self.SEPARATOR, between) + suffix


class TextRun(_Run):
    """Chunks of text alone: the contents of JSON strings, none empty.

    A run of tokens is one object instead of one for each token, and its text is never decoded on the way.
    """

    __slots__ = ()

    def to_texts(self) -> list[bytes]:
        """Return the texts as UTF-8, decoding those that hold an escape."""
        texts = self.split(self.SEPARATOR)
        if self.find(b"\\") < 0:
            return texts
        return [orjson.loads(b'"%b"' % text).encode() if b"\\" in text else text for text in texts]

    def to_chunks(self) -> list[Chunk]:
        """Decode the run into one Chunk for each text."""
        return [Chunk(orjson.loads(b'"%b"' % text)) for text in self.split(self.SEPARATOR)]


class ResponseRun(_Run):
    """Responses of a runtime, each the JSON object of a whole V2 inference response: one chunk each."""

    __slots__ = ()

    def to_responses(self) -> list[bytes]:
        """Return the responses as they are."""
        return self.split(self.SEPARATOR)

    def to_chunks(self) -> list[Chunk]:
        """Decode the run into one Chunk for each response."""
        return [_response_chunk(orjson.loads(response)) for response in self.split(self.SEPARATOR)]


class ChunkParts(tuple[list[Chunk] | TextRun | ResponseRun, ...]):
    """Lists and runs in order, none empty: of a long read all text stays a run, whatever comes before and after it."""

    __slots__ = ()

    def to_chunks(self) -> list[Chunk]:
        """Decode the runs into one Chunk for each text."""
        return [chunk for part in self for chunk in to_chunk_list(part)]


Chunks = list[Chunk] | TextRun | ResponseRun | ChunkParts


def to_chunk_list(chunks: Chunks) -> list[Chunk]:
    """Return the chunks as a list, decoding runs."""
    return chunks if isinstance(chunks, list) else chunks.to_chunks()


def begins_as_sent(chunks: Chunks) -> bool:
    """Return whether the first of the chunks is an event as its provider sent it."""
    first = chunks[0] if isinstance(chunks, ChunkParts) else chunks
    return isinstance(first, list) and first[0].event is not None


@dataclass(slots=True)
class Usage:
    """Token counts as the provider reports them; None for what it does not report.

    `input_tokens` include `cached_tokens`, read from a cache of prompts, and `cache_write_tokens`, written to it.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_write_tokens: int | None = None

    def after(self, earlier: "Usage | None") -> "Usage":
        """Return these counts of a stream that has reported others before, of which 0 or nothing takes none back."""
        if earlier is None:
            return self
        inputs, outputs = (
            _later(self.input_tokens, earlier.input_tokens),
            _later(self.output_tokens, earlier.output_tokens),
        )
        total = _later(self.total_tokens, earlier.total_tokens)
        if (inputs, outputs) != (self.input_tokens, self.output_tokens) and earlier.total_tokens and total:
            total = max(earlier.total_tokens, total)
        return Usage(
            inputs,
            outputs,
            total,
            _later(self.cached_tokens, earlier.cached_tokens),
            _later(self.reasoning_tokens, earlier.reasoning_tokens),
            _later(self.cache_write_tokens, earlier.cache_write_tokens),
        )

    def as_dict(self) -> dict[str, int]:
        """Return the reported counts by name, with the total computed where only its two parts are reported."""
        counts = {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "total_tokens": self.total_tokens,
            "cached_tokens": self.cached_tokens,
            "reasoning_tokens": self.reasoning_tokens,
            "cache_write_tokens": self.cache_write_tokens,
        }
        if self.total_tokens is None and self.input_tokens is not None and self.output_tokens is not None:
            counts["total_tokens"] = self.input_tokens + self.output_tokens
        return {name: count for name, count in counts.items() if count is not None}


@dataclass(frozen=True, slots=True)
class Ending:
    """The outcome of a complete stream.

    `finish_reason` is one of FINISH_REASONS, the same for all providers; `native_finish_reason` is the provider's own
    word. `guardrail` is the part of the model's own guardrails that ended the stream, if one did.
    """

    finish_reason: str = "stop"
    native_finish_reason: str | None = None
    usage: Usage | None = None
    model: str | None = None
    guardrail: str | None = None


def _later(now: int | None, before: int | None) -> int | None:
    return before if not now and before is not None else now


def _response_chunk(response: Mapping[str, Any]) -> Chunk:
    """Return the chunk of an inference response: its text is the first BYTES output, a chat message's its content."""
    outputs: Any = response.get("outputs")
    if not isinstance(outputs, list):
        return Chunk()
    place = _text_place(outputs)
    if place is None:
        return Chunk(outputs=tuple(outputs))
    return Chunk(_joined(outputs[place].get("data")), outputs=(*outputs[:place], *outputs[place + 1 :]))


def _text_place(outputs: list[Any]) -> int | None:
    """Return the place of the output that holds the text, None if there is none."""
    texts = [place for place, output in enumerate(outputs) if output.get("datatype") == "BYTES"]
    if not texts:
        return None
    if outputs[texts[0]].get("name") != "role":
        return texts[0]
    return next((place for place in texts if outputs[place].get("name") == "content"), texts[0])


def _joined(data: Any) -> str:
    """Return the strings of tensor data, which may be nested by the tensor's shape, as one."""
    if isinstance(data, list):
        return "".join([_joined(element) for element in data])
    return data if isinstance(data, str) else ""
