"""DashScope, watsonx, Workers AI and the dialects of OpenAI's chat: what their recordings do not show."""

import json
from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.errors import StreamTruncated
from tests.providers.stream_bodies import decode, delta, ending_of, error_of, sse

CHAT = "openai/v1/chat/completions"
DASHSCOPE = "dashscope/generation"
WATSONX = ("watsonx/text/chat", "watsonx/text/generation")
RUN = "cloudflare/ai/run"


def event(name: str, payload: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(payload)}\n\n".encode()


def message(finish: str = "null", **fields: Any) -> dict[str, Any]:
    return {"output": {"choices": [{"message": {"role": "assistant", **fields}, "finish_reason": finish}]}}


def result(text: str, finish: str = "not_finished", **counts: int) -> dict[str, Any]:
    return {"results": [{"generated_text": text, "stop_reason": finish, **counts}]}


@pytest.mark.parametrize(
    ("code", "status"),
    [("InvalidParameter", 400), ("Throttling.RateQuota", 429), ("InvalidApiKey", 401), ("Unheard.Of", None)],
)
def test_dashscopes_error_has_its_code_and_status(code: str, status: int | None) -> None:
    body = sse(message(content="a")) + event("error", {"code": code, "message": "too long", "request_id": "r"})
    error = error_of(DASHSCOPE, body)
    assert (error.reason, error.provider_status) == ("Error from remote service: too long", status)
    assert error.provider.code == code


def test_dashscopes_multimodal_models_send_their_text_in_parts() -> None:
    events = [message(content=[{"text": "A "}, {"image": "x"}, {"text": "cat"}]), message("stop", content=[])]
    chunks, outcome = decode(DASHSCOPE, sse(*events))
    assert (chunks, outcome) == ([Chunk("A cat")], Ending(native_finish_reason="stop"))


def test_a_dashscope_stream_whose_finish_reason_is_null_is_truncated() -> None:
    assert isinstance(decode(DASHSCOPE, sse(message(content="a")))[1], StreamTruncated)


@pytest.mark.parametrize("preset", WATSONX)
def test_watsonxs_errors_are_events_of_their_own(preset: str) -> None:
    payload = {"errors": [{"code": "token_quota_reached", "message": "quota"}], "trace": "t", "status_code": 403}
    error = error_of(preset, event("error", payload))
    assert (error.reason, error.provider_status) == ("Error from remote service: quota", 403)


@pytest.mark.parametrize(("native", "reason"), [("max_tokens", "length"), ("time_limit", "length"), ("error", "error")])
def test_a_watsonx_stop_reason_is_translated(native: str, reason: str) -> None:
    assert ending_of(WATSONX[1], sse(result("a"), result("", native))) == Ending(reason, native)


def test_watsonx_counts_its_input_once_and_its_output_so_far() -> None:
    events = [
        result("a", input_token_count=7, generated_token_count=1),
        result("b", input_token_count=0, generated_token_count=2),
        result("", "eos_token", input_token_count=0, generated_token_count=0),
    ]
    assert ending_of(WATSONX[1], sse(*events)).usage == Usage(7, 2)
    assert isinstance(decode(WATSONX[1], sse(*events[:2]))[1], StreamTruncated)


def test_workers_ai_needs_its_terminator_unless_it_gives_a_finish_reason() -> None:
    assert isinstance(decode(RUN, sse({"response": "a"}))[1], StreamTruncated)
    assert ending_of(RUN, sse({"response": "a"}, "[DONE]")) == Ending()
    assert ending_of(RUN, sse({"response": "a", "finish_reason": "length"})) == Ending("length", "length")


def test_workers_ai_sends_openais_events_for_some_models() -> None:
    assert decode(RUN, sse(delta(content="a"), delta("stop"), "[DONE]")) == (
        [Chunk("a")],
        Ending(native_finish_reason="stop"),
    )


def test_workers_ai_reports_an_error_under_a_good_status() -> None:
    assert error_of(RUN, sse({"response": "a"}, {"error": {"message": "capacity", "code": 3040}})).reason == (
        "Error from remote service: capacity"
    )


def test_groq_says_in_its_own_field_why_a_stream_stops_early() -> None:
    error = error_of(CHAT, sse(delta(content="a"), {"choices": [], "x_groq": {"id": "r", "error": "over capacity"}}))
    assert error.reason == "Error from remote service: over capacity"


def test_perplexitys_usage_of_every_event_ends_as_that_of_the_last() -> None:
    def counted(finish: str | None, tokens: int, text: str) -> dict[str, Any]:
        usage = {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": 1 + tokens}
        return {**delta(finish, content=text), "usage": usage}

    texts = ["a", "b", "c", "d"]
    events = [counted(None, number, text) for number, text in enumerate(texts, 1)]
    chunks, outcome = decode("perplexity/chat/completions", sse(*events, counted("stop", 9, ""), "[DONE]"))
    assert [chunk.text for chunk in chunks] == texts
    assert isinstance(outcome, Ending) and outcome.usage == Usage(1, 9, 10)
