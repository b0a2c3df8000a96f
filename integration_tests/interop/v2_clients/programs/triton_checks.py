"""Triton's clients as they come: over HTTP with tensors in binary, over gRPC with raw contents, each with asyncio too.

Source of the calls: triton-inference-server/client, src/python/examples. Prints the names of the checks that hold, one
a line, and ends with what is wrong with the others. Runs in an environment with tritonclient.
"""

import asyncio
import queue
import sys
import traceback
from collections.abc import AsyncIterator, Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import InferenceServerException

QUESTION = "What is the capital of France?"
WORDS = ["What", " is", " the", " capital", " of", " France?"]
HTTP, GRPC = "localhost:8080", "localhost:8081"
NUMBERS = {
    "BOOL": np.array([[True, False]]),
    "UINT8": np.arange(256, dtype=np.uint8).reshape(16, 16),
    "INT16": np.array([-(2**15), 2**15 - 1], dtype=np.int16),
    "UINT64": np.array([2**64 - 1], dtype=np.uint64),
    "INT64": np.array([[-(2**63)], [2**63 - 1]], dtype=np.int64),
    "FP16": np.array([0.5, -65504], dtype=np.float16),
    "FP32": np.linspace(0, 1, 3 * 224 * 224 * 3, dtype=np.float32).reshape(3, 224, 224, 3),
    "FP64": np.array([0.1, 1e300]),
}
TEXTS = np.array([["Hi", "", "h\u00e9"]], dtype=object)


def inputs(module: ModuleType, text: str = QUESTION) -> list[Any]:
    tensor = module.InferInput("prompt", [1], "BYTES")
    tensor.set_data_from_numpy(np.array([text], dtype=object))
    return [tensor]


def numbers(module: ModuleType) -> list[Any]:
    tensors = []
    for name, array in NUMBERS.items():
        tensors.append(module.InferInput(name, array.shape, name))
        tensors[-1].set_data_from_numpy(array)
    return tensors


def check_health_metadata_and_repository() -> None:
    for module, address in ((tritonclient.http, HTTP), (tritonclient.grpc, GRPC)):
        client = module.InferenceServerClient(address)
        assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("text-model")
        assert not client.is_model_ready("my-model")
        for change, state in ((client.unload_model, "UNAVAILABLE"), (client.load_model, "READY")):
            change("text-model")
            index = client.get_model_repository_index()
            found = index if module is tritonclient.http else [entry for entry in index.models]
            named = [
                entry if isinstance(entry, dict) else {"name": entry.name, "state": entry.state} for entry in found
            ]
            assert {"text-model": state}.items() <= {entry["name"]: entry["state"] for entry in named}.items()
        client.close()
    with tritonclient.http.InferenceServerClient(HTTP) as client:
        assert "binary_tensor_data" in client.get_server_metadata()["extensions"]
        assert client.get_model_metadata("text-model", "1")["inputs"][0]["datatype"] == "BYTES"


def check_a_text() -> None:
    for module, address in ((tritonclient.http, HTTP), (tritonclient.grpc, GRPC)):
        client = module.InferenceServerClient(address)
        for outputs in (None, [module.InferRequestedOutput("output")]):
            result = client.infer("text-model", inputs(module), outputs=outputs, request_id="r1")
            assert result.as_numpy("output").tolist() == [[QUESTION.encode()]]
        client.close()


def check_texts_and_numbers_of_a_model_in_python_come_back() -> None:
    for module, address in ((tritonclient.http, HTTP), (tritonclient.grpc, GRPC)):
        client = module.InferenceServerClient(address)
        result = client.infer("echo", numbers(module))
        for name, array in NUMBERS.items():
            found = result.as_numpy(name)
            assert found.dtype == array.dtype and np.array_equal(found, array), name
        tensor = module.InferInput("texts", TEXTS.shape, "BYTES")
        tensor.set_data_from_numpy(TEXTS)
        found = client.infer("echo", [tensor]).as_numpy("texts")
        assert found.tolist() == [[text.encode() for text in TEXTS[0]]]
        client.close()


def check_json_and_binary_side_by_side() -> None:
    with tritonclient.http.InferenceServerClient(HTTP) as client:
        array = np.array([1, 2, 3], dtype=np.int32)
        tensors = [tritonclient.http.InferInput(name, [3], "INT32") for name in ("a", "b", "c")]
        for tensor, binary in zip(tensors, (True, False, True), strict=True):
            tensor.set_data_from_numpy(array, binary_data=binary)
        outputs = [tritonclient.http.InferRequestedOutput(name, binary_data=name == "b") for name in ("a", "b", "c")]
        result = client.infer("echo", tensors, outputs=outputs)
        assert all(np.array_equal(result.as_numpy(name), array) for name in ("a", "b", "c"))
        kinds = {one["name"]: "data" in one for one in result.get_response()["outputs"]}
        assert (kinds["a"], kinds["b"], kinds["c"]) == (True, False, True)
        compressed = client.infer(
            "echo", tensors, request_compression_algorithm="gzip", response_compression_algorithm="gzip"
        )
        assert np.array_equal(compressed.as_numpy("a"), array)


def check_requests_beside_each_other() -> None:
    with tritonclient.http.InferenceServerClient(HTTP, concurrency=4) as client:
        calls = [client.async_infer("text-model", inputs(tritonclient.http, f"one {n}")) for n in range(8)]
        said = [call.get_result().as_numpy("output").flatten()[0] for call in calls]
        assert said == [f"one {n}".encode() for n in range(8)]


def check_a_model_that_is_not_there() -> None:
    for module, address in ((tritonclient.http, HTTP), (tritonclient.grpc, GRPC)):
        client = module.InferenceServerClient(address)
        assert "Model my-model not found" in refusal(partial(client.infer, "my-model", inputs(module)))
        client.close()


def check_what_only_triton_has_is_refused_in_words() -> None:
    with tritonclient.http.InferenceServerClient(HTTP) as client:
        for version in ("", "1"):
            assert "/v2/models/{name}" in refusal(partial(client.get_model_config, "text-model", version))
            assert "/metrics" in refusal(partial(client.get_inference_statistics, "text-model", version))
        assert "/metrics" in refusal(client.get_inference_statistics)


def check_a_stream_in_the_default_form() -> None:
    for empty_final in (False, True):
        found: queue.Queue[tuple[Any, Any]] = queue.Queue()
        with tritonclient.grpc.InferenceServerClient(GRPC) as client:
            client.start_stream(callback=partial(_heard, found))
            for number in ("1", "2"):
                client.async_stream_infer(
                    "text-model",
                    inputs(tritonclient.grpc),
                    request_id=number,
                    enable_empty_final_response=empty_final,
                )
                assert said_until(found, empty_final) == WORDS
            client.async_stream_infer("my-model", inputs(tritonclient.grpc), request_id="3")
            _, error = found.get(timeout=20)
            assert isinstance(error, InferenceServerException) and "Model my-model not found" in str(error)
            client.stop_stream()


def _heard(found: "queue.Queue[tuple[Any, Any]]", result: Any, error: Any) -> None:
    found.put((result, error))


def said_until(found: "queue.Queue[tuple[Any, Any]]", empty_final: bool) -> list[str]:
    said: list[str] = []
    while True:
        result, error = found.get(timeout=20)
        assert error is None, error
        response = result.get_response()
        if response.outputs:
            said.append(result.as_numpy("output").flatten()[0].decode())
        is_final = response.parameters["triton_final_response"].bool_param
        if is_final or (not empty_final and len(said) == len(WORDS)):
            return said


def check_asyncio_over_http() -> None:
    async def ask() -> None:
        async with tritonclient.http.aio.InferenceServerClient(HTTP) as client:
            assert await client.is_server_live() and await client.is_model_ready("text-model")
            result = await client.infer("text-model", inputs(tritonclient.http))
            assert result.as_numpy("output").tolist() == [[QUESTION.encode()]]
            result = await client.infer("echo", numbers(tritonclient.http))
            assert np.array_equal(result.as_numpy("FP32"), NUMBERS["FP32"])

    asyncio.run(ask())


def check_asyncio_over_grpc() -> None:
    async def requests() -> AsyncIterator[dict[str, Any]]:
        yield {"model_name": "text-model", "inputs": inputs(tritonclient.grpc), "request_id": "1"}

    async def ask() -> None:
        async with tritonclient.grpc.aio.InferenceServerClient(GRPC) as client:
            assert await client.is_server_live() and await client.is_model_ready("text-model")
            result = await client.infer("text-model", inputs(tritonclient.grpc))
            assert result.as_numpy("output").tolist() == [[QUESTION.encode()]]
            said: list[str] = []
            async for result, error in client.stream_infer(requests()):
                assert error is None, error
                if result.get_response().outputs:
                    said.append(result.as_numpy("output").flatten()[0].decode())
            assert said == WORDS

    asyncio.run(asyncio.wait_for(ask(), 30))


def refusal(call: Callable[[], object]) -> str:
    try:
        call()
    except InferenceServerException as error:
        return str(error)
    raise AssertionError("the call went through")


failures = []
for name, check in sorted(globals().items()):
    if name.startswith("check_"):
        try:
            check()
            print(name.removeprefix("check_"))
        except (AssertionError, InferenceServerException, OSError, ValueError, LookupError, queue.Empty, TimeoutError):
            failures.append(f"{name}: {traceback.format_exc()}")
sys.exit("\n".join(failures) or 0)
