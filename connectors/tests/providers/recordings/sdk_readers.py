"""What OpenAI's, Anthropic's and Google's own SDKs make of a stream's bytes."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from itertools import pairwise
from types import ModuleType
from typing import Any

import anthropic
import httpx
import openai
from google import genai
from google.genai import types as google
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
        text=_deltas(events, "response.output_text.delta", "response.refusal.delta"),
        reasoning=_deltas(events, "response.reasoning_summary_text.delta", "response.reasoning_text.delta"),
        tools=[_CALLS[item.type](item) for item in done if item.type in _CALLS],
        native=native or response.status,
        model=response.model or responses[0].model,
        usage=_openai_usage(response.usage, "input_tokens", "output_tokens"),
    )


def stream_responses(data: bytes) -> Any:
    """The response that OpenAI's streaming helper puts together."""
    with _openai(data) as client, client.responses.stream(model="m", input="?") as stream:
        return stream.get_final_response()


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


def read_gemini(data: bytes) -> Reading:
    """Google's responses. The SDK gives arguments that come value by value as they come, by their paths."""
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=data)
    http_client = httpx.Client(transport=httpx.MockTransport(lambda request: response))
    options = google.HttpOptions(httpx_client=http_client)
    with genai.Client(vertexai=True, api_key="k", http_options=options) as client:
        responses = list(client.models.generate_content_stream(model="m", contents="?"))
    candidates = [candidate for response in responses for candidate in response.candidates or ()]
    parts = [part for candidate in candidates if candidate.content for part in candidate.content.parts or ()]
    blocked = [response.prompt_feedback.block_reason for response in responses if response.prompt_feedback]
    reasons = [candidate.finish_reason for candidate in candidates if candidate.finish_reason] or blocked
    return Reading(
        text="".join(part.text or "" for part in parts if not part.thought),
        reasoning="".join(part.text or "" for part in parts if part.thought),
        tools=_gemini_calls(part.function_call for part in parts if part.function_call),
        native=reasons[-1].name if reasons and reasons[-1] else None,
        model=responses[0].model_version,
        usage=_gemini_usage(responses[-1].usage_metadata),
    )


def _gemini_calls(pieces: Iterable[google.FunctionCall]) -> list[tuple[str | None, str, Any]]:
    calls: list[tuple[str | None, str, Any]] = []
    for piece in pieces:
        if piece.name:
            calls.append((piece.id, piece.name, piece.args or {}))
        for argument in piece.partial_args or ():
            _set_argument(calls[-1][2], argument)
    return calls


def _set_argument(arguments: Any, argument: google.PartialArg) -> None:
    """Put a value at its path, or more of a string; the lists and objects on the way are made as they are met."""
    steps = [
        int(index) if index else name for name, index in re.findall(r"\.([^.\[]+)|\[(\d+)\]", argument.json_path or "")
    ]
    parent = arguments
    for step, next_step in pairwise(steps):
        parent = _child(parent, step, [] if isinstance(next_step, int) else {})
    text, number = argument.string_value, argument.number_value
    if text is None:
        _child(parent, steps[-1], argument.bool_value if number is None else number)
    else:
        parent[steps[-1]] = _child(parent, steps[-1], "") + text


def _child(parent: Any, step: Any, new: Any) -> Any:
    if isinstance(parent, list) and step == len(parent):
        parent.append(new)
    return parent.setdefault(step, new) if isinstance(parent, dict) else parent[step]


def _gemini_usage(usage: google.GenerateContentResponseUsageMetadata | None) -> dict[str, int | None]:
    if usage is None:
        return {}
    counts = {
        "input_tokens": (usage.prompt_token_count, usage.tool_use_prompt_token_count),
        "output_tokens": (usage.candidates_token_count, usage.thoughts_token_count),
    }
    return {name: sum(map(int, filter(None, parts))) for name, parts in counts.items() if any(parts)}


READERS: dict[str, Callable[[bytes], Reading]] = {
    "anthropic/v1/messages": read_anthropic,
    "openai/v1/responses": read_responses,
    "openai/v1/completions": read_completions,
    "gemini/v1beta/generatecontent": read_gemini,
    "vertex/gemini": read_gemini,
    **{name: read_chat for name in SHIPPED.presets if name.endswith("/chat/completions")},
}
