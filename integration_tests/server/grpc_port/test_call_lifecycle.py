"""The end of calls: deadlines, clients that leave or are slow, a stop of the server; and limits of both ports."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest
from integration_tests.server.grpc_port.grpc_clients import (
    END,
    GRPC,
    grpc_address,
    infer_request,
    inference_client,
    texts,
)
from integration_tests.support import connector_bodies
from integration_tests.support.conditions import eventually_async
from integration_tests.support.fake_provider import (
    LAST_CHUNK,
    SSE_HEAD,
    Act,
    FakeProvider,
    Gate,
    Request,
    Script,
    chunk,
    openai_delta,
    openai_stream,
)
from integration_tests.support.sidecars import START_SECONDS, Sidecar, running_sidecar

ENDLESS = [*openai_stream(["a"])[:3], Act.WAIT]


async def create_model(sidecar: Sidecar, provider: FakeProvider, name: str) -> str:
    return await asyncio.to_thread(sidecar.create_model, connector_bodies.openai(provider.url), name=name)


async def forever(*requests: Any) -> AsyncIterator[Any]:
    """Requests of a client that does not say that it has no more."""
    for request in requests:
        yield request
    await asyncio.Event().wait()


async def test_a_deadline_that_passes_within_a_stream_ends_the_providers_call(sidecar: Sidecar) -> None:
    async with FakeProvider(ENDLESS) as provider, inference_client(grpc_address(sidecar)) as client:
        await create_model(sidecar, provider, "deadline")
        received: list[Any] = []
        for seconds in (0.5, 2, 8, 32):  # on a busy machine the first may pass before the stream begins
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                async for response in client.stream(infer_request("Hi", "deadline"), timeout=seconds):
                    received.append(response)  # noqa: PERF401 - the list is kept although the stream fails
            assert failed.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
            if received:
                break
        assert texts(received) == ["a"]
        await eventually_async(lambda: provider.disconnects == len(provider.requests))


@pytest.mark.parametrize("method", ["ModelInfer", "ModelStreamInfer"])
async def test_a_cancelled_call_ends_the_providers_call(sidecar: Sidecar, method: str) -> None:
    async with FakeProvider([Act.WAIT]) as provider, inference_client(grpc_address(sidecar)) as client:
        await create_model(sidecar, provider, f"cancelled-{method}")
        request = infer_request("Hi", f"cancelled-{method}")
        call = client.call(method, request) if method == "ModelInfer" else client.stream(request)
        reading = asyncio.ensure_future(call if method == "ModelInfer" else call.read())
        await eventually_async(provider.called.is_set)
        call.cancel()
        await eventually_async(provider.disconnected.is_set)
        with pytest.raises(asyncio.CancelledError):
            await reading


async def test_a_client_whose_connection_breaks_ends_the_providers_call(sidecar: Sidecar) -> None:
    async with FakeProvider(ENDLESS) as provider:
        await create_model(sidecar, provider, "broken")
        async with inference_client(grpc_address(sidecar)) as client:
            call = client.stream(infer_request("Hi", "broken"))
            assert texts([await call.read()]) == ["a"]
        await eventually_async(provider.disconnected.is_set)


async def test_a_slow_client_stops_the_reading_of_the_provider(sidecar: Sidecar) -> None:
    """Another client reads as much meanwhile, so that a server that reads on would have read the stream to its end."""
    number, size = 1_200, 32_000  # more than all buffers between provider, server and client hold
    script = [SSE_HEAD, *[chunk(openai_delta("x" * size))] * number, chunk(b"data: [DONE]\n\n"), LAST_CHUNK]
    async with FakeProvider(script) as provider, FakeProvider(script) as other:
        await create_model(sidecar, provider, "slowly-read")
        await create_model(sidecar, other, "quickly-read")
        async with inference_client(grpc_address(sidecar)) as client, inference_client(grpc_address(sidecar)) as beside:
            slow = client.stream(infer_request("Hi", "slowly-read"))
            assert len(texts([await slow.read()])[0]) == size
            quick = beside.stream(infer_request("Hi", "quickly-read"))
            for _ in range(number):
                assert len(texts([await quick.read()])[0]) == size
            assert (other.played, provider.played, provider.disconnects) == (1, 0, 0)
            for _ in range(number - 1):
                assert len(texts([await slow.read()])[0]) == size
            await eventually_async(lambda: provider.played == 1)


async def test_streams_of_both_ports_count_together(tmp_path: Path) -> None:
    settings = {"opensearch_ml_stream.max_streams": "1"}
    with running_sidecar(tmp_path, settings=settings, arguments=GRPC) as sidecar:
        async with FakeProvider(ENDLESS) as provider, inference_client(grpc_address(sidecar)) as client:
            model_id = await create_model(sidecar, provider, "only-one")
            call = client.stream(infer_request("Hi", "only-one"))
            assert texts([await call.read()]) == ["a"]
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await client.call("ModelInfer", infer_request("Hi", "only-one"))
            assert failed.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
            assert ("retry-after", "1") in tuple(failed.value.trailing_metadata() or ())
            path = f"/_plugins/_ml/models/{model_id}/_predict/stream"
            response = await asyncio.to_thread(sidecar.client.post, path, json={"parameters": {"inputs": "x"}})
            assert response.status_code == 429
            call.cancel()


async def test_a_stop_lets_streams_end_and_turns_waiting_clients_away(tmp_path: Path) -> None:
    gate, whole = Gate(), openai_stream(["a", "b", "c"])

    def quick_or_slow(request: Request) -> Script:
        is_quick = request.json()["messages"][-1]["content"] == "quick"
        return whole if is_quick else [*whole[:3], gate, *whole[3:]]

    settings = {"opensearch_ml_stream.shutdown_grace_seconds": "20"}
    with running_sidecar(tmp_path, settings=settings, arguments=GRPC) as sidecar:
        async with FakeProvider(quick_or_slow) as provider, inference_client(grpc_address(sidecar)) as client:
            await create_model(sidecar, provider, "stopping")
            idle = client.open_stream(forever(infer_request("quick", "stopping")))
            while not (await idle.read()).parameters:
                pass
            running = client.stream(infer_request("slow", "stopping"))
            received = [await running.read()]
            sidecar.process.send_signal(signal.SIGTERM)
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await idle.read()
            assert failed.value.code() == grpc.StatusCode.UNAVAILABLE
            gate.open()
            while (response := await running.read()) is not END:
                received.append(response)
            assert "".join(texts(received)) == "abc"
        assert await asyncio.to_thread(sidecar.process.wait, START_SECONDS) == 0


async def test_a_stream_that_goes_on_is_unavailable_after_the_grace_time(tmp_path: Path) -> None:
    settings = {"opensearch_ml_stream.shutdown_grace_seconds": "0.5"}
    with running_sidecar(tmp_path, settings=settings, arguments=GRPC) as sidecar:
        async with FakeProvider(ENDLESS) as provider, inference_client(grpc_address(sidecar)) as client:
            await create_model(sidecar, provider, "endless")
            call = client.stream(infer_request("Hi", "endless"))
            assert texts([await call.read()]) == ["a"]
            sidecar.process.send_signal(signal.SIGTERM)
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await call.read()
            assert failed.value.code() == grpc.StatusCode.UNAVAILABLE
            assert "The server is stopping" in str(failed.value.details())
            await eventually_async(provider.disconnected.is_set)
        assert await asyncio.to_thread(sidecar.process.wait, START_SECONDS) == 0


async def test_many_calls_beside_many_streams(sidecar: Sidecar) -> None:
    streams, calls, at_once = 100, 200, 20
    gate, words = Gate(), [f"{n} " for n in range(10)]
    script = openai_stream(words)
    async with (
        FakeProvider([*script[:6], gate, *script[6:]]) as provider,
        inference_client(grpc_address(sidecar)) as client,
        inference_client(grpc_address(sidecar)) as other,
    ):
        await create_model(sidecar, provider, "beside")

        async def one_stream() -> str:
            return "".join(texts([one async for one in client.stream(infer_request("Hi", "beside"))]))

        async def some_calls() -> int:
            return sum([(await other.call("ServerLive")).live for _ in range(calls // at_once)])

        running = [asyncio.create_task(one_stream()) for _ in range(streams)]
        await eventually_async(lambda: len(provider.requests) == streams)
        assert sum(await asyncio.gather(*[some_calls() for _ in range(at_once)])) == calls
        gate.open()
        assert set(await asyncio.gather(*running)) == {"".join(words)}
