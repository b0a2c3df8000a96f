"""A stream over gRPC whose caller loses the right to it."""

import asyncio
from pathlib import Path

import grpc
import httpx
import pytest
from integration_tests.cli.commands import output_of
from integration_tests.server.grpc_port.grpc_clients import (
    GRPC,
    grpc_address,
    infer_request,
    inference_client,
    texts,
)
from integration_tests.support import connector_bodies
from integration_tests.support.conditions import eventually
from integration_tests.support.fake_provider import FakeProvider, openai_stream
from integration_tests.support.sidecars import Sidecar, running_sidecar

PATIENCE_SECONDS = 20


async def test_each_request_of_an_open_stream_needs_the_right_to_it(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    admin, key = (
        output_of("keys", "create", role, "--role", role, "--store", store)
        for role in ("ml_full_access", "ml_predict_access")
    )
    with running_sidecar(tmp_path, store, arguments=GRPC) as sidecar:
        sidecar.client.headers["Authorization"] = f"Bearer {admin}"
        async with (
            FakeProvider(openai_stream(["a", "b"], pause=0)) as provider,
            inference_client(grpc_address(sidecar)) as client,
        ):
            body = connector_bodies.openai(provider.url)
            await asyncio.to_thread(sidecar.create_model, body, name="text-model")
            stream = client.open_stream(metadata=[("x-api-key", key)], timeout=PATIENCE_SECONDS)
            await stream.write(infer_request())
            first = [await stream.read()]
            while "finish_reason" not in first[-1].parameters:
                first.append(await stream.read())
            assert [text for text in texts(first) if text] == ["a", "b"]
            await asyncio.to_thread(output_of, "keys", "revoke", key.split("_")[1], "--store", store)
            await asyncio.to_thread(eventually, lambda: is_refused(sidecar, key))
            await stream.write(infer_request())
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await stream.read()
            assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
            assert len(provider.requests) == 1


def is_refused(sidecar: Sidecar, key: str) -> bool:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.get(f"{sidecar.url}/v2", headers=headers).status_code == 401
