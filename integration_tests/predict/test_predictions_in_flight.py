"""Caps on predictions in flight over two workers, and times of provider calls, over real sockets."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest
from integration_tests.predict.generate_stream.tutorial import Tutorial
from integration_tests.support import connector_bodies
from integration_tests.support.conditions import eventually_async
from integration_tests.support.fake_provider import (
    SSE_HEAD,
    Act,
    FakeProvider,
    Gate,
    Request,
    Script,
    chunk,
    json_response,
    openai_delta,
    openai_stream,
)
from integration_tests.support.sidecars import Sidecar
from integration_tests.support.worker_processes import listeners, worker_pids

QUESTION = {"parameters": {"inputs": "x"}}


@pytest.fixture
def sidecar(tutorial: Tutorial) -> Sidecar:
    """Of two workers."""
    return tutorial.sidecar


class Model:
    """A model with limits over a scripted provider; every call has a connection of its own."""

    def __init__(self, sidecar: Sidecar, provider: FakeProvider, model_id: str) -> None:
        self.provider = provider
        self._sidecar = sidecar
        self.path = f"/_plugins/_ml/models/{model_id}/_predict"

    async def call(self, route: str = "/stream") -> httpx.Response:
        # Without TLS, whose certificates would take more time to read than all else.
        async with httpx.AsyncClient(base_url=self._sidecar.url, timeout=60, verify=False) as client:
            return await client.post(self.path + route, json=QUESTION)

    def start(self, number: int, route: str = "/stream") -> list[asyncio.Task[httpx.Response]]:
        return [asyncio.create_task(self.call(route)) for _ in range(number)]


@asynccontextmanager
async def model_over(
    sidecar: Sidecar, script: Script | Callable[[Request], Script], **limits: float
) -> AsyncIterator[Model]:
    async with FakeProvider(script) as provider:
        connector = connector_bodies.openai(provider.url)
        fields = {"_sidecar": {"limits": limits}}
        yield Model(sidecar, provider, await asyncio.to_thread(sidecar.create_model, connector, **fields))


def statuses(responses: list[httpx.Response]) -> list[int]:
    return sorted(response.status_code for response in responses)


async def test_ten_callers_share_three_places_and_none_is_refused(sidecar: Sidecar) -> None:
    unplayed, gate = [], Gate()

    def respond(request: Request) -> Script:
        unplayed.append(len(model.provider.requests) - model.provider.played)
        whole = json_response({"choices": [{"message": {"content": "a"}}]})
        return [gate, *(openai_stream(["a"]) if request.json().get("stream") else whole)]

    async with model_over(sidecar, respond, max_streams=3) as model:
        calls = [*model.start(5), *model.start(5, "")]
        await eventually_async(lambda: len(model.provider.requests) == 3 and waiting(sidecar) == 7)
        gate.open()
        assert statuses(await asyncio.gather(*calls)) == [200] * 10
        assert len(unplayed) == 10
        assert max(unplayed) == 3


async def test_a_killed_worker_gives_its_places_back(sidecar: Sidecar) -> None:
    script: Script = [SSE_HEAD, chunk(openai_delta("a")), Act.WAIT]
    await eventually_async(lambda: listeners(sidecar.url) == 2)
    async with model_over(sidecar, script, max_streams=16) as model, AsyncExitStack() as stack:
        calls = model.start(16)
        stack.callback(lambda: [call.cancel() for call in calls])
        await eventually_async(lambda: len(model.provider.requests) == 16)
        os.kill(worker_pids(sidecar)[0], signal.SIGKILL)
        await eventually_async(lambda: sum(call.done() for call in calls) == model.provider.disconnects > 0)
        lost = model.provider.disconnects
        assert lost < 16
        calls += model.start(lost)
        await eventually_async(lambda: len(model.provider.requests) == 16 + lost)
        calls += model.start(1)
        await eventually_async(lambda: waiting(sidecar) == 1)
        assert len(model.provider.requests) == 16 + lost
        await asyncio.gather(*[call for call in calls if call.done()], return_exceptions=True)


async def test_a_client_that_disconnects_while_it_waits_calls_no_provider(sidecar: Sidecar) -> None:
    gate = Gate()
    async with model_over(sidecar, [gate, *openai_stream(["a"])], max_streams=1) as model:
        first = model.start(1)
        await eventually_async(lambda: len(model.provider.requests) == 1)
        leaver = model.start(1)[0]
        await eventually_async(lambda: waiting(sidecar) == 1)
        leaver.cancel()
        await eventually_async(lambda: waiting(sidecar) == 0)
        gate.open()
        assert statuses(await asyncio.gather(*first, *model.start(1))) == [200, 200]
        assert len(model.provider.requests) == 2


def waiting(sidecar: Sidecar) -> float:
    """How many predictions wait for a place, on all workers."""
    [line] = [
        line
        for line in sidecar.client.get("/metrics").text.splitlines()
        if line.startswith("mlstream_streams_waiting ")
    ]
    return float(line.rpartition(" ")[2])


DRIP: Script = [SSE_HEAD, *[step for _ in range(600) for step in (chunk(openai_delta("a")), 0.05)]]


def last_object(response: httpx.Response) -> dict[str, Any]:
    """The terminal object, the only one of a stream that is an error."""
    assert response.status_code == 200, response.text
    objects = [json.loads(line) for line in response.text.splitlines() if line]
    assert ["error" in item for item in objects] == [False] * (len(objects) - 1) + [True]
    last: dict[str, Any] = objects[-1]
    return last


@pytest.mark.slow
async def test_a_stream_that_drips_ends_with_one_error_object_at_the_total_time(sidecar: Sidecar) -> None:
    async with model_over(sidecar, DRIP, total_timeout_seconds=0.5) as model:
        response, whole = await asyncio.gather(model.call(), model.call(""))
        assert (last_object(response)["status"], whole.status_code) == (424, 424)
        for error in (last_object(response)["error"], whole.json()["error"]):
            assert error["type"] == "timeout_exception"
            assert "not complete within 0.5 s" in error["reason"]
        await eventually_async(lambda: model.provider.disconnects == 2)


@pytest.mark.slow
async def test_a_provider_that_falls_silent_or_does_not_begin_is_let_go(sidecar: Sidecar) -> None:
    limits = {"first_byte_timeout_seconds": 0.3, "between_chunks_timeout_seconds": 0.2}
    async with model_over(sidecar, [SSE_HEAD, chunk(openai_delta("a")), Act.WAIT], **limits) as model:
        assert "sent nothing for 0.2 s in the middle" in last_object(await model.call())["error"]["reason"]
        await eventually_async(lambda: model.provider.disconnects == 1)
    async with model_over(sidecar, [SSE_HEAD, Act.WAIT], **limits) as model:
        for route in ("/stream", ""):
            response = await model.call(route)
            assert response.status_code == 424
            assert "did not begin within 0.3 s" in response.json()["error"]["reason"]
        await eventually_async(lambda: model.provider.disconnects == 2)


@pytest.mark.slow
async def test_a_client_that_reads_nothing_does_not_hold_the_provider_longer(sidecar: Sidecar) -> None:
    flood: Script = [SSE_HEAD, *[chunk(openai_delta("a" * 60_000)) for _ in range(400)], Act.WAIT]
    async with (
        model_over(sidecar, flood, total_timeout_seconds=1) as model,
        httpx.AsyncClient(base_url=sidecar.url, timeout=60) as client,
        client.stream("POST", model.path + "/stream", json=QUESTION),
    ):
        assert model.provider.open_connections == 1
        await eventually_async(lambda: model.provider.open_connections == 0)
