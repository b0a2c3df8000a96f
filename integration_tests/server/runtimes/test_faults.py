"""What a runtime does to itself stays with it: other models, other routes and the server go on."""

import asyncio
import gzip
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from integration_tests.server.runtimes.faulty_models import (
    counted,
    first_lines,
    host_pids,
    infer,
    is_ready,
    said,
    serving_models,
    streamed,
    tensors,
    texts,
)
from integration_tests.server.runtimes.runtime_server import RuntimeServer
from integration_tests.support.conditions import eventually, eventually_async, steady
from integration_tests.support.raw_requests import connected, predict_request
from integration_tests.support.sidecars import Sidecar
from integration_tests.support.worker_processes import runs

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    folder = tmp_path_factory.mktemp("runtimes")
    with serving_models(folder, "obedient", "steady") as running:
        yield running


@pytest.fixture
async def client(sidecar: Sidecar) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=sidecar.url, timeout=60) as opened:
        yield opened


async def test_a_killed_process_ends_each_of_its_streams_with_one_error_and_no_other_stream(
    sidecar: Sidecar, client: httpx.AsyncClient
) -> None:
    await eventually_async(lambda: is_ready(sidecar, "obedient"))
    (pid,) = host_pids(sidecar, "obedient")
    begun = [asyncio.Event() for _ in range(5)]
    killed = []
    async with asyncio.TaskGroup() as group:
        for event in begun:
            killed.append(group.create_task(first_lines(client, "obedient", "count 100000 0.02", event)))
            await event.wait()
        others = [group.create_task(streamed(client, "steady", "count 60 0.02")) for _ in range(2)]
        os.kill(pid, signal.SIGKILL)
    for task in killed:
        *chunks, last = task.result()
        assert "error" in last and not any("error" in chunk for chunk in chunks)
        assert not any('"is_last": true' in json.dumps(chunk) for chunk in chunks)
        assert counted(100_000).startswith(texts(chunks)) and chunks
    for task in others:
        assert texts(task.result()) == counted(60)
        assert "error" not in task.result()[-1]
    await eventually_async(lambda: host_pids(sidecar, "obedient") not in ([], [pid]))
    await eventually_async(lambda: is_ready(sidecar, "obedient"))
    assert texts(await streamed(client, "obedient", "count 3 0")) == counted(3)


def test_a_process_that_exits_in_a_prediction_is_an_error_and_is_started_again(sidecar: Sidecar) -> None:
    response = infer(sidecar, "obedient", "exit")
    assert (response.status_code, "obedient" in response.json()["error"]) == (424, True), response.text
    eventually(lambda: infer(sidecar, "obedient", "again").status_code == 200)


async def test_a_model_that_blocks_stops_neither_other_models_nor_routes_and_a_burst_waits_for_it(
    sidecar: Sidecar, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=sidecar.url, timeout=60, limits=limits) as client:

        async def call(way: str, text: str) -> httpx.Response:
            return await client.post(f"/v2/models/obedient/{way}", json=tensors(text))

        burst = [asyncio.ensure_future(call("infer", f"block {gate}"))]
        try:
            await eventually_async(gate.with_name("gate.waits").exists)
            burst += [asyncio.ensure_future(call("infer_stream", "count 1 0")) for _ in range(199)]
            await eventually_async(lambda: measured(sidecar, "mlstream_streams_open") == 199)
            assert said(infer(sidecar, "steady", "x")) == "steady"
            assert sidecar.client.get("/_health/ready").status_code == 200
            assert sidecar.client.get("/v2/models/obedient").status_code == 200
            assert not any(one.done() for one in burst)  # the model still blocks
        finally:
            gate.touch()
        assert {one.status_code for one in await asyncio.gather(*burst)} == {200}


def measured(sidecar: Sidecar, metric: str) -> float:
    """The value of a metric, by its name and labels; 0 without it."""
    lines = [line for line in sidecar.client.get("/metrics").text.splitlines() if line.startswith(f"{metric} ")]
    return float(lines[0].rpartition(" ")[2]) if lines else 0.0


def memory_bytes(sidecar: Sidecar, model: str) -> float:
    """The resident memory of a model's processes, as the metrics have it."""
    return measured(sidecar, f'mlstream_runtime_memory_bytes{{model_id="runtime-{model}"}}')


def test_a_leak_shows_in_the_metrics_of_that_model_alone(sidecar: Sidecar) -> None:
    eventually(lambda: memory_bytes(sidecar, "obedient") > 0)
    before, other = memory_bytes(sidecar, "obedient"), memory_bytes(sidecar, "steady")
    assert said(infer(sidecar, "obedient", "leak 64")) == "leak 64"
    eventually(lambda: memory_bytes(sidecar, "obedient") - before >= 60 * 2**20)
    assert memory_bytes(sidecar, "steady") - other < 20 * 2**20


async def test_what_a_model_writes_to_standard_output_is_not_in_its_stream_but_in_the_log(
    sidecar: Sidecar, client: httpx.AsyncClient
) -> None:
    assert texts(await streamed(client, "obedient", "print 20 0.01")) == counted(20)
    await eventually_async(lambda: b"printed by the model" in sidecar.log.read_bytes())
    await eventually_async(lambda: b"printed by a child" in sidecar.log.read_bytes())


def state(sidecar: Sidecar) -> tuple[int, int, int]:
    """How many responses the model's streams have yielded, how many were closed before their end, how many are open."""
    yielded, closed, is_open = said(infer(sidecar, "obedient", "state")).split()
    return int(yielded), int(closed), int(is_open)


async def test_a_client_that_disconnects_closes_the_models_generator(
    sidecar: Sidecar, client: httpx.AsyncClient
) -> None:
    _, closed, _ = state(sidecar)
    body = {"parameters": {"inputs": "count 100000 0.01"}}
    path = "/_plugins/_ml/models/runtime-obedient/_predict/stream"
    async with client.stream("POST", path, json=body) as response:
        assert "0 " in await anext(response.aiter_lines())
    await eventually_async(lambda: state(sidecar)[1:] == (closed + 1, 0))


async def test_a_client_that_does_not_read_stops_the_models_generator(sidecar: Sidecar) -> None:
    """The model's stream holds 100 MB; what fits into the buffers on the way is a small part of it."""
    before, _, _ = state(sidecar)
    reader, writer = await connected(sidecar)
    writer.write(predict_request("runtime-obedient", "fill 100000 0"))
    await reader.readline()
    await steady(lambda: state(sidecar)[0], seconds=1)
    ahead = state(sidecar)[0] - before
    assert 0 < ahead < 20_000  # a kilobyte each: the kernel's socket buffers take most of it
    assert said(infer(sidecar, "steady", "x")) == "steady"
    while state(sidecar)[0] - before <= ahead:  # with what was on its way read, the generator goes on
        await reader.read(2**20)
    writer.close()
    await eventually_async(lambda: state(sidecar)[2] == 0)


async def test_two_workers_share_a_models_processes_and_compress_its_streams(server: RuntimeServer) -> None:
    assert len(host_pids(server.sidecar, "steady")) == 1
    headers = {"connection": "close", "accept-encoding": "gzip"}  # a connection each, for both workers to have some
    async with httpx.AsyncClient(base_url=server.sidecar.url, timeout=60, headers=headers) as client:

        async def ask(number: int) -> None:
            path = f"/v2/models/steady/{'infer_stream' if number % 2 else 'generate_stream'}"
            async with client.stream("POST", path, json=tensors(f"count {number} 0.002")) as response:
                assert response.headers["content-encoding"] == "gzip"
                body = gzip.decompress(b"".join([part async for part in response.aiter_raw()]))
            events = [json.loads(line[6:]) for line in body.decode().split("\n") if line.startswith("data: ")]
            assert "".join(event["outputs"][0]["data"][0] for event in events) == counted(number)

        await asyncio.gather(*[ask(number) for number in range(1, 41)])


async def test_a_stop_ends_streams_with_an_error_and_leaves_no_process(tmp_path: Path) -> None:
    settings = {"opensearch_ml_stream.shutdown_grace_seconds": "0.2"}
    with serving_models(tmp_path, "steady", settings=settings) as sidecar:
        (pid,) = host_pids(sidecar)
        begun = asyncio.Event()
        async with httpx.AsyncClient(base_url=sidecar.url, timeout=60) as client:
            task = asyncio.create_task(first_lines(client, "steady", "count 100000 0.01", begun))
            await begun.wait()
            assert await asyncio.to_thread(sidecar.stop) == 0
            *chunks, last = await task
        assert "error" in last and not any("error" in chunk for chunk in chunks)
        await eventually_async(lambda: not runs(pid))
    assert "Traceback" not in sidecar.log.read_text()
