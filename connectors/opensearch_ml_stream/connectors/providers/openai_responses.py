"""OpenAI Responses interface: https://platform.openai.com/docs/api-reference/responses-streaming.

`response.completed`, `.incomplete` or `.failed` ends the stream and holds the usage. There is no `[DONE]`. Every call
that asks the client to act is a tool call; those that OpenAI runs itself (search, code, containers) are not.
"""

from collections.abc import Iterable
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.conversation.dialects import responses
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import Interface, JSONObject, Provider, WholeResponse
from opensearch_ml_stream.connectors.provider_errors import read_error
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

_TEXT = ("response.output_text.delta", "response.refusal.delta")
_FRAGMENTS = ("response.function_call_arguments.delta", "response.custom_tool_call_input.delta")
_WHOLE = {"response.function_call_arguments.done": "arguments", "response.custom_tool_call_input.done": "input"}
_NAMED_CALLS = ("function_call", "custom_tool_call")
_TOOL_SEARCH = "tool_search_call"
# Calls that have no name: their type is it, and what they hold beside these fields are the arguments.
_CLIENT_CALLS = (
    "apply_patch_call", "computer_call", "local_shell_call", "mcp_approval_request", "shell_call", _TOOL_SEARCH,
)  # fmt: skip
_NO_ARGUMENTS = frozenset({"id", "type", "status", "call_id", "created_by"})
_REASONING = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")


class OpenAIResponses:
    """Reads events by the `type` in their data."""

    __slots__ = ("_model", "_tool_indexes", "_with_arguments")

    def __init__(self) -> None:
        self._model: str | None = None  # as the first event names it; some servers leave it out of the last
        self._tool_indexes: dict[int, int] = {}  # output index -> tool call index
        self._with_arguments: set[int] = set()  # output indexes whose arguments have come in fragments

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        """Append the chunk of a delta; `response.completed`, `.incomplete`, `.failed` or `error` ends the stream."""
        payload: Any = event.payload
        kind = payload["type"]
        if kind in _TEXT:
            if text := event_fields.text(payload["delta"]):
                chunks.append(Chunk(text))
        elif kind in _REASONING:
            if text := event_fields.text(payload["delta"]):
                chunks.append(Chunk(reasoning=text))
        elif kind in ("response.completed", "response.incomplete"):
            return self._ending(payload["response"], complete=kind == "response.completed")
        elif kind == "response.created":
            self._model = event_fields.name(payload["response"].get("model"))
        elif kind == "response.failed":
            return read_error(payload["response"].get("error"))
        elif kind == "error":
            return read_error(payload)
        else:
            self._read_tool_call(kind, payload, chunks)
        return None

    def end_of_input(self) -> Outcome:
        """Return a truncation: only `response.completed` or `.incomplete` is a good end."""
        return truncated("response.completed")

    def _read_tool_call(self, kind: str, payload: dict[str, Any], chunks: list[Chunk]) -> None:
        if kind == "response.output_item.added" and payload["item"]["type"] in _NAMED_CALLS:
            item = payload["item"]
            self._append(payload["output_index"], chunks, item["call_id"], item["name"])
        elif kind in _FRAGMENTS:
            self._read_arguments(payload["output_index"], payload["delta"], chunks)
        elif kind in _WHOLE and payload["output_index"] not in self._with_arguments:
            self._read_arguments(payload["output_index"], payload[_WHOLE[kind]], chunks)
        elif kind == "response.output_item.done" and _is_unnamed_client_call(payload["item"]):
            self._read_client_call(payload["output_index"], payload["item"], chunks)

    def _read_client_call(self, output: int, item: dict[str, Any], chunks: list[Chunk]) -> None:
        """Append the whole call of an item that is done; an item that is done twice is one call."""
        if output in self._tool_indexes:
            return
        own = {name: value for name, value in item.items() if name not in _NO_ARGUMENTS and value is not None}
        arguments = event_fields.arguments(item.get("arguments") if item["type"] == _TOOL_SEARCH else own)
        self._append(output, chunks, item.get("call_id") or item.get("id"), item["type"], arguments)

    def _append(self, output: int, chunks: list[Chunk], id: Any, name: Any, arguments: str = "") -> None:
        index = event_fields.tool_index(self._tool_indexes, output)
        call = ToolCall(index, event_fields.name(id), event_fields.name(name), arguments)
        chunks.append(Chunk(tool_calls=(call,)))

    def _read_arguments(self, output: int, text: Any, chunks: list[Chunk]) -> None:
        index = event_fields.tool_index(self._tool_indexes, output)
        self._with_arguments.add(output)
        if fragment := event_fields.text(text):
            chunks.append(Chunk(tool_calls=(ToolCall(index, arguments=fragment),)))

    def _ending(self, response: dict[str, Any], *, complete: bool) -> Ending:
        native = event_fields.mapping(response.get("incomplete_details")).get("reason") or response.get("status")
        word = event_fields.name(native)
        reason = finish_reason(word)
        if reason == "stop" and not complete:  # incomplete for a reason of the server's own
            reason = "error"
        return Ending(reason, word, _usage(response), event_fields.name(response.get("model")) or self._model)


def _is_unnamed_client_call(item: dict[str, Any]) -> bool:
    """Return whether the client is to act on an item; the shell of a container and a hosted search are OpenAI's."""
    if item["type"] not in _CLIENT_CALLS or item.get("execution") == "server":
        return False
    environment = event_fields.mapping(item.get("environment"))
    return bool(environment.get("type", "local") == "local")


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


def _to_events(response: JSONObject) -> Iterable[JSONObject]:
    """Items of output, each with its parts."""
    for number, item in enumerate(response["output"]):
        parts = [*(item.get("summary") or ()), *(item.get("content") or ())]
        for part in parts:
            kind = {"output_text": "output_text", "refusal": "refusal"}.get(part["type"], "reasoning_text")
            yield {"type": f"response.{kind}.delta", "delta": part.get("text") or part.get("refusal")}
        yield {"type": "response.output_item.added", "output_index": number, "item": item}
        for kind, field in (("function_call_arguments", "arguments"), ("custom_tool_call_input", "input")):
            if item["type"] in ("function_call", "custom_tool_call") and field in item:
                yield {"type": f"response.{kind}.done", "output_index": number, field: item[field]}
        yield {"type": "response.output_item.done", "output_index": number, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


_RESPONSE = WholeResponse(lambda response: isinstance(response.get("output"), list), _to_events)

PROVIDER = Provider(
    interfaces=(
        Interface((OPENAI_RESPONSES.name,), OPENAI_RESPONSES, (r"/responses\?",), _RESPONSE, responses.DIALECT),
    )
)
