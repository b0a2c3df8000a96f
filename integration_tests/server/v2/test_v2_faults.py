"""What goes wrong at `/v2`: clients that leave, providers that fail, a sidecar that stops, requests that are none."""

import asyncio
import gzip
import signal
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from integration_tests.predict.streams.stream_calls import openai_model
from integration_tests.server.v2.v2_calls import GENERATE, events, model_path, texts
from integration_tests.support.conditions import eventually_async
from integration_tests.support.fake_provider import (
    LAST_CHUNK,
    SSE_HEAD,
    Act,
    FakeProvider,
    Script,
    chunk,
    json_response,
    openai_delta,
)
from integration_tests.support.sidecars import START_SECONDS, Sidecar, running_sidecar
from integration_tests.support.worker_processes import runs, worker_pids

CUT: Script = [SSE_HEAD, chunk(openai_delta("Hel")), Act.CLOSE]


@pytest.mark.parametrize("operation", ["infer", "infer_stream"])
@pytest.mark.parametrize("begun", [False, True], ids=["silent", "talking"])
async def test_a_client_that_disconnects_frees_the_provider(
    client: httpx.AsyncClient, two_workers: Sidecar, operation: str, begun: bool
) -> None:
    script: Script = [SSE_HEAD, chunk(openai_delta("x")), Act.WAIT] if begun else [Act.WAIT]
    async with FakeProvider(script) as provider:
        path = model_path(await openai_model(two_workers, provider.url), operation)
        calling = asyncio.create_task(client.post(path, json=GENERATE))
        await eventually_async(provider.called.is_set)
        calling.cancel()
        with suppress(asyncio.CancelledError):
            await calling
        await eventually_async(provider.disconnected.is_set)


@pytest.mark.parametrize("accepted", ["gzip", "identity"])
async def test_a_provider_that_breaks_off_ends_the_stream_with_an_error_event(
    client: httpx.AsyncClient, two_workers: Sidecar, accepted: str
) -> None:
    async with FakeProvider(CUT) as provider:
        path = model_path(await openai_model(two_workers, provider.url), "infer_stream")
        response = await client.post(path, json=GENERATE, headers={"Accept-Encoding": accepted})
    *before, last = events(response.text)
    assert (response.status_code, texts(before), last["status"]) == (200, ["Hel"], 424)
    assert isinstance(last["error"], str)


@pytest.mark.parametrize("operation", ["infer", "infer_stream"])
@pytest.mark.parametrize(("status", "seen"), [(400, 400), (401, 424), (429, 429), (500, 424)])
async def test_a_provider_that_refuses_is_a_status_with_an_error(
    client: httpx.AsyncClient, two_workers: Sidecar, operation: str, status: int, seen: int
) -> None:
    async with FakeProvider(json_response({"error": {"message": "no"}}, status, retry_after="7")) as provider:
        path = model_path(await openai_model(two_workers, provider.url), operation)
        response = await client.post(path, json=GENERATE)
    assert response.status_code == seen and isinstance(response.json()["error"], str), response.text
    assert seen != 429 or response.headers["retry-after"] == "7"
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize("operation", ["infer", "generate", "infer_stream", "generate_stream"])
async def test_requests_for_what_is_not_there_are_refused_in_mlservers_words(
    client: httpx.AsyncClient, operation: str
) -> None:
    for version, name in ((None, "Model my-model not found"), ("v0", "Model my-model with version v0 not found")):
        response = await client.post(model_path("my-model", operation, version), json=GENERATE)
        assert (response.status_code, response.json()) == (404, {"error": name})


async def test_a_body_that_is_no_request_is_refused_with_fastapis_detail(
    client: httpx.AsyncClient, two_workers: Sidecar
) -> None:
    wrong = {"inputs": [{"name": "a", "shape": [1], "datatype": "INT65", "data": [1]}]}
    path = model_path(await openai_model(two_workers, "http://127.0.0.1:1/v1"), "infer")
    response = await client.post(path, json=wrong)
    assert response.status_code == 422
    assert response.json()["detail"][0]["msg"].startswith("Input should be 'BOOL', 'UINT8'")
    bomb = gzip.compress(b" " * 20_000_000)
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    response = await client.post(path, content=bomb, headers=headers)
    assert response.status_code == 413 and isinstance(response.json()["error"], str)


async def test_a_stop_ends_streams_with_an_error_event_and_then_every_process(tmp_path: Path) -> None:
    settings = {"opensearch_ml_stream.shutdown_grace_seconds": "0.3", "opensearch_ml_stream.v2.gzip": "false"}
    with running_sidecar(tmp_path, settings=settings, arguments=("--workers", "2")) as sidecar:
        workers = worker_pids(sidecar)
        async with (
            FakeProvider([SSE_HEAD, chunk(openai_delta("Hel")), Act.WAIT, LAST_CHUNK]) as provider,
            httpx.AsyncClient(base_url=sidecar.url, timeout=20) as client,
        ):
            path = model_path(await openai_model(sidecar, provider.url), "infer_stream")
            async with client.stream("POST", path, json=GENERATE) as response:
                received = response.aiter_text()
                text = await anext(received)
                sidecar.process.send_signal(signal.SIGTERM)
                text += "".join([part async for part in received])
            assert await asyncio.to_thread(sidecar.process.wait, START_SECONDS) == 0
    assert "content-encoding" not in response.headers, "as the setting says"
    assert [event.get("status") for event in events(text)] == [None, 503]
    assert len(workers) == 2 and not any(map(runs, workers))
