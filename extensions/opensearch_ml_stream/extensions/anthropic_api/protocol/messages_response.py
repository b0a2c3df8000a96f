"""Messages of `/v1/messages` as JSON, with the members that stream events share."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec
import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer, whole_calls
from opensearch_ml_stream.connectors.conversation.dialects.anthropic_messages import end_with_calls
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.syntax import provider_json
from opensearch_ml_stream.extensions.anthropic_api.protocol.schemas import (
    Block,
    Message,
    MessageUsage,
    Name,
    StopReason,
    is_of,
)

MEMBER = "opensearch_ml_stream"
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
_FINER_REASONS = {"stop_sequence": "stop", "pause_turn": "stop", "model_context_window_exceeded": "length"}


def whole_message(answer: WholeAnswer, model: str, message_id: str) -> bytes:
    """Encode an answer: the provider's own message, or one made from its answer.

    What Anthropic's form has no member for is in MEMBER. UpstreamError for an answer that the form cannot hold.
    """
    make = _as_sent if answer.is_as_sent else _message
    message = make(answer, model, message_id)
    beside = said_beside(answer.ending, answer.extra)
    return orjson.dumps({**message, MEMBER: beside} if beside else message)


def _as_sent(answer: WholeAnswer, model: str, message_id: str) -> Mapping[str, Any]:
    """Return the provider's own message. What was read of it replaces members that are not well formed."""
    sent = end_with_calls(answer.response) if answer.chunk.tool_calls else answer.response
    try:
        form = msgspec.convert(sent, Message)
    except msgspec.ValidationError:
        form = None
    if form is not None and all(block.is_whole for block in form.content):
        ids = [block.id for block in form.content if block.type == "tool_use"]
        return sent if len(set(ids)) == len(ids) else {**sent, "content": _with_own_ids(sent["content"], message_id)}
    forms = {"id": Name, "model": Name, "content": list[Block], "stop_reason": StopReason, "usage": MessageUsage}
    kept = {name: sent[name] for name, form in forms.items() if is_of(sent.get(name), form)}
    if not all(msgspec.convert(block, Block).is_whole for block in kept.get("content", ())):
        del kept["content"]
    return {**sent, **_message(answer, model, message_id, kept)}


def _with_own_ids(blocks: list[dict[str, Any]], message_id: str) -> list[dict[str, Any]]:
    """Return blocks with another id for each call that has the id of one before it."""
    taken: set[str] = set()
    own: list[dict[str, Any]] = []
    for index, block in enumerate(blocks):
        if block["type"] == "tool_use":
            id = block["id"] if block["id"] not in taken else tool_id(message_id, index)
            taken.add(id)
            block = {**block, "id": id}
        own.append(block)
    return own


def _message(answer: WholeAnswer, model: str, message_id: str, kept: Mapping[str, Any] = _NOTHING) -> dict[str, Any]:
    """Return a message made from an answer, with the members in `kept` as they are."""
    chunk, reason = answer.chunk, kept.get("stop_reason") or stop_reason(answer.ending)
    made = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": kept["content"] if "content" in kept else _content(chunk, message_id, is_cut=reason == "max_tokens"),
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": usage_fields(answer.ending.usage),
    }
    return {**made, **kept}


def _content(chunk: Chunk, message_id: str, *, is_cut: bool) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if chunk.reasoning or chunk.signature:
        blocks.append({"type": "thinking", "thinking": chunk.reasoning, "signature": chunk.signature})
    if chunk.text:
        blocks.append({"type": "text", "text": chunk.text})
    for call in whole_calls(chunk.tool_calls):
        name, arguments = call.name or "", call.arguments
        value = {"input": arguments} if call.is_text else _input(arguments, name, is_cut=is_cut)
        blocks.append(
            {"type": "tool_use", "id": call.id or tool_id(message_id, call.index), "name": name, "input": value}
        )
    return blocks


def _input(arguments: str, name: str, *, is_cut: bool) -> dict[str, Any]:
    """Return the arguments of a call; if a token limit has cut them off, they are empty."""
    if not arguments:
        return {}
    try:
        value: Any = provider_json.loads(arguments.encode())
    except ValueError:
        value = {} if is_cut else None
    if not isinstance(value, dict):
        raise UpstreamError(f"The arguments of the model's call of the tool [{name}] are not a JSON object")
    return value


def tool_id(message_id: str, index: int) -> str:
    """Return an id for a tool call without one from its provider."""
    return f"toolu_{message_id.removeprefix('msg_')}_{index}"


def stop_reason(ending: Ending) -> str:
    """Return the stop reason. UpstreamError if the provider broke the answer off, for which Anthropic has none."""
    native = ending.native_finish_reason
    if native is not None and _FINER_REASONS.get(native) == ending.finish_reason:
        return native
    reason = _STOP_REASONS.get(ending.finish_reason)
    if reason is None:
        raise UpstreamError(f"The provider broke its answer off: {native or ending.finish_reason}")
    return reason


def usage_fields(usage: Usage | None) -> dict[str, Any]:
    """Return the counts: `input_tokens` without the cached ones, and 0 for required counts that are unknown."""
    usage = usage or Usage()
    cached, written = usage.cached_tokens, usage.cache_write_tokens
    fields: dict[str, Any] = {
        "input_tokens": max((usage.input_tokens or 0) - (cached or 0) - (written or 0), 0),
        "cache_creation_input_tokens": written or 0,
        "cache_read_input_tokens": cached or 0,
        "output_tokens": usage.output_tokens or 0,
    }
    if usage.reasoning_tokens is not None:
        fields["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return fields


def said_beside(ending: Ending, extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the ML route's terminal object that Anthropic's form has no member for."""
    fields: dict[str, Any] = {}
    if ending.finish_reason == "content_filter" and ending.native_finish_reason not in (None, "refusal"):
        fields["native_finish_reason"] = ending.native_finish_reason
    if ending.guardrail is not None:
        fields["guardrail"] = ending.guardrail
    return {**fields, **extra}
