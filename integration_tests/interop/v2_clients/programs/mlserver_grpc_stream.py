"""The client of MLServer's streaming example, over gRPC for a stream. Runs in MLServer's own environment."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import mlserver.grpc.converters as converters
import mlserver.grpc.dataplane_pb2_grpc as dataplane
from mlserver import types
from mlserver.codecs import StringCodec

inference_request = types.InferenceRequest.model_validate_json(Path("generate-request.json").read_text())
inference_request.inputs[0] = StringCodec.encode_input("prompt", inference_request.inputs[0].data.root)
message = converters.ModelInferRequestConverter.from_types(
    inference_request, model_name="text-model", model_version=None
)


async def messages() -> AsyncIterator[Any]:
    yield message


async def main() -> None:
    async with grpc.aio.insecure_channel("localhost:8081") as channel:
        stub = dataplane.GRPCInferenceServiceStub(channel)
        async for answer in stub.ModelStreamInfer(messages()):
            response = converters.ModelInferResponseConverter.to_types(answer)
            print(StringCodec.decode_output(response.outputs[0]))


asyncio.run(main())
