"""The end of an answer in Anthropic's words: its stop reason, its usage, and what is said beside these."""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.chunks import Ending, Usage
from opensearch_ml_stream.connectors.errors import UpstreamError

_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
_FINER_REASONS = {"stop_sequence": "stop", "pause_turn": "stop", "model_context_window_exceeded": "length"}


def stop_reason(ending: Ending) -> str:
    """Return why the answer ended. UpstreamError if the provider broke it off: Anthropic has no reason for that."""
    native = ending.native_finish_reason
    if native is not None and _FINER_REASONS.get(native) == ending.finish_reason:
        return native
    reason = _STOP_REASONS.get(ending.finish_reason)
    if reason is None:
        raise UpstreamError(f"The provider broke its answer off: {native or ending.finish_reason}")
    return reason


def usage_fields(usage: Usage | None) -> dict[str, Any]:
    """Return the counts: `input_tokens` without those of the cache, and 0 for what is not known but has to be there."""
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
    """Return what the ML route's terminal object says and Anthropic's form has no place for."""
    fields: dict[str, Any] = {}
    if ending.finish_reason == "content_filter" and ending.native_finish_reason not in (None, "refusal"):
        fields["native_finish_reason"] = ending.native_finish_reason
    if ending.guardrail is not None:
        fields["guardrail"] = ending.guardrail
    return {**fields, **extra}
