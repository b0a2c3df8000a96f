"""`grpc.reflection.v1alpha.ServerReflection`, for whoever logs in, as the OpenAPI document is."""

from collections.abc import AsyncIterator, Collection
from typing import Any

from google.protobuf.descriptor_pool import DescriptorPool
from grpc_reflection.v1alpha.reflection import aio
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest

from opensearch_ml_stream.extensions.v2.grpc.request_tensors import parse
from opensearch_ml_stream.plugin.grpc_port.call import Call
from opensearch_ml_stream.plugin.grpc_port.calls import Calls, Handler
from opensearch_ml_stream.rest_handlers.callers import Caller

REFLECTION_SERVICE = "grpc.reflection.v1alpha.ServerReflection"
_METHOD = "ServerReflectionInfo"


def reflection_handlers(services: Collection[str], pool: DescriptorPool, calls: Calls) -> dict[str, Handler]:
    """Return the handler of the one method, by its name; it tells of these services, which are in the pool."""
    servicer = aio.ReflectionServicer(services, pool)

    async def tell(call: Call, caller: Caller) -> None:
        responses: Any = servicer.ServerReflectionInfo(_requests(call), None)
        async for response in responses:
            await call.write(response.SerializeToString())

    return {_METHOD: calls.stream(f"/{REFLECTION_SERVICE}/{_METHOD}", tell)}


async def _requests(call: Call) -> AsyncIterator[Any]:
    message = await call.first_message()
    while message is not None:
        yield parse(ServerReflectionRequest, message)
        message = await call.next_message()
