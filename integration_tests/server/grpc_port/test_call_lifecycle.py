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
    InferenceClient,
    grpc_address,
    infer_request,
    inference_client,
    texts,
)
from integration_tests.support import connector_bodies
from integration_tests.support.conditions import eventually_async, promptly_async
from integration_tests.support.fake_provider import (
    SSE_HEAD,
    Act,
    FakeProvider,
    Request,
    Script,
    chunk,
    openai_delta,
    openai_stream,
)
from integration_tests.support.sidecars import Sidecar, running_sidecar
from integration_tests.support.worker_processes import resident_mib, worker_pids

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
        received = []
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            async for response in client.stream(infer_request("Hi", "deadline"), timeout=1):
                received.append(response)  # noqa: PERF401 - the list is kept although the stream fails
        assert failed.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        assert texts(received) == ["a"]
        await promptly_async(provider.disconnected.is_set, 2)


@pytest.mark.parametrize("method", ["ModelInfer", "ModelStreamInfer"])
async def test_a_cancelled_call_ends_the_providers_call(sidecar: Sidecar, method: str) -> None:
    async with FakeProvider([Act.WAIT]) as provider, inference_client(grpc_address(sidecar)) as client:
        await create_model(sidecar, provider, f"cancelled-{method}")
        request = infer_request("Hi", f"cancelled-{method}")
        call = client.call(method, request) if method == "ModelInfer" else client.stream(request)
        reading = asyncio.ensure_future(call if method == "ModelInfer" else call.read())
        await eventually_async(provider.called.is_set)
        call.cancel()
        await promptly_async(provider.disconnected.is_set, 2)
        with pytest.raises(asyncio.CancelledError):
            await reading


async def test_a_client_whose_connection_breaks_ends_the_providers_call(sidecar: Sidecar) -> None:
    async with FakeProvider(ENDLESS) as provider:
        await create_model(sidecar, provider, "broken")
        async with inference_client(grpc_address(sidecar)) as client:
            call = client.stream(infer_request("Hi", "broken"))
            assert texts([await call.read()]) == ["a"]
        await promptly_async(provider.disconnected.is_set, 2)


async def test_a_slow_client_stops_the_reading_of_the_provider(sidecar: Sidecar) -> None:
    event = chunk(openai_delta("x" * 32_000))
    async with FakeProvider([SSE_HEAD, *[event] * 2000, Act.WAIT]) as provider:  # 64 MB
        await create_model(sidecar, provider, "flood")
        async with inference_client(grpc_address(sidecar)) as client:
            call = client.stream(infer_request("Hi", "flood"))
            assert len(texts([await call.read()])[0]) == 32_000
            await eventually_async(provider.called.is_set)
            await asyncio.sleep(1)  # in which all would have come
            assert provider.played == 0 and not provider.disconnected.is_set()
            assert max(resident_mib(pid) for pid in worker_pids(sidecar)) < 300
            for _ in range(200):
                assert len(texts([await call.read()])[0]) == 32_000


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


def quick_or_slow(request: Request) -> Script:
    is_quick = request.json()["messages"][-1]["content"] == "quick"
    return openai_stream(["a", "b", "c"], pause=0 if is_quick else 1)


async def test_a_stop_lets_streams_end_and_turns_waiting_clients_away(tmp_path: Path) -> None:
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
            while (response := await running.read()) is not END:
                received.append(response)
            assert "".join(texts(received)) == "abc"
        assert await asyncio.to_thread(sidecar.process.wait, 15) == 0


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
            await promptly_async(provider.disconnected.is_set, 2)
        assert await asyncio.to_thread(sidecar.process.wait, 10) == 0


async def test_many_calls_beside_many_streams(sidecar: Sidecar) -> None:
    streams, calls, at_once = 200, 1_000, 20
    stream = openai_stream([f"{n} " for n in range(10)], pause=0.2)
    async with FakeProvider(stream) as provider, inference_client(grpc_address(sidecar)) as client:
        await create_model(sidecar, provider, "beside")

        async def one_stream() -> str:
            return "".join(texts([one async for one in client.stream(infer_request("Hi", "beside"))]))

        async def some_calls(other: InferenceClient) -> int:
            return sum([(await other.call("ServerLive")).live for _ in range(calls // at_once)])

        running = [asyncio.create_task(one_stream()) for _ in range(streams)]
        async with inference_client(grpc_address(sidecar)) as other:
            assert sum(await asyncio.gather(*[some_calls(other) for _ in range(at_once)])) == calls
        assert set(await asyncio.gather(*running)) == {"".join(f"{n} " for n in range(10))}
