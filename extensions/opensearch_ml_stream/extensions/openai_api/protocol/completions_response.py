"""Whole responses: objects of kind `chat.completion` and `text_completion`."""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer, whole_calls
from opensearch_ml_stream.connectors.syntax.jsontext import to_json
from opensearch_ml_stream.extensions.openai_api.protocol.completions_events import text_choice
from opensearch_ml_stream.extensions.openai_api.protocol.envelope import (
    OWN_MEMBER,
    REASONING,
    SIGNATURE,
    Envelope,
    own_fields,
    usage_object,
    with_refusal,
)
from opensearch_ml_stream.extensions.openai_api.protocol.sent_chunks import SentChunks


def as_sent(answer: WholeAnswer, chunks: SentChunks) -> bytes:
    """Encode the provider's own response, which is of the client's dialect."""
    return _encode(chunks.response(answer), answer.ending, answer.extra)


def chat_response(
    envelope: Envelope, chunk: Chunk, ending: Ending, extra: Mapping[str, Any], *, calls_function: bool = False
) -> bytes:
    """Encode a chat response that is made from the provider's answer."""
    text = chunk.text.removesuffix(chunk.refusal)
    message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": chunk.refusal or None}
    if chunk.refusal:
        ending = with_refusal(ending)
    if chunk.reasoning:
        message[REASONING] = chunk.reasoning
    if chunk.signature:
        message[SIGNATURE] = chunk.signature
    calls = _whole_calls(envelope, chunk)
    reason = ending.finish_reason
    if calls and calls_function:
        message["function_call"] = calls[0]["function"]
        reason = "function_call" if reason == "tool_calls" else reason
    elif calls:
        message["tool_calls"] = calls
    elif not chunk.text:
        message["content"] = ""
    if chunk.outputs:
        message["outputs"] = chunk.outputs
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    return _made(envelope.head("chat.completion"), choice, ending, extra)


def completions_response(envelope: Envelope, chunk: Chunk, ending: Ending, extra: Mapping[str, Any]) -> bytes:
    """Encode a response of `/v1/completions` that is made from the provider's answer."""
    choice = text_choice(chunk.text, ending.finish_reason)
    return _made(envelope.head("text_completion"), choice, ending, extra)


def _whole_calls(envelope: Envelope, chunk: Chunk) -> list[dict[str, Any]]:
    return [
        {
            "id": call.id or envelope.call_id(call.index),
            "type": "function",
            "function": {"name": call.name or "", "arguments": call.arguments},
        }
        for call in whole_calls(chunk.tool_calls)
    ]


def _made(head: Mapping[str, Any], choice: Mapping[str, Any], ending: Ending, extra: Mapping[str, Any]) -> bytes:
    usage = {} if ending.usage is None else {"usage": usage_object(ending.usage)}
    return _encode({**head, "choices": [choice], **usage}, ending, extra)


def _encode(response: Mapping[str, Any], ending: Ending, extra: Mapping[str, Any]) -> bytes:
    fields = own_fields(ending, extra)
    return to_json({**response, OWN_MEMBER: fields} if fields else response)
