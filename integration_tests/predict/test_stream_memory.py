"""The memory that an open stream holds, whatever its client sends and however slowly it reads."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from integration_tests.support import connector_bodies
from integration_tests.support.conditions import PATIENCE_SECONDS, eventually_async, steady
from integration_tests.support.fake_provider import SSE_HEAD, Act, FakeProvider, chunk, openai_delta
from integration_tests.support.raw_requests import connected, predict_request
from integration_tests.support.sidecars import Sidecar, running_sidecar
from integration_tests.support.worker_processes import MIB, resident_mib, worker_pids

pytestmark = pytest.mark.slow
STREAMS = 16


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MALLOC_MMAP_THRESHOLD_", str(128 * 1024))  # what is large and freed goes back at once
        with running_sidecar(tmp_path_factory.mktemp("sidecar")) as running:
            yield running


def resident(sidecar: Sidecar) -> float:
    (worker,) = worker_pids(sidecar)
    return resident_mib(worker)


@asynccontextmanager
async def open_streams(sidecar: Sidecar, model_id: str, prompt: str) -> AsyncIterator[list[asyncio.StreamReader]]:
    """STREAMS clients that have received their response heads, and that read no further by themselves."""
    opened = [await connected(sidecar) for _ in range(STREAMS)]
    try:
        for _, writer in opened:
            writer.write(predict_request(model_id, prompt))
        for reader, _ in opened:
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        yield [reader for reader, _ in opened]
    finally:
        for _, writer in opened:
            writer.transport.abort()


@pytest.mark.parametrize("retries", [0, 1])
async def test_a_prompt_is_not_kept_while_its_response_streams(sidecar: Sidecar, retries: int) -> None:
    prompt = "long " * 500_000
    async with FakeProvider([SSE_HEAD, chunk(openai_delta("first")), Act.WAIT]) as provider:
        connector = connector_bodies.openai(provider.url, client_config={"max_retry_times": retries})
        model_id = await asyncio.to_thread(sidecar.create_model, connector)
        async with open_streams(sidecar, model_id, "short"):
            before = resident(sidecar)
        async with open_streams(sidecar, model_id, prompt):
            await eventually_async(lambda: (resident(sidecar) - before) / STREAMS < len(prompt) / MIB / 2)


async def test_a_stream_whose_reader_stalls_holds_about_a_mebibyte(sidecar: Sidecar) -> None:
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(SSE_HEAD)
        try:
            while True:
                writer.write(chunk(openai_delta("x" * 20)) * 500)
                await writer.drain()
        except ConnectionError:
            writer.close()

    async with await asyncio.start_server(flood, "127.0.0.1", 0) as provider:
        url = f"http://127.0.0.1:{provider.sockets[0].getsockname()[1]}"
        model_id = await asyncio.to_thread(sidecar.create_model, connector_bodies.openai(url))
        before = resident(sidecar)
        async with open_streams(sidecar, model_id, "go on") as readers:
            await steady(lambda: resident(sidecar), tolerance=0.1)
            held = (resident(sidecar) - before) / STREAMS
            resumed: Any = await asyncio.wait_for(readers[0].readuntil(b"xxxx"), PATIENCE_SECONDS)
    assert held < 1.5
    assert resumed
