"""Several workers on one port: connections are spread, workers replaced, metrics and limits counted together."""

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest
from integration_tests.support import connector_bodies
from integration_tests.support.conditions import eventually, eventually_async, promptly_async
from integration_tests.support.fake_provider import Act, FakeProvider, openai_stream
from integration_tests.support.sidecars import Sidecar, running_sidecar
from integration_tests.support.worker_processes import runs, worker_pids

QUESTION = {"parameters": {"inputs": "x"}}


async def wait_for_workers(sidecar: Sidecar, number: int, without: int = 0) -> list[int]:
    """The pids of the workers, once so many run and `without` is not one of them."""

    def complete() -> bool:
        pids = worker_pids(sidecar)
        return len(pids) == number and without not in pids

    await eventually_async(complete)
    return worker_pids(sidecar)


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path_factory.mktemp("workers"), arguments=("--workers", "2")) as sidecar:
        yield sidecar


async def test_metrics_and_rate_limits_are_those_of_all_workers(two_workers: Sidecar) -> None:
    async with FakeProvider(openai_stream(["a", "b"])) as provider:
        limiter = {"limit": "30", "unit": "HOURS"}
        model_id = await asyncio.to_thread(
            two_workers.create_model, connector_bodies.openai(provider.url), rate_limiter=limiter
        )
        statuses = []
        for _ in range(40):  # a connection each, so that the kernel spreads them
            async with httpx.AsyncClient(base_url=two_workers.url) as client:
                response = await client.post(f"/_plugins/_ml/models/{model_id}/_predict/stream", json=QUESTION)
                statuses.append(response.status_code)
        assert statuses == [200] * 30 + [429] * 10
        for _ in range(5):
            async with httpx.AsyncClient(base_url=two_workers.url) as client:
                text = (await client.get("/metrics")).text
            counted = dict(re.findall(rf'mlstream_streams_total{{model_id="{model_id}",outcome="(\w+)"}} (\S+)', text))
            assert counted == {"ok": "30.0", "error": "10.0"}
            assert f'mlstream_stream_chunks_total{{model_id="{model_id}"}} 60.0' in text


async def test_a_new_model_of_a_name_is_the_one_that_it_means_on_every_worker_within_two_seconds(
    two_workers: Sidecar,
) -> None:
    request = {"inputs": [{"name": "x", "shape": [1], "datatype": "BYTES", "data": ["a"]}]}
    async with FakeProvider(openai_stream(["a"])) as provider:
        connector = connector_bodies.openai(provider.url)

        async def all_workers_respond(version: str) -> bool:
            for _ in range(12):  # a connection each, so that the kernel spreads them
                async with httpx.AsyncClient(base_url=two_workers.url) as client:
                    response = await client.post("/v2/models/versioned/infer_stream", json=request)
                    if f'"model_version":"{version}"' not in response.text:
                        return False
            return True

        for version in ("1", "2"):
            await asyncio.to_thread(two_workers.create_model, connector, name="versioned")
            await promptly_async(partial(all_workers_respond, version), 2)


async def test_a_changed_setting_is_in_force_on_every_worker_within_two_seconds(two_workers: Sidecar) -> None:
    async with FakeProvider(openai_stream(["a"])) as provider:
        model_id = await asyncio.to_thread(two_workers.create_model, connector_bodies.openai(provider.url))
        path = f"/_plugins/_ml/models/{model_id}/_predict/stream"

        async def all_workers_respond(status: int) -> bool:
            for _ in range(12):  # a connection each, so that the kernel spreads them
                async with httpx.AsyncClient(base_url=two_workers.url) as client:
                    if (await client.post(path, json=QUESTION)).status_code != status:
                        return False
            return True

        for value, status in ((False, 403), (None, 200)):
            change = {"persistent": {"plugins.ml_commons.stream_enabled": value}}
            assert two_workers.client.put("/_plugins/_ml/_settings", json=change).status_code == 200
            await promptly_async(partial(all_workers_respond, status), 2)


async def test_a_worker_that_dies_is_replaced_and_only_its_own_streams_are_lost(two_workers: Sidecar) -> None:
    before = await wait_for_workers(two_workers, 2)
    async with FakeProvider([*openai_stream(["a"])[:3], Act.WAIT]) as provider:
        model_id = await asyncio.to_thread(two_workers.create_model, connector_bodies.openai(provider.url))
        path = f"/_plugins/_ml/models/{model_id}/_predict/stream"
        clients = [httpx.AsyncClient(base_url=two_workers.url, timeout=60) for _ in range(16)]

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
        after = await wait_for_workers(two_workers, 2, without=before[0])
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


def test_a_stop_ends_every_process(tmp_path: Path) -> None:
    with running_sidecar(tmp_path, arguments=("--workers", "2")) as sidecar:
        pids = worker_pids(sidecar)
        assert len(pids) == 2
        assert sidecar.stop() == 0
        assert not any(map(runs, pids))


def test_workers_end_with_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    with running_sidecar(tmp_path, arguments=("--workers", "2")) as sidecar:
        pids = worker_pids(sidecar)
        sidecar.stop(signal.SIGKILL)
        eventually(lambda: not any(map(runs, pids)))


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with running_sidecar(tmp_path) as sidecar:
        port = sidecar.url.rpartition(":")[2]
        for workers in ("1", "2"):
            with (
                pytest.raises(AssertionError, match=f"(?s)the sidecar ended:.*{port}.*in use"),
                running_sidecar(tmp_path, arguments=("--port", port, "--workers", workers)),
            ):
                pass
