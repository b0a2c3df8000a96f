"""Cohere chat, v1 (NDJSON) and v2 (server-sent events): https://docs.cohere.com/docs/streaming."""

from collections.abc import Iterable
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.conversation.dialects.cohere_messages import COHERE
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.decoding.ndjson import NDJSONFraming
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import Interface, JSONObject, Provider, WholeResponse
from opensearch_ml_stream.connectors.provider_errors import read_error
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec


class CohereV2:
    """Reads events of v2 by the `type` in their data. `message-end` is the last; a `[DONE]` may follow it."""

    __slots__ = ("_tool_indexes", "_without_arguments")

    def __init__(self) -> None:
        self._tool_indexes: dict[int, int] = {}  # Cohere's index -> tool call index
        self._without_arguments: int | None = None  # the index of the last call, until a fragment of its arguments

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        """Append the chunk of a content, tool plan or tool call event; `message-end` or `error` ends the stream."""
        payload: Any = event.payload
        kind = payload["type"]
        if kind == "message-end":
            return _end_v2(payload["delta"])
        if kind in ("content-start", "content-delta"):
            content = event_fields.mapping(payload["delta"]["message"].get("content"))
            text, thinking = event_fields.text(content.get("text")), event_fields.text(content.get("thinking"))
            if text or thinking:
                chunks.append(Chunk(text, thinking))
        elif kind == "tool-plan-delta":
            if plan := event_fields.text(payload["delta"]["message"]["tool_plan"]):
                chunks.append(Chunk(reasoning=plan))
        elif kind in ("tool-call-start", "tool-call-delta"):
            self._read_call(payload, chunks)
        elif kind == "tool-call-end" and self._without_arguments is not None:
            chunks.append(Chunk(tool_calls=(ToolCall(self._without_arguments, arguments="{}"),)))
            self._without_arguments = None
        elif kind == "error":
            return read_error(payload)
        return None

    def end_of_input(self) -> Outcome:
        """Return a truncation: only `message-end` is a good end."""
        return truncated("message-end")

    def _read_call(self, payload: dict[str, Any], chunks: list[Chunk]) -> None:
        call = payload["delta"]["message"]["tool_calls"]
        function = call["function"]
        index = event_fields.tool_index(self._tool_indexes, payload.get("index", 0))
        text = event_fields.arguments(function.get("arguments"))
        fragment = ToolCall(index, event_fields.name(call.get("id")), event_fields.name(function.get("name")), text)
        if text:
            self._without_arguments = None
        elif fragment.name:
            self._without_arguments = index
        if fragment.id or fragment.name or text:
            chunks.append(Chunk(tool_calls=(fragment,)))


class CohereV1:
    """Reads lines of v1 by their `event_type`. `stream-end` is the last."""

    __slots__ = ("_has_fragments",)

    def __init__(self) -> None:
        self._has_fragments = False  # tool calls came in fragments: the whole calls that follow repeat them

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        """Append the chunk of a text or tool call line; `stream-end` or a line without `event_type` ends the stream."""
        payload: Any = event.payload
        kind = payload.get("event_type")
        if kind == "stream-end":
            return _end_v1(payload)
        if kind == "text-generation":
            if text := event_fields.text(payload["text"]):
                chunks.append(Chunk(text))
        elif kind == "tool-calls-chunk":
            self._read_fragment(payload, chunks)
        elif kind == "tool-calls-generation" and not self._has_fragments:
            calls = (
                ToolCall(index, None, event_fields.name(call["name"]), event_fields.arguments(call.get("parameters")))
                for index, call in enumerate(event_fields.elements(payload["tool_calls"]))
            )
            chunks.append(Chunk(tool_calls=tuple(calls)))
        elif kind is None:
            return read_error(payload)
        return None

    def end_of_input(self) -> Outcome:
        """Return a truncation: only `stream-end` is a good end."""
        return truncated("stream-end")

    def _read_fragment(self, payload: dict[str, Any], chunks: list[Chunk]) -> None:
        plan = event_fields.text(payload.get("text"))
        delta = payload.get("tool_call_delta")
        calls: tuple[ToolCall, ...] = ()
        if delta:
            self._has_fragments = True
            text = event_fields.arguments(delta.get("parameters"))
            calls = (ToolCall(delta["index"], None, event_fields.name(delta.get("name")), text),)
        if plan or calls:
            chunks.append(Chunk(reasoning=plan, tool_calls=calls))


def _end_v2(delta: dict[str, Any]) -> Outcome:
    native = event_fields.name(delta.get("finish_reason"))
    if delta.get("error") or native == "ERROR":
        return read_error(delta.get("error") or "finish_reason ERROR")
    return Ending(finish_reason(native), native, _usage(event_fields.mapping(delta.get("usage"))))


def _end_v1(payload: dict[str, Any]) -> Outcome:
    native = event_fields.name(payload.get("finish_reason"))
    response = event_fields.mapping(payload.get("response"))
    if native == "ERROR":
        return read_error(payload.get("error") or response.get("error") or "finish_reason ERROR")
    return Ending(finish_reason(native), native, _usage(event_fields.mapping(response.get("meta"))))


def _usage(usage: dict[str, Any]) -> Usage | None:
    """Return the counts of `tokens`, which are all tokens, else of `billed_units`, which are those that cost."""
    counts = event_fields.mapping(usage.get("tokens")) or event_fields.mapping(usage.get("billed_units"))
    if not counts:
        return None
    return Usage(
        input_tokens=event_fields.count(counts.get("input_tokens")),
        output_tokens=event_fields.count(counts.get("output_tokens")),
        cached_tokens=event_fields.count(usage.get("cached_tokens")),
    )


COHERE_V2 = StreamSpec(
    name="cohere/v2/chat",
    enable=Enable(body={"stream": True}),
    framing=SSEFraming,
    reader=CohereV2,
    has_fast_path=True,
)

COHERE_V1 = StreamSpec(
    name="cohere/v1/chat",
    enable=Enable(body={"stream": True}),
    framing=NDJSONFraming,
    reader=CohereV1,
)


def _to_events(response: JSONObject) -> Iterable[JSONObject]:
    """Return a plan, parts of text and tool calls."""
    message = response["message"]
    if plan := message.get("tool_plan"):
        yield {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": plan}}}
    for part in message.get("content") or ():
        yield {"type": "content-delta", "delta": {"message": {"content": part}}}
    for number, call in enumerate(message.get("tool_calls") or ()):
        yield {"type": "tool-call-start", "index": number, "delta": {"message": {"tool_calls": call}}}
    yield {"type": "message-end", "delta": response}


_WHOLE_V2 = WholeResponse(lambda response: "finish_reason" in response and "message" in response, _to_events)

PROVIDER = Provider(
    interfaces=(
        Interface((COHERE_V2.name,), COHERE_V2, (r"/v2/chat\?",), _WHOLE_V2, dialect=COHERE),
        Interface((COHERE_V1.name,), COHERE_V1, (r"/v1/chat\?",)),
    ),
    trusted_endpoints=(r"^https://api\.cohere\.(ai|com)/.*$",),
)
