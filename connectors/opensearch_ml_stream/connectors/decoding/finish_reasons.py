"""Finish reasons: translate every provider's own word into one of `chunks.FINISH_REASONS`.

One table serves all providers, since no two of them use one word for different things, and gateways relay the words of
others. A provider's module can add words. Case is ignored.

Many providers report stop after a tool call, too, some of them only where a tool was forced by its name. For a client
an answer with calls has not ended: that rule (`after_calls`) is applied once, to what every reader returns.
"""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.decoding import event_fields

_WORDS = {
    "stop": (
        "stop eos eos_token end_turn stop_sequence pause_turn complete completed finish finished done load end_of_text"
    ),
    "length": (
        "length max_tokens model_length max_output_tokens model_context_window_exceeded error_limit "
        "context_length_exceeded incomplete token_limit time_limit"
    ),
    "tool_calls": "tool_calls tool_call tool_use function_call requires_action",
    "content_filter": (
        "content_filter content_filtered refusal guardrail_intervened safety recitation blocklist prohibited_content "
        "spii language image_safety image_prohibited_content image_recitation model_armor error_toxic"
    ),
    "error": (
        "error abort aborted timeout insufficient_system_resource malformed_function_call malformed_response "
        "malformed_model_output malformed_tool_use unexpected_tool_call too_many_tool_calls user_cancel cancelled "
        "failed rag_query_exceeded"
    ),
}
_REASONS = {word: reason for reason, words in _WORDS.items() for word in words.split()}

_NO_WORDS: Mapping[str, str] = {}
_UNFINISHED = frozenset({"null", "none", "not_finished", "in_progress", "queued"})


def native_finish_reason(value: Any) -> str | None:
    """Return a provider's word for why its stream ends; None if there is none, or it says that the stream goes on."""
    word = event_fields.name(value)
    return None if word is None or word.lower() in _UNFINISHED else word


def finish_reason(native: str | None, words: Mapping[str, str] = _NO_WORDS) -> str:
    """Return the finish reason of a provider's word; "stop" for None and for a word that is not in the table.

    `words` are the provider's own.
    """
    word = (native or "stop").lower()
    return words.get(word) or _REASONS.get(word, "stop")


def after_calls(reason: str) -> str:
    """Return the finish reason of an answer that holds calls for the client to act on, where its provider's is this."""
    return "tool_calls" if reason == "stop" else reason


def after_refusal(reason: str) -> str:
    """Return the finish reason of an answer in which the model refuses, where its provider's is this."""
    return "content_filter" if reason == "stop" else reason
