"""Anthropic messages, as Vertex AI offers them too: https://docs.anthropic.com/en/docs/build-with-claude/streaming.

`message_delta.usage` is cumulative and replaces the counts of `message_start`; `message_stop` ends the stream; `ping`
may come anywhere; clients are to ignore event types that they do not know. The input of a tool comes in fragments or,
whole, with the start of its block; a `message_start` may hold whole blocks itself. Some servers leave out the ends of
blocks.
"""

from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.conversation.dialects.anthropic_messages import ANTHROPIC_MESSAGES
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import FINISHING, Finishing, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import Interface, Provider, WholeResponse
from opensearch_ml_stream.connectors.provider_errors import read_error
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

_INPUT_FIELDS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_USAGE_FIELDS = (*_INPUT_FIELDS, "output_tokens", "thinking_tokens")
MAX_OPEN_BLOCKS = 16  # whose input is kept: Anthropic has one at a time


class Anthropic:
    """Reads events by the `type` in their data, since Bedrock and Vertex send no event names."""

    __slots__ = ("_call_count", "_finish", "_model", "_tool_indexes", "_usage", "_whole_inputs")

    def __init__(self) -> None:
        self._finish: str | None = None
        self._model: str | None = None
        self._usage: dict[str, int] = {}
        self._call_count = 0
        self._tool_indexes: dict[int | None, int] = {}  # content block index -> tool call index
        self._whole_inputs: dict[int | None, str] = {}  # content block index -> its input, until a fragment replaces it

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        """Append the chunk of a content block event; `message_stop` or `error` ends the stream."""
        payload: Any = event.payload
        kind = payload["type"]
        if kind == "content_block_delta":
            self._read_delta(payload, chunks)
        elif kind == "content_block_start":
            self._read_block_start(payload.get("index"), event_fields.mapping(payload.get("content_block")), chunks)
        elif kind == "content_block_stop":
            self._flush_input(payload.get("index"), chunks)
        elif kind == "message_start":
            self._read_start(event_fields.mapping(payload.get("message")), chunks)
        elif kind == "message_delta":
            self._flush_inputs(chunks)
            self._finish = (
                event_fields.name(event_fields.mapping(payload.get("delta")).get("stop_reason")) or self._finish
            )
            self._update_usage(payload.get("usage"))
        elif kind == "message_stop":
            self._flush_inputs(chunks)
            return self._ending()
        elif kind == "error":
            return read_error(payload)
        return FINISHING if self._finish is not None else None

    def end_of_input(self) -> Outcome:
        """Return a good ending if a stop reason has come."""
        return truncated("message_stop") if self._finish is None else self._ending()

    def _ending(self) -> Ending:
        return Ending(finish_reason(self._finish), self._finish, self._read_usage(), self._model)

    def _read_delta(self, payload: dict[str, Any], chunks: list[Chunk]) -> None:
        delta = event_fields.mapping(payload.get("delta"))
        kind = delta.get("type")
        if kind == "text_delta":
            if text := event_fields.text(delta.get("text")):
                chunks.append(Chunk(text))
        elif kind == "thinking_delta":
            if text := event_fields.text(delta.get("thinking")):
                chunks.append(Chunk(reasoning=text))
        elif kind == "signature_delta":
            if signature := event_fields.text(delta.get("signature")):
                chunks.append(Chunk(signature=signature))
        elif kind == "input_json_delta":
            index = self._tool_indexes.get(_number(payload.get("index")))
            text = event_fields.arguments(delta.get("partial_json"))
            if index is not None and text:
                self._whole_inputs.pop(_number(payload.get("index")), None)
                chunks.append(Chunk(tool_calls=(ToolCall(index, arguments=text),)))

    def _read_start(self, message: dict[str, Any], chunks: list[Chunk]) -> None:
        self._model = event_fields.name(message.get("model"))
        self._finish = event_fields.name(message.get("stop_reason")) or self._finish
        self._update_usage(message.get("usage"))
        for index, block in enumerate(event_fields.elements(message.get("content") or [])):
            self._read_block_start(index, block, chunks)
            self._flush_input(index, chunks)

    def _read_block_start(self, index: object, block: dict[str, Any], chunks: list[Chunk]) -> None:
        kind = block.get("type")
        if kind == "tool_use":  # `server_tool_use` is run by the server itself, not by the client
            self._start_call(index, block, chunks)
        elif kind == "text":
            if text := event_fields.text(block.get("text")):
                chunks.append(Chunk(text))
        elif kind == "thinking":
            text, signature = event_fields.text(block.get("thinking")), event_fields.text(block.get("signature"))
            if text or signature:
                chunks.append(Chunk(reasoning=text, signature=signature))
        elif kind == "fallback":  # another model goes on
            self._model = event_fields.name(event_fields.mapping(block.get("to")).get("model")) or self._model

    def _start_call(self, index: object, block: dict[str, Any], chunks: list[Chunk]) -> None:
        """Append a call, a new one even if an earlier block had the same index: a message may begin anew."""
        number = _number(index)
        if self._call_count >= event_fields.MAX_TOOL_CALLS:
            raise ValueError("too many blocks")
        if len(self._whole_inputs) >= MAX_OPEN_BLOCKS or number in self._whole_inputs:
            self._flush_inputs(chunks)
        call = ToolCall(self._call_count, event_fields.name(block.get("id")), event_fields.name(block.get("name")))
        self._tool_indexes[number] = self._call_count
        self._call_count += 1
        self._whole_inputs[number] = event_fields.arguments(block.get("input") or {})
        chunks.append(Chunk(tool_calls=(call,)))

    def _flush_input(self, block: Any, chunks: list[Chunk]) -> None:
        """Append the whole input of a tool whose block ended without a fragment of it."""
        number = _number(block)
        if number in self._whole_inputs:
            text = self._whole_inputs.pop(number)
            chunks.append(Chunk(tool_calls=(ToolCall(self._tool_indexes[number], arguments=text),)))

    def _flush_inputs(self, chunks: list[Chunk]) -> None:
        """Append the whole inputs of tools whose blocks were not ended."""
        for block in list(self._whole_inputs):
            self._flush_input(block, chunks)

    def _update_usage(self, usage: Any) -> None:
        details = event_fields.mapping(event_fields.mapping(usage).get("output_tokens_details"))
        reported = {**event_fields.mapping(usage), "thinking_tokens": details.get("thinking_tokens")}
        counts = {field: event_fields.count(reported.get(field)) for field in _USAGE_FIELDS}
        has_input = any(counts[field] for field in _INPUT_FIELDS)
        for field, count in counts.items():  # of which 0 takes none back: where all of the input is 0, it is not said
            if count or (count is not None and (field not in self._usage or (has_input and field in _INPUT_FIELDS))):
                self._usage[field] = count

    def _read_usage(self) -> Usage | None:
        """Return the counts; `input_tokens` leaves out what was read from a cache or written to it."""
        if not self._usage:
            return None
        counts = self._usage
        cached, written = counts.get("cache_read_input_tokens"), counts.get("cache_creation_input_tokens")
        return Usage(
            input_tokens=event_fields.total(counts.get("input_tokens"), cached, written),
            output_tokens=counts.get("output_tokens"),
            cached_tokens=cached,
            reasoning_tokens=counts.get("thinking_tokens"),
            cache_write_tokens=written,
        )


def _number(index: object) -> int | None:
    """Return the index of a block, None if its provider leaves it out: the last block without one goes on then."""
    return index if isinstance(index, int) else None


ANTHROPIC = StreamSpec(
    name="anthropic/v1/messages",
    enable=Enable(body={"stream": True}),
    framing=SSEFraming,
    reader=Anthropic,
    has_fast_path=True,
)

_WHOLE = WholeResponse(
    lambda response: response.get("type") == "message",
    # The event that begins a message may hold all of it.
    lambda response: [{"type": "message_start", "message": response}, {"type": "message_stop"}],
)

PROVIDER = Provider(
    interfaces=(Interface((ANTHROPIC.name,), ANTHROPIC, (r"/v1/messages\?",), _WHOLE, ANTHROPIC_MESSAGES, True),),
    trusted_endpoints=(r"^https://api\.anthropic\.com/.*$",),
)
