"""A client of the V2 protocol over gRPC, as asyncio programs write it."""

import re
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import grpc
import grpc.aio
from integration_tests.support.conditions import eventually
from integration_tests.support.sidecars import Sidecar

from opensearch_ml_stream.extensions.v2.grpc import inference_messages as messages

_LISTENING = re.compile(r'listening for gRPC on ([^\s"]+)')
GRPC = ("--grpc-port", "0")
END: Any = cast(Any, grpc.aio).EOF  # what is read after a stream's last message
Metadata = Sequence[tuple[str, str]]


def grpc_address(sidecar: Sidecar) -> str:
    """Where a sidecar that was started with GRPC listens."""
    eventually(lambda: _LISTENING.search(sidecar.log.read_text()))
    match = _LISTENING.search(sidecar.log.read_text())
    assert match is not None
    return match[1]


def infer_request(text: str = "Hi", model: str = "text-model", **fields: Any) -> Any:
    """A ModelInferRequest of one text; a `version` of the model may be among the fields."""
    request = messages.ModelInferRequest(model_name=model, model_version=fields.pop("version", ""), **fields)
    tensor = request.inputs.add(name="prompt", datatype="BYTES", shape=[1])
    tensor.contents.bytes_contents.append(text.encode())
    return request


def raw_request(text: str = "Hi", model: str = "text-model") -> Any:
    """What MLServer's converters send with `use_raw`: its codecs say of each tensor how to decode it."""
    request = bare_request(text, model)
    request.inputs[0].parameters["content_type"].string_param = "str"
    return request


def bare_request(text: str, model: str) -> Any:
    """What tritonclient sends by default."""
    request = messages.ModelInferRequest(model_name=model)
    request.inputs.add(name="prompt", datatype="BYTES", shape=[1])
    request.raw_input_contents.append(len(text).to_bytes(4, "little") + text.encode())
    return request


def sent_by_tritonclient(text: str, model: str, id: str, *, empty_final: bool = True) -> Any:
    """What tritonclient's `async_stream_infer(..., enable_empty_final_response=True)` sends."""
    request = bare_request(text, model)
    request.id = id
    if empty_final:
        request.parameters["triton_enable_empty_final_response"].bool_param = True
    return request


async def until_final(stream: Any) -> list[Any]:
    """The responses up to the one that says that it is the last, as programs of tritonclient read them."""
    responses: list[Any] = []
    while not (responses and responses[-1].parameters["triton_final_response"].bool_param):
        message = await stream.read()
        assert not message.error_message
        responses.append(message.infer_response)
    return responses


def texts(responses: Iterable[Any]) -> list[str]:
    """The text of each response."""
    return [response.outputs[0].contents.bytes_contents[0].decode() for response in responses]


class InferenceClient:
    """Calls methods by their names: `client.call("ServerLive")`, `client.stream(request, ...)`."""

    def __init__(self, channel: Any, stream_response: Any = messages.ModelInferResponse) -> None:
        self.channel = channel
        self._stream_response = stream_response

    def call(self, method: str, request: Any = None, **options: Any) -> Any:
        response = "ModelInferResponse" if method == "ModelInfer" else f"{method}Response"
        unary = self.channel.unary_unary(
            f"/{messages.INFERENCE_SERVICE}/{method}",
            request_serializer=_serialized,
            response_deserializer=messages.message_class(f"inference.{response}").FromString,
        )
        return unary(request, **options)

    def stream(self, *requests: Any, **options: Any) -> Any:
        async def sent() -> AsyncIterator[Any]:
            for request in requests:
                yield request

        return self.open_stream(sent(), **options)

    def open_stream(self, requests: AsyncIterator[Any] | None = None, **options: Any) -> Any:
        method = self.channel.stream_stream(
            f"/{messages.INFERENCE_SERVICE}/ModelStreamInfer",
            request_serializer=_serialized,
            response_deserializer=self._stream_response.FromString,
        )
        return method(requests, **options)


@asynccontextmanager
async def inference_client(
    address: str, stream_response: Any = messages.ModelInferResponse, **options: Any
) -> AsyncIterator[InferenceClient]:
    async with grpc.aio.insecure_channel(address, **options) as channel:
        yield InferenceClient(channel, stream_response)


def _serialized(request: Any) -> bytes:
    return b"" if request is None else request.SerializeToString()
