"""The token usage in a provider's whole JSON response, of a generated text, of embeddings or of scores."""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.chunks import Usage
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.event_fields import mapping
from opensearch_ml_stream.connectors.syntax import provider_json
from opensearch_ml_stream.connectors.token_spending import TokenCount, count_tokens, estimate_text_tokens
from opensearch_ml_stream.connectors.unstreamed_response import decode_whole_response

_VECTORS = ("data", "embedding", "embeddings", "embeddingsByType")  # large, and not of tokens
_USAGE_NAMES = {
    "input_tokens": ("input_tokens", "prompt_tokens", "inputTokens", "inputTextTokenCount", "prompt_eval_count"),
    "output_tokens": ("output_tokens", "completion_tokens", "outputTokens", "eval_count"),
    "total_tokens": ("total_tokens", "totalTokens", "totalTokenCount"),
    "cached_tokens": ("cached_tokens",),
    "reasoning_tokens": ("reasoning_tokens",),
    "cache_write_tokens": ("cache_write_tokens",),
}


def count_response_tokens(body: bytes, estimated_input: int) -> TokenCount:
    """Return the tokens of a call by its whole response; estimated where it does not say.

    Vectors are no tokens: a list, and an object with embeddings in it, have no output.
    """
    try:
        value: Any = provider_json.loads(body)
    except ValueError:
        value = None
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    if isinstance(value, list):
        return count_tokens(None, estimated_input, 0)
    if not isinstance(value, dict):
        return count_tokens(None, estimated_input, estimate_text_tokens(len(body)))
    if any(name in value for name in _VECTORS):
        return count_tokens(read_usage(value), estimated_input, 0)
    if (whole := decode_whole_response(value)) is None:
        return count_tokens(read_usage(value), estimated_input, estimate_text_tokens(len(body)))
    chunk, ending = whole
    texts = [chunk.text, chunk.reasoning, *[call.arguments for call in chunk.tool_calls]]
    size = len("".join(texts).encode("utf-8", "replace"))
    return count_tokens(ending.usage or read_usage(value), estimated_input, estimate_text_tokens(size))


def read_usage(response: Mapping[str, Any]) -> Usage:
    """Return the counts where embeddings, rerankers and V2 have them: under a name of their own, or in the response."""
    counts = _find_holder(response)
    return Usage(
        **{
            part: next((event_fields.count(counts[name]) for name in names if name in counts), None)
            for part, names in _USAGE_NAMES.items()
        }
    )


def read_counts(response: Mapping[str, Any]) -> dict[str, int]:
    """Return the counts that `read_usage` reads, by the provider's names; in a member `usage` it reads them again."""
    holder = _find_holder(response)
    names = [name for names in _USAGE_NAMES.values() for name in names if name in holder]
    counts = {name: event_fields.count(holder[name]) for name in names}
    return {name: count for name, count in counts.items() if count is not None}


def _find_holder(response: Mapping[str, Any]) -> Mapping[str, Any]:
    meta, own = mapping(response.get("meta")), mapping(response.get("parameters"))
    billed = (meta.get("billed_units"), meta.get("tokens"))
    places = (response.get("usage"), response.get("usageMetadata"), *billed, own.get("usage"))
    return next((place for place in places if isinstance(place, dict)), response)
