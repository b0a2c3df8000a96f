"""OpenAI Responses interface: https://platform.openai.com/docs/api-reference/responses-streaming.

`response.completed`, `.incomplete` or `.failed` ends the stream and holds the usage. There is no `[DONE]`. Every call
that asks the client to act is a tool call; those that OpenAI runs itself (search, code, containers) are not. What the
output holds is read by `openai_responses_output`.
"""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.conversation.dialects import responses
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import Interface, Provider, WholeResponse
from opensearch_ml_stream.connectors.provider_errors import read_error
from opensearch_ml_stream.connectors.providers.openai_responses_output import Channel, Output
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

_DELTAS: Mapping[str, Channel] = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning_summary_text.delta": "summary",
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}
# Which member of an event holds the whole text.
_DONE: Mapping[str, tuple[Channel, str]] = {
    "response.output_text.done": ("text", "text"),
    "response.refusal.done": ("refusal", "refusal"),
    "response.reasoning_text.done": ("reasoning", "text"),
    "response.reasoning_summary_text.done": ("summary", "text"),
    "response.function_call_arguments.done": ("arguments", "arguments"),
    "response.custom_tool_call_input.done": ("input", "input"),
}
_PARTS = {
    f"response.{part}.{what}": what == "done"
    for part in ("content_part", "reasoning_summary_part") for what in ("added", "done")
}  # fmt: skip
_ITEMS = {"response.output_item.added": False, "response.output_item.done": True}
_ENDS = ("response.completed", "response.incomplete", "response.done")


class OpenAIResponses:
    """Reads events by the `type` in their data."""

    __slots__ = ("_model", "_output")

    def __init__(self) -> None:
        self._model: str | None = None  # as the first event names it; some servers leave it out of the last
        self._output = Output()

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        """Append what is new in an event; `response.completed`, `.incomplete`, `.failed` or `error` ends the stream."""
        payload: Any = event.payload
        kind = payload["type"]
        if (channel := _DELTAS.get(kind)) is not None:
            self._output.read_delta(payload, channel, chunks)
        elif kind in _ENDS:
            response = event_fields.mapping(payload.get("response"))
            self._output.end(response.get("output"), chunks)
            if response.get("error"):
                return read_error(response["error"])
            return self._ending(response, kind.removeprefix("response."))
        elif kind == "response.created":
            self._model = event_fields.name(event_fields.mapping(payload.get("response")).get("model"))
        elif kind == "response.failed":
            return read_error(payload["response"].get("error"))
        elif kind == "error":
            return read_error(payload)
        else:
            self._read_snapshot(kind, payload, chunks)
        return None

    def end_of_input(self) -> Outcome:
        """Return a truncation: only `response.completed` or `.incomplete` is a good end."""
        return truncated("response.completed")

    def _read_snapshot(self, kind: str, payload: dict[str, Any], chunks: list[Chunk]) -> None:
        """Read an event that tells all of something at once."""
        if kind in _DONE:
            channel, member = _DONE[kind]
            self._output.read_done(payload, channel, payload.get(member), chunks)
        elif kind in _PARTS:
            self._output.read_part(payload, chunks, is_done=_PARTS[kind])
        elif kind in _ITEMS:
            self._output.read_item(payload, chunks, is_done=_ITEMS[kind])

    def _ending(self, response: dict[str, Any], status: str) -> Ending:
        native = event_fields.mapping(response.get("incomplete_details")).get("reason")
        word = event_fields.name(native) or event_fields.name(response.get("status"))
        reason = finish_reason(word)
        if reason == "stop" and status == "incomplete":  # for a reason of the server's own
            reason = "error"
        return Ending(reason, word, _usage(response), event_fields.name(response.get("model")) or self._model)


def _usage(response: dict[str, Any]) -> Usage | None:
    usage = event_fields.mapping(response.get("usage"))
    if not usage:
        return None
    details = event_fields.mapping(usage.get("input_tokens_details"))
    return Usage(
        input_tokens=event_fields.count(usage.get("input_tokens")),
        output_tokens=event_fields.count(usage.get("output_tokens")),
        total_tokens=event_fields.count(usage.get("total_tokens")),
        cached_tokens=event_fields.count(details.get("cached_tokens")),
        reasoning_tokens=event_fields.count(
            event_fields.mapping(usage.get("output_tokens_details")).get("reasoning_tokens")
        ),
        cache_write_tokens=event_fields.count(details.get("cache_write_tokens")),
    )


OPENAI_RESPONSES = StreamSpec(
    name="openai/v1/responses",
    enable=Enable(body={"stream": True}),
    framing=SSEFraming,
    reader=OpenAIResponses,
)


_RESPONSE = WholeResponse(
    lambda response: isinstance(response.get("output"), list),
    # The event that ends a response holds all of it.
    lambda response: [{"type": f"response.{response.get('status') or 'completed'}", "response": response}],
)

PROVIDER = Provider(
    interfaces=(
        Interface((OPENAI_RESPONSES.name,), OPENAI_RESPONSES, (r"/responses\?",), _RESPONSE, responses.DIALECT),
    )
)
