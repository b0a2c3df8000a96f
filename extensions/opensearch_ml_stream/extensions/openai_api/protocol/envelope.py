"""Members that the objects of one response have in common: id, time, model, token counts."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from opensearch_ml_stream.connectors.chunks import Ending, Usage
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason

OWN_MEMBER = "opensearch_ml_stream"
"""The member for what OpenAI's API has no member for: the fallback model that answered, warnings."""

REASONING, SIGNATURE = "reasoning_content", "reasoning_signature"
"""Members of an assistant's message, in and out, that OpenAI's API itself does not have."""


class Envelope(NamedTuple):
    """Id, time and model of a response that is made here.

    `created` is in seconds since 1970, `model` the name that the client gave.
    """

    id: str
    created: int
    model: str

    def head(self, kind: str) -> dict[str, Any]:
        """Return the members that an object of the response begins with."""
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}

    def call_id(self, index: int) -> str:
        """Return an id for a tool call without one from its provider."""
        return f"call_{self.id.rpartition('-')[2]}_{index}"


def with_refusal(ending: Ending) -> Ending:
    """Return the ending of an answer in which the model refuses in text: OpenAI's API calls that complete."""
    is_cut_off = ending.guardrail is not None or finish_reason(ending.native_finish_reason) != "stop"
    return ending if is_cut_off or ending.finish_reason != "content_filter" else replace(ending, finish_reason="stop")


def usage_object(usage: Usage) -> dict[str, Any]:
    """Return the counts in OpenAI's form: the three totals always, details where they are known."""
    counts = usage.as_dict()
    prompt, completion = counts.get("input_tokens", 0), counts.get("output_tokens", 0)
    prompt_details = {name: counts[name] for name in ("cached_tokens", "cache_write_tokens") if name in counts}
    fields: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": counts.get("total_tokens", prompt + completion),
    }
    if prompt_details:
        fields["prompt_tokens_details"] = prompt_details
    if "reasoning_tokens" in counts:
        fields["completion_tokens_details"] = {"reasoning_tokens": counts["reasoning_tokens"]}
    return fields


def own_fields(ending: Ending, extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of OWN_MEMBER, empty if there is none."""
    return {**({} if ending.guardrail is None else {"guardrail": ending.guardrail}), **extra}
