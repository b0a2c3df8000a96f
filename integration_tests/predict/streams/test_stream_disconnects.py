"""Clients that disconnect or stop reading, and a sidecar that stops while streams run."""

import asyncio
import signal
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from integration_tests.predict.streams.stream_calls import QUESTION, data_as_map, lines, openai_model, stream_path
from integration_tests.support import connector_bodies
from integration_tests.support.conditions import PATIENCE_SECONDS, eventually_async
from integration_tests.support.fake_provider import (
    LAST_CHUNK,
    SSE_HEAD,
    Act,
    FakeProvider,
    Gate,
    Script,
    chunk,
    openai_delta,
)
from integration_tests.support.raw_requests import connected, predict_request
from integration_tests.support.sidecars import Sidecar, running_sidecar


class Reading:
    """A task that reads a stream to its end; `text` is what it has received so far."""

    def __init__(self, client: httpx.AsyncClient, model_id: str) -> None:
        self.text = ""
        self.task = asyncio.create_task(self._read(client, model_id))

    async def _read(self, client: httpx.AsyncClient, model_id: str) -> None:
        async with client.stream("POST", stream_path(model_id), json=QUESTION) as response:
            async for text in response.aiter_text():
                self.text += text

    async def disconnect(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task


async def patient_model(sidecar: Sidecar, provider_url: str) -> str:
    """A model whose silent provider is not given up before a test is."""
    patient = connector_bodies.openai(provider_url, client_config={"read_timeout": 600})
    return await asyncio.to_thread(sidecar.create_model, patient)


@pytest.mark.parametrize(
    ("script", "text"),
    [
        pytest.param([Act.WAIT], "", id="before the head"),
        pytest.param([SSE_HEAD, chunk(openai_delta("Hel")), Act.WAIT], "Hel", id="in the middle, silent"),
        pytest.param([SSE_HEAD, *[chunk(openai_delta("x")), 0.01] * 5000], "x", id="in the middle, talking"),
    ],
)
async def test_a_client_that_disconnects_frees_the_provider(
    client: httpx.AsyncClient, sidecar: Sidecar, script: Script, text: str
) -> None:
    async with FakeProvider(script) as provider:
        reading = Reading(client, await patient_model(sidecar, provider.url))
        await eventually_async(lambda: provider.called.is_set() and text in reading.text)
        await reading.disconnect()
        await eventually_async(provider.disconnected.is_set)


async def test_a_client_of_predict_that_disconnects_frees_the_provider(
    client: httpx.AsyncClient, sidecar: Sidecar
) -> None:
    async with FakeProvider([Act.WAIT]) as provider:
        path = f"/_plugins/_ml/models/{await patient_model(sidecar, provider.url)}/_predict"
        predicting = asyncio.create_task(client.post(path, json=QUESTION))
        await asyncio.wait_for(provider.called.wait(), PATIENCE_SECONDS)
        predicting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await predicting
        await eventually_async(provider.disconnected.is_set)


async def test_a_client_that_stops_reading_stops_the_reading_of_the_provider(
    client: httpx.AsyncClient, sidecar: Sidecar
) -> None:
    offered, sent, disconnected = 50_000_000, 0, asyncio.Event()

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        piece = chunk(openai_delta("x" * 10_000))
        writer.write(SSE_HEAD)
        try:
            while sent < offered:
                writer.write(piece)
                sent += len(piece)
                await writer.drain()
        except ConnectionError:
            disconnected.set()

    async with await asyncio.start_server(flood, "127.0.0.1", 0) as provider:
        url = f"http://127.0.0.1:{provider.sockets[0].getsockname()[1]}"
        model_id = await openai_model(sidecar, url)
        _, writer = await connected(sidecar)
        writer.write(predict_request(model_id, "go on"))
        await eventually_async(lambda: sent > 0)
        before = -1
        while before < sent:  # the sidecar serves others meanwhile, and would read what can be read
            before = sent
            for _ in range(50):
                await client.get("/_health/live")
        # What was sent lies in the sockets' buffers (a few MiB each, the kernel's choice) and in two of 64 KiB.
        assert sent < offered / 2
        writer.transport.abort()
        await eventually_async(disconnected.is_set)


async def test_a_stop_lets_streams_end_and_a_second_one_cuts_the_rest_with_an_error_object(tmp_path: Path) -> None:
    gate = Gate()
    begun = [SSE_HEAD, chunk(openai_delta("Hel"))]
    settings = {"opensearch_ml_stream.shutdown_grace_seconds": "600"}
    with running_sidecar(tmp_path, settings=settings) as sidecar:
        async with (
            FakeProvider([*begun, gate, chunk(b"data: [DONE]\n\n"), LAST_CHUNK]) as gated,
            FakeProvider([*begun, Act.WAIT]) as silent,
            httpx.AsyncClient(base_url=sidecar.url, timeout=20) as client,
        ):
            readings = [Reading(client, await openai_model(sidecar, provider.url)) for provider in (gated, silent)]
            await eventually_async(lambda: all("Hel" in reading.text for reading in readings))
            sidecar.process.send_signal(signal.SIGTERM)

            async def refuses_connections() -> bool:
                try:
                    await client.get("/_health/live", headers={"connection": "close"})
                except httpx.ConnectError:
                    return True
                except (httpx.RemoteProtocolError, httpx.ReadError):
                    return False  # this one came while the port was being closed; the next is refused
                return False

            await eventually_async(refuses_connections)
            gate.open()
            await readings[0].task
            assert not readings[1].task.done()
            sidecar.process.send_signal(signal.SIGTERM)
            await readings[1].task
            finished, cut = (lines(reading.text)[-1] for reading in readings)
            assert data_as_map(finished)["is_last"] is True
            assert cut["status"] == 503
            await asyncio.wait_for(silent.disconnected.wait(), PATIENCE_SECONDS)
        assert await asyncio.to_thread(sidecar.process.wait, PATIENCE_SECONDS) == 0
