"""Bedrock ConverseStream: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html.

`metadata` with the usage comes after `messageStop`, so `metadata` ends the stream, or the end of the body without it.
"""

from collections.abc import Iterable
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.aws_eventstream import AWSEventStreamFraming
from opensearch_ml_stream.connectors.decoding.contract import FINISHING, Finishing, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import JSONObject, WholeResponse
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec


class BedrockConverse:
    """Reads events by their name. Nova's InvokeModel sends the same payloads in an object whose key is the name."""

    __slots__ = ("_finish", "_tool_indexes", "_usage", "_whole_inputs")

    def __init__(self) -> None:
        self._finish: str | None = None
        self._tool_indexes: dict[int, int] = {}  # content block index -> tool call index
        self._usage: Usage | None = None
        self._whole_inputs: dict[int, str] = {}  # content block index -> its input, until a fragment replaces it

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        """Append the chunk of a content block event; `metadata` after `messageStop` ends the stream."""
        payload: Any = event.payload
        events = payload if event.name in ("", "chunk") else {event.name: payload}
        for name, inner in events.items():
            is_event = isinstance(inner, dict) or name == event.name
            if is_event and (outcome := self._read_event(name, inner, chunks)):
                return outcome
        return FINISHING if self._finish is not None else None

    def end_of_input(self) -> Outcome:
        """Return a good ending if `messageStop` has come."""
        return truncated("messageStop") if self._finish is None else self._ending()

    def _read_event(self, name: str, payload: dict[str, Any], chunks: list[Chunk]) -> Outcome | None:
        if name == "contentBlockDelta":
            self._read_delta(payload, chunks)
        elif name == "contentBlockStart":
            self._read_start(payload, chunks)
        elif name == "contentBlockStop":
            self._end_block(payload.get("contentBlockIndex"), chunks)
        elif name == "messageStop":
            for block in list(self._whole_inputs):
                self._end_block(block, chunks)
            self._finish = event_fields.name(payload["stopReason"]) or "end_turn"
        elif name == "metadata":
            self._usage = _usage(event_fields.mapping(payload.get("usage"))).after(self._usage)
            return None if self._finish is None else self._ending()
        return None

    def _read_start(self, payload: dict[str, Any], chunks: list[Chunk]) -> None:
        """Read the start of a block, which may hold the first of it, or the whole input of a tool."""
        start = event_fields.mapping(payload.get("start"))
        if tool := event_fields.mapping(start.get("toolUse")):
            block = payload["contentBlockIndex"]
            index = event_fields.tool_index(self._tool_indexes, block)
            call = ToolCall(index, event_fields.name(tool.get("toolUseId")), event_fields.name(tool.get("name")))
            self._whole_inputs[block] = event_fields.arguments(tool.get("input") or {})
            chunks.append(Chunk(tool_calls=(call,)))
        elif start:
            self._read_delta({**payload, "delta": start}, chunks)

    def _read_delta(self, payload: dict[str, Any], chunks: list[Chunk]) -> None:
        delta = payload["delta"]
        text = event_fields.text(delta.get("text"))
        thought = event_fields.mapping(delta.get("reasoningContent"))
        reasoning, signature = event_fields.text(thought.get("text")), event_fields.text(thought.get("signature"))
        fragment = event_fields.arguments(event_fields.mapping(delta.get("toolUse")).get("input"))
        block = payload.get("contentBlockIndex", 0)
        index = self._tool_indexes.get(block)
        if fragment:
            self._whole_inputs.pop(block, None)
        calls = (ToolCall(index, arguments=fragment),) if fragment and index is not None else ()
        if text or reasoning or calls or signature:
            chunks.append(Chunk(text, reasoning, calls, signature=signature))

    def _end_block(self, block: Any, chunks: list[Chunk]) -> None:
        """Append the whole input of a tool whose block ended without a fragment of it."""
        if block in self._whole_inputs:
            text = self._whole_inputs.pop(block)
            chunks.append(Chunk(tool_calls=(ToolCall(self._tool_indexes[block], arguments=text),)))

    def _ending(self) -> Ending:
        return Ending(finish_reason(self._finish), self._finish, self._usage)


def _usage(usage: dict[str, Any]) -> Usage:
    """Return the counts; `inputTokens` leaves out what was read from a cache or written to it."""
    counts = {name: event_fields.count(value) for name, value in usage.items()}
    cached = counts.get("cacheReadInputTokens", counts.get("cacheReadInputTokenCount"))
    written = counts.get("cacheWriteInputTokens", counts.get("cacheWriteInputTokenCount"))
    return Usage(
        input_tokens=event_fields.total(counts.get("inputTokens"), cached, written),
        output_tokens=counts.get("outputTokens"),
        cached_tokens=cached,
        cache_write_tokens=written,
    )


BEDROCK_CONVERSE = StreamSpec(
    name="bedrock/converse",
    enable=Enable(
        url=(
            ("/converse", "/converse-stream"),
            # As in ML Commons, which calls ConverseStream for this interface whatever the action's URL is.
            ("/invoke-with-response-stream", "/converse-stream"),
            ("/invoke", "/converse-stream"),
        ),
    ),
    framing=AWSEventStreamFraming,
    reader=BedrockConverse,
)


def _to_events(response: JSONObject) -> Iterable[JSONObject]:
    """Content blocks, each of one kind."""
    for number, block in enumerate(response["output"]["message"]["content"]):
        delta: dict[str, Any] = {"text": block.get("text")}
        if tool := event_fields.mapping(block.get("toolUse")):
            yield {"contentBlockStart": {"start": {"toolUse": tool}, "contentBlockIndex": number}}
            continue
        if "reasoningContent" in block:
            delta = {"reasoningContent": event_fields.mapping(block["reasoningContent"]).get("reasoningText")}
        yield {"contentBlockDelta": {"delta": delta, "contentBlockIndex": number}}
    yield {"messageStop": {"stopReason": response["stopReason"]}}
    yield {"metadata": {"usage": response.get("usage")}}


WHOLE_CONVERSE = WholeResponse(lambda response: "message" in event_fields.mapping(response.get("output")), _to_events)
