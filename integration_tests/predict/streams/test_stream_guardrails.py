"""Output guardrails of streams, over sockets: what a client sees in either wire format, and what the provider sees."""

import json
from typing import Any

import httpx
import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.connector_bodies import anthropic, openai
from integration_tests.support.fake_provider import (
    LAST_CHUNK,
    SSE_HEAD,
    Act,
    Gate,
    Request,
    Script,
    Step,
    anthropic_stream,
    chunk,
    json_response,
    openai_delta,
    openai_stream,
)
from integration_tests.support.predict_calls import connector
from integration_tests.support.sidecars import Sidecar

LONG = [f"word {number:04} " for number in range(60)]  # 600 characters, more than are held
CLEAN = [*LONG, "the end"]


def guarded(**guard: Any) -> dict[str, Any]:
    return {"guardrails": {"output_guardrail": guard}}


def stream(sidecar: Sidecar, model_id: str, accept: str) -> httpx.Response:
    path = f"/_plugins/_ml/models/{model_id}/_predict/stream"
    return sidecar.client.post(path, json={"parameters": {"inputs": "hi"}}, headers={"accept": accept})


def objects(response: httpx.Response) -> list[dict[str, Any]]:
    """The stream's objects, in either format, heartbeats left out."""
    assert response.status_code == 200, response.text
    lines = [line.removeprefix("data: ") for line in response.text.splitlines()]
    return [json.loads(line) for line in lines if line and not line.startswith(":")]


def data_as_maps(response: httpx.Response) -> list[dict[str, Any]]:
    return [found["inference_results"][0]["output"][0]["dataAsMap"] for found in objects(response)]


formats = pytest.mark.parametrize(
    ("accept", "key"), [("*/*", "response"), ("text/event-stream", "content")], ids=["ndjson", "sse"]
)


@formats
@pytest.mark.parametrize("body", [openai, anthropic])
def test_text_without_a_match_arrives_whole(sidecar: Sidecar, accept: str, key: str, body: Any) -> None:
    script = openai_stream(CLEAN) if body is openai else anthropic_stream(CLEAN)
    with background_provider(script) as provider:
        model_id = sidecar.create_model(body(provider.url), **guarded(regex=[".*password.*"]))
        *chunks, last = data_as_maps(stream(sidecar, model_id, accept))
    assert "".join(found[key] for found in chunks) == "".join(CLEAN)
    assert (last["is_last"], last["finish_reason"], "guardrail" in last) == (True, "stop", False)
    assert last["usage"]["output_tokens"] == len(CLEAN)


@formats
@pytest.mark.parametrize("pieces", [["my password is"], ["my pass", "word is"], list("my password is")])
def test_a_match_ends_the_stream_in_its_own_form_and_closes_the_providers(
    sidecar: Sidecar, accept: str, key: str, pieces: list[str]
) -> None:
    events = [chunk(openai_delta(text)) for text in [*LONG, *pieces, *LONG]]
    with background_provider([SSE_HEAD, *events, Act.WAIT]) as provider:
        model_id = sidecar.create_model(openai(provider.url), **guarded(regex=[".*password.*"]))
        *chunks, last = data_as_maps(stream(sidecar, model_id, accept))
        eventually(lambda: provider.open_connections == 0)
    text = "".join(found[key] for found in chunks)
    assert "".join([*LONG, *pieces]).startswith(text)
    assert "password" not in text
    assert last == {key: "", "is_last": True, "finish_reason": "content_filter", "guardrail": "regex[0]"}


def test_the_first_text_comes_before_the_stream_has_ended(sidecar: Sidecar) -> None:
    gate = Gate()
    events = [chunk(openai_delta(text)) for text in LONG]
    with background_provider([SSE_HEAD, *events, gate, Act.CLOSE]) as provider:
        model_id = sidecar.create_model(openai(provider.url), **guarded(regex=[".*password.*"]))
        path = f"/_plugins/_ml/models/{model_id}/_predict/stream"
        with sidecar.client.stream("POST", path, json={"parameters": {"inputs": "hi"}}) as response:
            lines = response.iter_lines()
            assert '"response":"word' in next(lines)  # more of it, if more events came in the first read
            gate.open()
            *_, last = lines
    assert json.loads(last)["error"]["type"] == "stream_truncated_exception"


def test_a_pattern_for_the_whole_text_holds_it_while_heartbeats_go_on(hasty_sidecar: Sidecar) -> None:
    gate = Gate()
    begun = [chunk(openai_delta(text)) for text in ("no, ", "never, ", "ever")]
    with background_provider([SSE_HEAD, *begun, gate, chunk(b"data: [DONE]\n\n"), LAST_CHUNK]) as provider:
        model_id = hasty_sidecar.create_model(openai(provider.url), **guarded(regex=["yes.*"]))
        path = f"/_plugins/_ml/models/{model_id}/_predict/stream"
        with hasty_sidecar.client.stream("POST", path, json={"parameters": {"inputs": "hi"}}) as response:
            lines = response.iter_lines()
            assert [next(lines) for _ in range(3)] == [""] * 3
            gate.open()
            assert "no, never, ever" in next(line for line in lines if line)


def judge(request: Request) -> Script:
    return json_response({"verdict": "reject" if "bomb" in request.json()["q"] else "accept"})


def guarded_by(guard_id: str) -> dict[str, Any]:
    guard = {"model_id": guard_id, "response_filter": "$.verdict", "response_validation_regex": "accept"}
    return {"guardrails": {"type": "model", "output_guardrail": guard}}


@formats
def test_a_guard_model_reads_each_sentence_before_the_client_does(sidecar: Sidecar, accept: str, key: str) -> None:
    sentences = [("Bake ", "a cake. "), ("Light", " a candle. "), ("Build a bo", "mb. ", "Run.")]
    gates = [Gate() for _ in sentences]
    judged = iter(gates)
    script: list[Step] = [SSE_HEAD]
    for pieces, gate in zip(sentences, gates, strict=True):
        script += [*(chunk(openai_delta(text)) for text in pieces), gate]  # none comes before the one ahead was judged

    def judge_next(request: Request) -> Script:
        next(judged).open()
        return judge(request)

    with background_provider(judge_next) as judging, background_provider([*script, Act.WAIT]) as provider:
        guard_id = sidecar.create_model(connector(judging.url, '{"q": "${parameters.question}"}'))
        model_id = sidecar.create_model(openai(provider.url), **guarded_by(guard_id))
        *chunks, last = data_as_maps(stream(sidecar, model_id, accept))
    assert "".join(found[key] for found in chunks) == "Bake a cake. Light a candle."
    assert last["finish_reason"] == "content_filter"
    assert last["guardrail"] == f"guard model [{guard_id}]"
    assert judging.requests[0].json()["q"] == "Bake a cake."


@formats
def test_a_guard_model_that_fails_is_an_error_and_no_text_passes(sidecar: Sidecar, accept: str, key: str) -> None:
    broken = json_response({"error": "over quota"}, 429)
    with background_provider(broken) as judging, background_provider(openai_stream(["One. ", "Two."])) as provider:
        guard_id = sidecar.create_model(connector(judging.url, '{"q": "${parameters.question}"}'))
        model_id = sidecar.create_model(openai(provider.url), **guarded_by(guard_id))
        response = stream(sidecar, model_id, accept)
    assert response.status_code == 424
    assert response.json()["error"]["reason"].startswith(f"its guard model [{guard_id}] cannot be called: ")
    assert "One" not in response.text
