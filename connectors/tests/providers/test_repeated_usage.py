"""Usage that a provider reports more than once: a later report of nothing takes no count back."""

from collections.abc import Callable
from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Ending, Usage
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.connectors.stream_parameter import read_stream_spec
from tests.providers.eventstream_frames import event, invoke_chunk
from tests.providers.recorded_streams import play
from tests.providers.stream_bodies import ndjson, sse

OPENAI = ("prompt_tokens", "completion_tokens")
OURS = ("input_tokens", "output_tokens")


def openai_usage(*counts: int) -> dict[str, int]:
    return {**dict(zip(OPENAI, counts, strict=True)), "total_tokens": sum(counts)}


def chat(*counts: int) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}
    return {"choices": [choice], "usage": openai_usage(*counts)}


def gemini(*counts: int) -> dict[str, Any]:
    usage = dict(zip(("promptTokenCount", "candidatesTokenCount"), counts, strict=True))
    return {"candidates": [{"finishReason": "STOP"}], "usageMetadata": {**usage, "totalTokenCount": sum(counts)}}


def anthropic(*counts: int) -> list[dict[str, Any]]:
    first, *others = (dict(zip(OURS, one, strict=True)) for one in (counts[:2], counts[2:]))
    start = {"type": "message_start", "message": {"usage": first}}
    deltas = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage} for usage in others]
    return [start, *deltas, {"type": "message_stop"}]


def interactions(*counts: int) -> list[dict[str, Any]]:
    names = ("total_input_tokens", "total_output_tokens")
    usages = [dict(zip(names, one, strict=True)) for one in (counts[:2], counts[2:])]
    return [
        {"event_type": "interaction.created", "interaction": {"usage": usages[0]}},
        {"event_type": "interaction.completed", "interaction": {"status": "completed", "usage": usages[1]}},
    ]


def converse(*counts: int) -> bytes:
    usages = [dict(zip(("inputTokens", "outputTokens"), one, strict=True)) for one in (counts[:2], counts[2:])]
    first, last = (event("metadata", {"usage": usage}) for usage in usages)
    return first + event("messageStop", {"stopReason": "end_turn"}) + last


def titan(*counts: int) -> bytes:
    names = ("inputTextTokenCount", "totalOutputTextTokenCount")
    events = [dict(zip(names, one, strict=True)) for one in (counts[:2], counts[2:])]
    return b"".join(invoke_chunk({"outputText": "a", "completionReason": "FINISH", **one}) for one in events)


STREAMS: dict[str, Callable[..., bytes]] = {
    "openai/v1/chat/completions": lambda *counts: sse(chat(*counts[:2]), chat(*counts[2:]), "[DONE]"),
    "gemini/v1beta/generatecontent": lambda *counts: sse(gemini(*counts[:2]), gemini(*counts[2:])),
    "gemini/v1beta/interactions": lambda *counts: sse(*interactions(*counts)),
    "anthropic/v1/messages": lambda *counts: sse(*anthropic(*counts)),
    "bedrock/converse": converse,
    "bedrock/invoke": titan,
    "cloudflare/ai/run": lambda *counts: sse(
        {"response": "a", "usage": openai_usage(*counts[:2])}, {"response": "", "usage": openai_usage(*counts[2:])},
        "[DONE]",
    ),
    "dashscope/generation": lambda *counts: sse(*(
        {"output": {"text": "a", "finish_reason": "stop"}, "usage": dict(zip(OURS, one, strict=True))}
        for one in (counts[:2], counts[2:])
    )),
}  # fmt: skip


@pytest.mark.parametrize("preset", STREAMS)
@pytest.mark.parametrize(
    ("later", "counts"), [((0, 0), (12, 34)), ((0, 40), (12, 40)), ((13, 0), (13, 34)), ((13, 40), (13, 40))]
)
def test_a_later_count_of_nothing_takes_none_back(preset: str, later: tuple[int, int], counts: tuple[int, int]) -> None:
    _, outcome = play(SHIPPED.presets[preset].decoder(), [STREAMS[preset](12, 34, *later)])
    assert isinstance(outcome, Ending)
    usage = outcome.usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == counts
    assert usage.total_tokens in (None, max(46, sum(later)))


def test_that_holds_for_a_connectors_own_stream_too() -> None:
    spec = read_stream_spec('{"framing":"ndjson","events":{"text":"$.t","usage":"$.u"}}')
    body = ndjson({"t": "a", "u": openai_usage(1, 2)}, {"t": "b", "u": openai_usage(0, 0)})
    _, outcome = play(spec.decoder(), [body])
    assert outcome == Ending(usage=Usage(1, 2, 3))


def test_input_that_is_all_from_a_cache_is_counted_anew() -> None:
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}}
    usage = {"input_tokens": 0, "cache_read_input_tokens": 9, "output_tokens": 2}
    delta = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}
    decoder = SHIPPED.presets["anthropic/v1/messages"].decoder()
    _, outcome = play(decoder, [sse(start, delta, {"type": "message_stop"})])
    assert isinstance(outcome, Ending)
    assert outcome.usage == Usage(9, 2, cached_tokens=9)


def test_details_that_a_later_count_leaves_out_stay() -> None:
    earlier = Usage(9, 5, 14, cached_tokens=4, reasoning_tokens=2, cache_write_tokens=1)
    assert Usage(9, 6, 15, cached_tokens=0).after(earlier) == Usage(9, 6, 15, 4, 2, 1)
    assert Usage(0, 0).after(None) == Usage(0, 0)
    assert Usage(None, 0).after(Usage(0, None)) == Usage(0, 0)
