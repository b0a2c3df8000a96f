"""A stream over gRPC whose caller loses the right to it."""

import asyncio
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from integration_tests.server.grpc_port.grpc_clients import (
    GRPC,
    grpc_address,
    infer_request,
    inference_client,
    texts,
)
from integration_tests.server.guarded_sidecars import Guarded, running_guarded
from integration_tests.server.runtimes.faulty_models import MODELS
from integration_tests.support import connector_bodies
from integration_tests.support.conditions import eventually, eventually_async
from integration_tests.support.fake_provider import FakeProvider, openai_stream

PATIENCE_SECONDS = 20


@pytest.fixture(scope="module")
def joining(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A sidecar whose runtime `joining` is ready."""
    with running_guarded(tmp_path_factory.mktemp("withdrawn"), "--models", str(MODELS / "joining"), *GRPC) as running:
        key = running.keys["ml_full_access"]
        eventually(lambda: running.ask("GET", "/v2/models/joining/ready", key).status_code == 200, 40)
        yield running


async def revoke(guarded: Guarded, key: str) -> None:
    """Revoke a key, and wait until the sidecar knows it."""
    await asyncio.to_thread(guarded.revoke, key)
    await eventually_async(lambda: guarded.ask("GET", "/v2", key).status_code == 401)


async def assert_refused(stream: Any, request: Any) -> None:
    """The stream's next request ends it."""
    await stream.write(request)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stream.read()
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_each_request_of_an_open_stream_needs_the_right_to_it(joining: Guarded) -> None:
    key = await asyncio.to_thread(joining.new_key, "caller", "ml_predict_access")
    async with (
        FakeProvider(openai_stream(["a", "b"])) as provider,
        inference_client(grpc_address(joining.sidecar)) as client,
    ):
        body = connector_bodies.openai(provider.url)
        await asyncio.to_thread(joining.create_model, body, name="text-model", access_mode="public")
        stream = client.open_stream(metadata=[("x-api-key", key)], timeout=PATIENCE_SECONDS)
        await stream.write(infer_request())
        first = [await stream.read()]
        while "finish_reason" not in first[-1].parameters:
            first.append(await stream.read())
        assert [text for text in texts(first) if text] == ["a", "b"]
        await revoke(joining, key)
        await assert_refused(stream, infer_request())
        assert len(provider.requests) == 1


async def test_each_message_needs_the_right_to_the_stream_that_a_runtime_reads(joining: Guarded) -> None:
    key = await asyncio.to_thread(joining.new_key, "of-runtime", "ml_full_access")
    tell = infer_request("tell", "joining")
    async with inference_client(grpc_address(joining.sidecar)) as client:
        stream = client.open_stream(metadata=[("x-api-key", key)], timeout=PATIENCE_SECONDS)
        await stream.write(tell)
        assert texts([await stream.read()]) == ["tell"]
        await revoke(joining, key)
        await assert_refused(stream, tell)
    await eventually_async(lambda: "ended by its client after 1 requests" in joining.sidecar.log.read_text())
