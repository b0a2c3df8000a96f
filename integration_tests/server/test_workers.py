"""Several workers on one port: connections are spread, workers replaced, metrics and limits counted together."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import grpc
import httpx
import pytest
from integration_tests.predict.streams.stream_calls import QUESTION, openai_model, stream_path
from integration_tests.server.grpc_port.grpc_clients import GRPC
from integration_tests.server.grpc_port.ml_service.grpc_ports import open_port
from integration_tests.server.grpc_port.ml_service.ml_service_client import MLServiceClient, ml_service_client, request
from integration_tests.support import connector_bodies
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually, eventually_async
from integration_tests.support.fake_provider import Act, FakeProvider, openai_stream
from integration_tests.support.sidecars import Sidecar, running_sidecar
from integration_tests.support.worker_processes import listeners, runs, worker_pids


async def wait_for_workers(sidecar: Sidecar, number: int, without: int = 0) -> list[int]:
    """The pids of the workers, once so many run and `without` is not one of them."""

    def complete() -> bool:
        pids = worker_pids(sidecar)
        return len(pids) == number and without not in pids

    await eventually_async(complete)
    return worker_pids(sidecar)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    """Two workers for tests that kill one, or change a setting."""
    with running_sidecar(tmp_path_factory.mktemp("workers"), arguments=("--workers", "2", *GRPC)) as sidecar:
        yield sidecar


@pytest.fixture
async def client(two_workers: Sidecar) -> AsyncIterator[httpx.AsyncClient]:
    """Makes a connection for each request, so that the kernel spreads them."""
    headers = {"Connection": "close"}
    async with httpx.AsyncClient(base_url=two_workers.url, headers=headers, timeout=30) as opened:
        yield opened


async def test_metrics_and_rate_limits_are_those_of_all_workers(
    two_workers: Sidecar, client: httpx.AsyncClient
) -> None:
    async with FakeProvider(openai_stream(["a", "b"])) as provider:
        limiter = {"limit": "30", "unit": "DAYS"}
        model_id = await openai_model(two_workers, provider.url, rate_limiter=limiter)
        statuses = [(await client.post(stream_path(model_id), json=QUESTION)).status_code for _ in range(40)]
        assert statuses == [200] * 30 + [429] * 10
        for _ in range(5):
            text = (await client.get("/metrics")).text
            counted = dict(re.findall(rf'mlstream_streams_total{{model_id="{model_id}",outcome="(\w+)"}} (\S+)', text))
            assert counted == {"ok": "30.0", "error": "10.0"}
            assert f'mlstream_stream_chunks_total{{model_id="{model_id}"}} 60.0' in text


async def test_a_new_model_of_a_name_is_the_one_that_it_means_on_every_worker(
    two_workers: Sidecar, client: httpx.AsyncClient
) -> None:
    """After a second: `extensions/tests/v2/service/test_model_names.py`."""
    request = {"inputs": [{"name": "x", "shape": [1], "datatype": "BYTES", "data": ["a"]}]}
    async with FakeProvider(openai_stream(["a"])) as provider:

        async def versions() -> set[str]:
            responses = [await client.post("/v2/models/versioned/infer_stream", json=request) for _ in range(12)]
            return {version for one in responses for version in re.findall(r'"model_version":"(\d+)"', one.text)}

        for version in ("1", "2"):
            await openai_model(two_workers, provider.url, name="versioned")
            await eventually_async(partial(_are, versions, {version}))


async def test_a_changed_setting_is_in_force_on_every_worker(own: Sidecar) -> None:
    """After a second: `plugin/tests/settings/test_watching_settings.py`."""
    async with FakeProvider(openai_stream(["a"])) as provider:
        path = stream_path(await openai_model(own, provider.url))

        async def statuses() -> set[int]:
            headers = {"Connection": "close"}
            async with httpx.AsyncClient(base_url=own.url, headers=headers, timeout=30) as client:
                return {(await client.post(path, json=QUESTION)).status_code for _ in range(12)}

        for value, status in ((False, 403), (None, 200)):
            change = {"persistent": {"plugins.ml_commons.stream_enabled": value}}
            assert own.client.put("/_plugins/_ml/_settings", json=change).status_code == 200
            await eventually_async(partial(_are, statuses, {status}))


async def _are(values: Callable[[], Awaitable[object]], expected: object) -> bool:
    return await values() == expected


async def test_a_worker_that_dies_is_replaced_and_only_its_own_streams_are_lost(own: Sidecar) -> None:
    before = await wait_for_workers(own, 2)
    async with FakeProvider([*openai_stream(["a"])[:3], Act.WAIT]) as provider:
        path = stream_path(await openai_model(own, provider.url))
        clients = [httpx.AsyncClient(base_url=own.url, timeout=60) for _ in range(16)]

        async def outcome(client: httpx.AsyncClient) -> str:
            try:
                async with client.stream("POST", path, json=QUESTION) as response:
                    async for _ in response.aiter_raw():
                        pass
            except (httpx.RemoteProtocolError, httpx.ReadError):  # perhaps before the response's head was sent
                return "lost"
            return "ended"

        streams = [asyncio.create_task(outcome(client)) for client in clients]
        await eventually_async(lambda: len(provider.requests) == 16)
        os.kill(before[0], signal.SIGKILL)
        after = await wait_for_workers(own, 2, without=before[0])
        assert before[1] in after
        # Its connections to the provider end with the worker, those to its clients at the same moment.
        await eventually_async(lambda: sum(task.done() for task in streams) == provider.disconnects > 0)
        lost = [task for task in streams if task.done()]
        assert {task.result() for task in lost} == {"lost"}
        assert len(lost) < 16
        for task in streams:
            task.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
        for client in clients:
            await client.aclose()


def test_a_worker_that_dies_takes_its_own_grpc_streams_only_and_its_port_is_served_again(own: Sidecar) -> None:
    with (
        open_port(own) as port,
        background_provider([*openai_stream(["a"])[:3], Act.WAIT]) as provider,
        background_provider(openai_stream(["ok"])) as quick,
        ExitStack() as channels,
    ):
        model_id, other = (own.create_model(connector_bodies.openai(one.url)) for one in (provider, quick))
        eventually(lambda: listeners(port.target) == 2)
        options = [("grpc.use_local_subchannel_pool", 1)]
        calls = [
            MLServiceClient(channels.enter_context(grpc.insecure_channel(port.target, options))).start(
                request(model_id)
            )
            for _ in range(16)
        ]
        for call in calls:
            next(call)
        victim, survivor = worker_pids(own)
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: sum(not call.is_active() for call in calls) == provider.disconnects > 0)
        eventually(lambda: len(worker_pids(own)) == 2 and listeners(port.target) == 2)
        assert survivor in worker_pids(own)
        lost = [call for call in calls if not call.is_active()]
        assert len(lost) < len(calls)
        assert {call.code() for call in lost} == {grpc.StatusCode.UNAVAILABLE}
        for call in calls:
            call.cancel()
        for _ in range(6):
            with ml_service_client(port.target) as client:
                assert client.predict(other).text == "ok"


def test_workers_end_with_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    with running_sidecar(tmp_path, arguments=("--workers", "2")) as sidecar:
        pids = worker_pids(sidecar)
        sidecar.stop(signal.SIGKILL)
        eventually(lambda: not any(map(runs, pids)))


def test_a_port_in_use_is_named(shared_sidecar: Sidecar, tmp_path: Path) -> None:
    port = shared_sidecar.url.rpartition(":")[2]
    with (
        pytest.raises(AssertionError, match=f"(?s)the sidecar ended:.*{port}.*in use"),
        running_sidecar(tmp_path, arguments=("--port", port, "--workers", "2")),
    ):
        pass
