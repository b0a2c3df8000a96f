"""KServe's SDK as it comes: its REST client with tensors in binary, which is its default, and its gRPC client.

Source of the calls: kserve/kserve, python/kserve/test/test_inference_client.py. Prints the names of the checks that
hold, one a line, and ends with what is wrong with the others. Runs in an environment with kserve.
"""

import asyncio
import sys
import traceback
from typing import Any

import grpc
import httpx
import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest
from kserve.inference_client import RESTConfig

QUESTION = "What is the capital of France?"
REST, GRPC = "http://localhost:8080", "localhost:8081"
ARRAY = np.linspace(0, 1, 3 * 224 * 224 * 3, dtype=np.float32).reshape(3, 224, 224, 3)


def request(array: Any, datatype: str, model: str, **options: Any) -> InferRequest:
    tensor = InferInput("prompt", list(array.shape), datatype)
    tensor.set_data_from_numpy(array, **options)
    return InferRequest(model, [tensor], request_id="r1")


def rest_client() -> InferenceRESTClient:
    return InferenceRESTClient(RESTConfig(protocol="v2", retries=0))


async def check_health_over_rest() -> None:
    client = rest_client()
    assert await client.is_server_live(REST) is True
    assert await client.is_server_ready(REST) is True
    assert await client.is_model_ready(REST, "text-model") is True
    await client.close()


async def check_health_over_grpc() -> None:
    client = InferenceGRPCClient(GRPC)
    assert (
        await client.is_server_live() and await client.is_server_ready() and await client.is_model_ready("text-model")
    )
    await client.close()


async def check_a_text_over_rest() -> None:
    client = rest_client()
    for binary in (True, False):
        asked = request(np.array([QUESTION.encode()], dtype=object), "BYTES", "text-model", binary_data=binary)
        response = await client.infer(REST, asked, model_name="text-model")
        assert (response.id, response.model_name) == ("r1", "text-model")
        assert response.outputs[0].as_numpy().flatten().tolist() in ([QUESTION], [QUESTION.encode()])
    await client.close()


async def check_a_text_over_grpc() -> None:
    client = InferenceGRPCClient(GRPC)
    asked = request(np.array([QUESTION.encode()], dtype=object), "BYTES", "text-model")
    response = await client.infer(asked)
    assert response.outputs[0].as_numpy().flatten().tolist() in ([QUESTION], [QUESTION.encode()])
    await client.close()


async def check_three_images_come_back() -> None:
    rest, rpc = rest_client(), InferenceGRPCClient(GRPC)
    for response in (
        await rest.infer(REST, request(ARRAY, "FP32", "echo"), model_name="echo"),
        await rest.infer(REST, request(ARRAY, "FP32", "echo", binary_data=False), model_name="echo"),
        await rpc.infer(request(ARRAY, "FP32", "echo")),
    ):
        (found,) = (output for output in response.outputs if output.name == "prompt")
        assert np.array_equal(found.as_numpy(), ARRAY)
    await rest.close()
    await rpc.close()


async def check_a_model_that_is_not_there() -> None:
    client = rest_client()
    asked = request(np.array([b"Hi"], dtype=object), "BYTES", "my-model")
    try:
        await client.infer(REST, asked, model_name="my-model")
    except httpx.HTTPStatusError as error:
        assert error.response.status_code == 404 and "Model my-model not found" in str(error)
    else:
        raise AssertionError("the call went through")
    await client.close()


failures = []
for name, check in sorted(globals().items()):
    if name.startswith("check_"):
        try:
            asyncio.run(check())
            print(name.removeprefix("check_"))
        except (AssertionError, httpx.HTTPError, grpc.RpcError, ValueError, LookupError, TypeError):
            failures.append(f"{name}: {traceback.format_exc()}")
sys.exit("\n".join(failures) or 0)
