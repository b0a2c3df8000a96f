"""`_diagnose` of models that are stored, through a running sidecar."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from integration_tests.diagnosis.diagnoses import KEY, PROMPT, connector, mutual_tls
from integration_tests.support.certificates import new_authority
from integration_tests.support.fake_provider import (
    SSE_HEAD,
    Act,
    FakeProvider,
    Script,
    chunk,
    json_response,
    openai_delta,
    openai_stream,
)
from integration_tests.support.sidecars import Sidecar

BASE = "/_plugins/_ml"


async def create_model(sidecar: Sidecar, document: dict[str, Any], **fields: Any) -> str:
    return await asyncio.to_thread(sidecar.create_model, document, **fields)


async def ask(sidecar: Sidecar, model_id: str, **body: Any) -> httpx.Response:
    async with httpx.AsyncClient(base_url=sidecar.url, timeout=60) as client:
        body = {"parameters": {"prompt": PROMPT}, **body}
        return await client.post(f"{BASE}/models/{model_id}/_diagnose", json=body)


async def diagnosed(sidecar: Sidecar, script: Script, **body: Any) -> dict[str, Any]:
    async with FakeProvider(script) as provider:
        model_id = await create_model(sidecar, connector(provider.url))
        response = await ask(sidecar, model_id, **body)
    assert response.status_code == 200, response.text
    assert KEY not in response.text
    report: dict[str, Any] = response.json()
    return report


def failed(report: dict[str, Any]) -> dict[str, Any]:
    assert report["works"] is False
    step: dict[str, Any] = next(step for step in report["steps"] if step["verdict"] == "failed")
    return step


async def test_a_healthy_model_works_and_shows_its_stream(shared_sidecar: Sidecar) -> None:
    report = await diagnosed(shared_sidecar, openai_stream(["Deep", " sea"]))
    assert report["works"] is True
    assert set(report) == {"works", "steps", "stream"}
    assert {step["verdict"] for step in report["steps"]} == {"ok", "skipped"}
    assert report["stream"]["outcome"]["usage"]["output_tokens"] == 2
    assert sum(size for _, size in report["stream"]["reads"]) > 100


async def test_what_the_provider_says_is_in_no_report_without_a_recording(shared_sidecar: Sidecar) -> None:
    report = await diagnosed(shared_sidecar, openai_stream(["Unutterable"]))
    assert "Unutterable" not in str(report)
    recorded = await diagnosed(shared_sidecar, openai_stream(["Unutterable"]), record=True)
    assert "Unutterable" in str(recorded["recording"])
    assert recorded["recording"][0]["format"] == "opensearch-ml-stream recording"


async def test_a_provider_that_refuses_the_credential_fails_the_response(shared_sidecar: Sidecar) -> None:
    step = failed(await diagnosed(shared_sidecar, json_response({"error": f"wrong key {KEY}"}, 401)))
    assert (step["name"], step["details"]["status"]) == ("response", 401)


async def test_the_steps_of_tls_are_those_of_the_servers_own_event_loop(
    shared_sidecar: Sidecar, tmp_path: Path
) -> None:
    authority = new_authority()
    for days, works in ((-1, False), (100, True)):
        context = authority.issue("localhost", days).server_context(tmp_path)
        async with FakeProvider(openai_stream(["a"]), context) as provider:
            model_id = await create_model(shared_sidecar, connector(provider.url, **mutual_tls(authority)))
            report = (await ask(shared_sidecar, model_id)).json()
        assert report["works"] is works
        step = next(step for step in report["steps"] if step["name"] == "tls")
        assert step["details"]["certificate"]["subject"] == "CN=localhost"
        assert step["summary"].startswith("The certificate has expired on ") is not works


async def test_a_model_that_is_disabled_or_unknown_is_an_error_as_for_a_prediction(shared_sidecar: Sidecar) -> None:
    async with FakeProvider(openai_stream(["a"])) as provider:
        model_id = await create_model(shared_sidecar, connector(provider.url), is_enabled=False)
        for asked, status in ((model_id, 403), ("none-such", 404)):
            response = await ask(shared_sidecar, asked)
            assert (response.status_code, response.json()["status"]) == (status, status)
        assert provider.requests == []


async def test_a_diagnosis_counts_in_the_models_limits(shared_sidecar: Sidecar) -> None:
    async with FakeProvider(openai_stream(["a"])) as provider:
        limited = {"rate_limiter": {"limit": "1", "unit": "HOURS"}}
        model_id = await create_model(shared_sidecar, connector(provider.url), **limited)
        assert [(await ask(shared_sidecar, model_id)).status_code for _ in range(2)] == [200, 429]
        assert len(provider.requests) == 1


async def test_a_diagnosis_counts_as_a_stream_of_the_model(shared_sidecar: Sidecar) -> None:
    async with FakeProvider(openai_stream(["a", "b"])) as provider, FakeProvider(json_response({}, 500)) as failing:
        model_ids = [await create_model(shared_sidecar, connector(url)) for url in (provider.url, failing.url)]
        for model_id in model_ids:
            await ask(shared_sidecar, model_id)
    good, bad = model_ids
    metrics = (await asyncio.to_thread(shared_sidecar.client.get, "/metrics")).text.splitlines()
    assert f'mlstream_stream_chunks_total{{model_id="{good}"}} 2.0' in metrics
    assert f'mlstream_time_to_first_chunk_seconds_count{{model_id="{good}"}} 1.0' in metrics
    assert f'mlstream_streams_total{{model_id="{good}",outcome="ok"}} 1.0' in metrics
    assert f'mlstream_streams_total{{model_id="{bad}",outcome="error"}} 1.0' in metrics


async def test_a_diagnosis_is_paid_from_the_models_budget_as_the_provider_counts(shared_sidecar: Sidecar) -> None:
    async with FakeProvider(openai_stream(["a", "b"])) as provider:  # 7 tokens
        budget = {"budgets": [{"window": "1d", "tokens": 20}]}
        model_id = await create_model(shared_sidecar, connector(provider.url), _sidecar=budget)
        assert [(await ask(shared_sidecar, model_id)).status_code for _ in range(4)] == [200, 200, 200, 429]
        assert len(provider.requests) == 3


async def test_a_call_that_fails_before_a_response_costs_nothing(shared_sidecar: Sidecar) -> None:
    async with FakeProvider(json_response({}, 401)) as provider:
        budget = {"budgets": [{"window": "1d", "tokens": 1}]}
        model_id = await create_model(shared_sidecar, connector(provider.url), _sidecar=budget)
        assert [(await ask(shared_sidecar, model_id)).status_code for _ in range(3)] == [200] * 3


def _guarded(side: str) -> dict[str, Any]:
    return {"guardrails": {"type": "local_regex", side: {"regex": [".*Alice.*"]}}}


async def test_an_input_guardrail_holds_for_a_diagnosis(shared_sidecar: Sidecar) -> None:
    async with FakeProvider(openai_stream(["a"])) as provider:
        model_id = await create_model(shared_sidecar, connector(provider.url), **_guarded("input_guardrail"))
        response = await ask(shared_sidecar, model_id)
        assert (response.status_code, provider.requests) == (400, [])
        assert "guardrails triggered" in response.text


async def test_guarded_output_is_not_recorded(shared_sidecar: Sidecar) -> None:
    async with FakeProvider(openai_stream(["Alice"])) as provider:
        model_id = await create_model(shared_sidecar, connector(provider.url), **_guarded("output_guardrail"))
        response = await ask(shared_sidecar, model_id, record=True)
        assert (response.status_code, provider.requests) == (400, [])
        assert (await ask(shared_sidecar, model_id)).json()["works"] is True


async def test_a_client_that_disconnects_ends_the_providers_call(shared_sidecar: Sidecar) -> None:
    async with FakeProvider([SSE_HEAD, chunk(openai_delta("a")), Act.WAIT]) as provider:
        model_id = await create_model(shared_sidecar, connector(provider.url))
        asking = asyncio.create_task(ask(shared_sidecar, model_id))
        await asyncio.wait_for(provider.called.wait(), 30)
        asking.cancel()
        await asyncio.wait_for(provider.disconnected.wait(), 30)


async def test_fallback_models_are_not_called(shared_sidecar: Sidecar) -> None:
    refusing: Callable[..., Script] = lambda request: json_response({}, 503)  # noqa: E731
    async with FakeProvider(openai_stream(["a"])) as other, FakeProvider(refusing) as provider:
        fallback = await create_model(shared_sidecar, connector(other.url))
        settings = {"fallback_model_ids": [fallback]}
        model_id = await create_model(shared_sidecar, connector(provider.url), _sidecar=settings)
        assert failed((await ask(shared_sidecar, model_id)).json())["name"] == "response"
        assert other.requests == []
