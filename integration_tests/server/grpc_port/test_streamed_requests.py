"""A stream of requests to a runtime: its messages are the requests of one `predict_stream`, read as the model asks."""

import asyncio
import re
from collections.abc import Iterator
from functools import partial
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
    sent_by_tritonclient,
    texts,
    until_final,
)
from integration_tests.server.runtimes.faulty_models import serving_models
from integration_tests.support.conditions import eventually, eventually_async
from integration_tests.support.sidecars import Sidecar
from integration_tests.support.worker_processes import resident_mib, worker_pids

from opensearch_ml_stream.extensions.v2.grpc import inference_messages as messages

PATIENCE_SECONDS = 20
MODEL = "/_plugins/_ml/models/runtime-joining"
asks = partial(infer_request, model="joining")


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with serving_models(tmp_path_factory.mktemp("joining"), "joining", arguments=GRPC) as running:
        yield running


def opened(client: InferenceClient, **options: Any) -> Any:
    return client.open_stream(timeout=PATIENCE_SECONDS, **options)


async def said(stream: Any) -> str:
    """The text of the next response."""
    (text,) = texts([await stream.read()])
    return text


def ends(sidecar: Sidecar) -> list[str]:
    """How the model's streams have ended so far."""
    return re.findall("ended .* requests", sidecar.log.read_text())


async def test_all_messages_are_requests_of_one_stream_and_responses_come_before_the_last(sidecar: Sidecar) -> None:
    async with inference_client(grpc_address(sidecar)) as client:
        stream = opened(client)
        for text in ("one", "two", "tell"):
            await stream.write(asks(text, id=f"of {text}"))
        first = await stream.read()
        assert (texts([first]), first.id) == (["one two tell"], "of one")
        await stream.write(asks("three", model="", version="v7"))  # as in MLServer, the first one's model is meant
        await stream.write(asks("tell", model="none-such"))
        assert await said(stream) == "one two tell three tell"
        await stream.done_writing()
        assert await said(stream) == "one two tell three tell"
        assert await stream.read() is END
        assert await stream.code() is grpc.StatusCode.OK


async def test_a_client_that_only_ends_its_requests_gets_what_the_model_made_of_them(sidecar: Sidecar) -> None:
    async with inference_client(grpc_address(sidecar)) as client:
        requests = [asks(str(number)) for number in range(300)]
        responses = texts([one async for one in client.stream(*requests, timeout=PATIENCE_SECONDS)])
    assert responses == [" ".join(str(number) for number in range(300))]


async def test_a_model_that_takes_no_more_ends_the_call(sidecar: Sidecar) -> None:
    async with inference_client(grpc_address(sidecar)) as client:
        stream = opened(client)
        await stream.write(asks("leave"))
        assert await said(stream) == "leave"
        assert await stream.read() is END
        assert await stream.code() is grpc.StatusCode.OK


async def test_what_the_model_raises_at_a_later_request_is_the_calls_status(sidecar: Sidecar) -> None:
    async with inference_client(grpc_address(sidecar)) as client:
        stream = opened(client)
        await stream.write(asks("tell"))
        assert await said(stream) == "tell"
        await stream.write(asks("raise"))
        with pytest.raises(grpc.aio.AioRpcError, match="raised ValueError: worn out"):
            await stream.read()


async def test_a_client_that_floods_has_to_wait_for_the_model(sidecar: Sidecar) -> None:
    """Another client sends as much meanwhile to a model that reads it, and keeps nothing."""
    size, count = 100_000, 700
    async with inference_client(grpc_address(sidecar)) as client:
        stream = opened(client)
        await stream.write(asks("wait"))
        assert await said(stream) == "wait"
        before = resident_mib(worker_pids(sidecar)[0])
        written = 0

        async def flood() -> None:
            nonlocal written
            while True:
                await stream.write(asks("x" * size))
                written += 1

        flooding = asyncio.create_task(flood())
        patient = opened(client)
        for _ in range(count):
            await patient.write(asks("x" * size))
        await patient.write(asks("tell"))
        assert len(await said(patient)) == count * 11 + 4
        assert written < count / 2
        assert resident_mib(worker_pids(sidecar)[0]) - before < 50
        stream.cancel()
        patient.cancel()
        await asyncio.wait([flooding])


@pytest.mark.parametrize("last", ["tell", "wait"], ids=["the model reads", "the model works"])
@pytest.mark.parametrize("how", ["cancelled", "connection"])
async def test_a_client_that_leaves_ends_the_models_work(sidecar: Sidecar, how: str, last: str) -> None:
    """A client's deadline ends a call as its cancelling does: `test_call_lifecycle.py`."""
    ended = len(ends(sidecar))
    async with inference_client(grpc_address(sidecar)) as client:
        stream = opened(client)
        await stream.write(asks("one"))
        await stream.write(asks(last))
        assert await said(stream) == f"one {last}"
        if how == "cancelled":
            stream.cancel()
    await eventually_async(lambda: len(ends(sidecar)) > ended)
    assert ends(sidecar)[ended:] == ["ended by its client after 2 requests"]


async def test_an_input_guardrail_reads_every_request(sidecar: Sidecar) -> None:
    guard = {"guardrails": {"type": "local_regex", "input_guardrail": {"regex": [".*bomb.*"]}}}
    changed = await asyncio.to_thread(sidecar.client.put, MODEL, json=guard)
    assert changed.status_code == 200, changed.text
    body = {"inputs": [{"name": "prompt", "shape": [1], "datatype": "BYTES", "data": ["a bomb"]}]}
    path = "/v2/models/joining/infer_stream"
    await asyncio.to_thread(eventually, lambda: sidecar.client.post(path, json=body).status_code == 400)
    ended = len(ends(sidecar))
    async with inference_client(grpc_address(sidecar)) as client:
        stream = opened(client)
        await stream.write(asks("tell"))
        assert await said(stream) == "tell"
        await stream.write(asks("a bomb"))
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stream.read()
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    await eventually_async(lambda: len(ends(sidecar)) > ended)
    assert ends(sidecar)[ended:] == ["ended by its client after 1 requests"]


async def test_messages_of_tritons_client_are_requests_of_their_own(sidecar: Sidecar) -> None:
    async with inference_client(grpc_address(sidecar), messages.ModelStreamInferResponse) as client:
        stream = opened(client)
        for id in ("1", "2"):
            await stream.write(sent_by_tritonclient("tell", "joining", id))
            *responses, final = await until_final(stream)
            assert [one.raw_output_contents[0][4:] for one in responses] == [b"tell", b"tell"]
            assert {one.id for one in (*responses, final)} == {id} and not final.outputs
        stream.cancel()
