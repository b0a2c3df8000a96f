"""What OpenAI's and Anthropic's own SDKs make of a stream's bytes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any

import anthropic
import openai
from openai.lib.streaming.chat import ChatCompletionStreamState

from opensearch_ml_stream.connectors.known_providers import SHIPPED

MESSAGES: Any = [{"role": "user", "content": "?"}]


@dataclass(frozen=True, slots=True)
class Reading:
    """An SDK's reading of a stream; `usage` has only what the SDK names as our wire format does."""

    text: str
    reasoning: str
    tools: list[tuple[str | None, str, Any]]
    native: str | None
    model: str | None
    usage: dict[str, int | None] = field(default_factory=dict)


def _http_client(sdk: ModuleType, data: bytes) -> Any:
    """Return a client of the HTTP library that the SDK uses (httpx or its successor), which responds with the data."""
    httpx = import_module(sdk.DefaultHttpxClient.__mro__[1].__module__)
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=data)
    return sdk.DefaultHttpxClient(transport=httpx.MockTransport(lambda request: response))


def _openai(data: bytes) -> openai.OpenAI:
    return openai.OpenAI(api_key="k", max_retries=0, http_client=_http_client(openai, data))


def read_chat(data: bytes) -> Reading:
    """OpenAI's accumulated completion. Raises openai.APIError for an error in the stream."""
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    with _openai(data) as client:
        for chunk in client.chat.completions.create(model="m", messages=MESSAGES, stream=True):
            state.handle_chunk(chunk)
    completion = state.current_completion_snapshot
    choice = completion.choices[0]
    message = choice.message
    more = message.model_extra or {}
    calls: list[tuple[str | None, str, str]] = [
        (call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()
    ]
    if message.function_call is not None:
        calls = [(None, message.function_call.name, message.function_call.arguments)]
    return Reading(
        text=(message.content or "") + (message.refusal or ""),
        reasoning=more.get("reasoning_content") or more.get("reasoning") or "",
        tools=calls,
        native=choice.finish_reason,
        model=completion.model,
        usage=_openai_usage(completion.usage, "prompt_tokens", "completion_tokens"),
    )


def read_completions(data: bytes) -> Reading:
    """OpenAI's chunks of a text completion."""
    with _openai(data) as client:
        chunks = list(client.completions.create(model="m", prompt="?", stream=True))
    choices = [choice for chunk in chunks for choice in chunk.choices]
    usage = next((chunk.usage for chunk in chunks if chunk.usage), None)
    return Reading(
        text="".join(choice.text for choice in choices),
        reasoning="",
        tools=[],
        native=choices[-1].finish_reason,
        model=chunks[0].model,
        usage=_openai_usage(usage, "prompt_tokens", "completion_tokens"),
    )


def read_responses(data: bytes) -> Reading:
    """OpenAI's events, and the response in the last of them. Raises openai.APIError for an error event."""
    with _openai(data) as client:
        events: list[Any] = list(client.responses.create(model="m", input="?", stream=True))
    responses = [event.response for event in events if hasattr(event, "response")]
    response = responses[-1]
    done = [event.item for event in events if event.type == "response.output_item.done"]
    native = response.incomplete_details and response.incomplete_details.reason
    return Reading(
        text=_deltas(events, "response.output_text.delta"),
        reasoning=_deltas(events, "response.reasoning_summary_text.delta", "response.reasoning_text.delta"),
        tools=[_CALLS[item.type](item) for item in done if item.type in _CALLS],
        native=native or response.status,
        model=response.model or responses[0].model,
        usage=_openai_usage(response.usage, "input_tokens", "output_tokens"),
    )


# What the client is to act on; of a call without a name, its type is the name.
_CALLS: dict[str, Callable[[Any], tuple[str | None, str, Any]]] = {
    "function_call": lambda item: (item.call_id, item.name, item.arguments),
    "custom_tool_call": lambda item: (item.call_id, item.name, item.input),
    "tool_search_call": lambda item: (item.call_id, item.type, item.arguments),
    "mcp_approval_request": lambda item: (
        item.id,
        item.type,
        {"arguments": item.arguments, "name": item.name, "server_label": item.server_label},
    ),
}


def _deltas(events: list[Any], *kinds: str) -> str:
    return "".join(event.delta for event in events if event.type in kinds)


def _openai_usage(usage: Any, input: str, output: str) -> dict[str, int | None]:
    if usage is None:
        return {}
    return {"input_tokens": getattr(usage, input), "output_tokens": getattr(usage, output)}


def read_anthropic(data: bytes) -> Reading:
    """Anthropic's accumulated message. A tool's arguments are its input, decoded."""
    http_client = _http_client(anthropic, data)
    with (
        anthropic.Anthropic(api_key="k", max_retries=0, http_client=http_client) as client,
        client.messages.stream(model="m", messages=MESSAGES, max_tokens=1) as events,
    ):
        message = events.get_final_message()
    usage = message.usage
    counts = (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens)
    return Reading(
        text="".join(block.text for block in message.content if block.type == "text"),
        reasoning="".join(block.thinking for block in message.content if block.type == "thinking"),
        tools=[(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"],
        native=message.stop_reason,
        model=message.model,
        usage={"input_tokens": sum(count or 0 for count in counts), "output_tokens": usage.output_tokens},
    )


READERS: dict[str, Callable[[bytes], Reading]] = {
    "anthropic/v1/messages": read_anthropic,
    "openai/v1/responses": read_responses,
    "openai/v1/completions": read_completions,
    **{name: read_chat for name in SHIPPED.presets if name.endswith("/chat/completions")},
}
