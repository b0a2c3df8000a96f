"""Large tensors: a worker serves on while they are read, and gives the memory back."""

import asyncio
from collections.abc import Iterator
from typing import Any

import grpc
import grpc.aio
import pytest
from integration_tests.server.grpc_port.grpc_clients import GRPC, grpc_address
from integration_tests.support import connector_bodies
from integration_tests.support.sidecars import Sidecar, running_sidecar
from integration_tests.support.worker_processes import resident_mib, worker_pids

from opensearch_ml_stream.extensions.v2.grpc import inference_messages as messages

ELEMENTS = 5_000_000
MOST_MIB = 200  # of growth: the message and its elements are 245 each time


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path_factory.mktemp("tensors"), arguments=GRPC) as running:
        yield running


def packed(model: str) -> bytes:
    """A request of a packed tensor, a byte an element, that does not have as many elements as its shape says."""
    request = messages.ModelInferRequest(model_name=model)
    request.inputs.add(name="x", datatype="INT64", shape=[1]).contents.int64_contents.extend(b"\1" * ELEMENTS)
    data: bytes = request.SerializeToString()
    return data


async def refusals(sidecar: Sidecar, data: bytes, count: int) -> list[grpc.StatusCode]:
    async with grpc.aio.insecure_channel(grpc_address(sidecar), [("grpc.max_send_message_length", -1)]) as channel:
        infer: Any = channel.unary_unary(f"/{messages.INFERENCE_SERVICE}/ModelInfer")
        results = await asyncio.gather(*[infer(data) for _ in range(count)], return_exceptions=True)
    return [result.code() for result in results if isinstance(result, grpc.aio.AioRpcError)]


@pytest.mark.parametrize("model", ["tensors", "nobodys"])
async def test_the_memory_of_tensors_is_given_back_when_they_are_refused(sidecar: Sidecar, model: str) -> None:
    sidecar.create_model(connector_bodies.openai("http://127.0.0.1:1/v1"), name="tensors")
    [pid] = worker_pids(sidecar)
    code = grpc.StatusCode.NOT_FOUND if model == "nobodys" else grpc.StatusCode.INVALID_ARGUMENT
    before = resident_mib(pid)
    assert await refusals(sidecar, packed(model), 6) == [code] * 6
    assert sidecar.client.get("/_health/ready").status_code == 200
    assert worker_pids(sidecar) == [pid]
    assert resident_mib(pid) - before < MOST_MIB
