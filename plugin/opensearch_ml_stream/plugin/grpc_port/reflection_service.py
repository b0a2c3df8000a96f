"""`grpc.reflection.v1alpha.ServerReflection`, for whoever logs in, as the OpenAPI document is."""

from collections.abc import AsyncIterator, Collection, Iterable
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.reflection import aio
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest

from opensearch_ml_stream.plugin.grpc_port.call import Call
from opensearch_ml_stream.plugin.grpc_port.call_handlers import CallHandlers, Handler
from opensearch_ml_stream.plugin.grpc_port.grpc_service import pool_of
from opensearch_ml_stream.plugin.grpc_port.parsing import parse
from opensearch_ml_stream.rest_handlers.callers import Caller

REFLECTION_SERVICE = "grpc.reflection.v1alpha.ServerReflection"
_METHOD = "ServerReflectionInfo"


def reflection_pool(files: Iterable[FileDescriptorProto]) -> DescriptorPool:
    """Return the descriptors that clients are shown: these, and those of health and reflection."""
    modules = (health_pb2, reflection_pb2)
    common = [FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb) for module in modules]
    return pool_of([*common, *files])


def reflection_handlers(services: Collection[str], pool: DescriptorPool, calls: CallHandlers) -> dict[str, Handler]:
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
