"""`grpc.reflection.v1alpha.ServerReflection`, for callers who are logged in, like the OpenAPI document."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

import grpc
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool

from opensearch_ml_stream.plugin.grpc_port.calls import Call, CallHandlers, Handler
from opensearch_ml_stream.plugin.grpc_port.messages import (
    PORT_FILES,
    ServerReflectionRequest,
    ServerReflectionResponse,
    parse,
    pool_of,
)
from opensearch_ml_stream.rest_handlers.callers import Caller

REFLECTION_SERVICE = "grpc.reflection.v1alpha.ServerReflection"
_METHOD = "ServerReflectionInfo"


def reflection_pool(files: Iterable[FileDescriptorProto]) -> DescriptorPool:
    """Return the descriptors for clients: these files, and those of health and reflection."""
    return pool_of([*PORT_FILES, *files])


def reflection_handlers(services: Collection[str], pool: DescriptorPool, calls: CallHandlers) -> dict[str, Handler]:
    """Return the handler of the only method by name; it describes these services, which are in the pool."""
    reflection = _Reflection(services, pool)

    async def tell(call: Call, caller: Caller) -> None:
        message = await call.first_message()
        while message is not None:
            response = reflection.response(parse(ServerReflectionRequest, message))
            await call.write(response.SerializeToString())
            message = await call.next_message()

    return {_METHOD: calls.stream(f"/{REFLECTION_SERVICE}/{_METHOD}", tell)}


class _Reflection:
    """Responds to requests about services. None of their messages has extensions, as they are proto3."""

    def __init__(self, services: Collection[str], pool: DescriptorPool) -> None:
        self._services = sorted(services)
        self._find_file: dict[str, Callable[[str], Any]] = {
            "file_by_filename": pool.FindFileByName,
            "file_containing_symbol": pool.FindFileContainingSymbol,
        }

    def response(self, request: Any) -> Any:
        """Return the response to a request."""
        response = ServerReflectionResponse(valid_host=request.host, original_request=request)
        asked = request.WhichOneof("message_request")
        if asked == "list_services":
            for name in self._services:
                response.list_services_response.service.add(name=name)
        elif asked in self._find_file:
            try:
                file = self._find_file[asked](getattr(request, asked))
            except KeyError:
                _say(response, grpc.StatusCode.NOT_FOUND)
            else:
                response.file_descriptor_response.file_descriptor_proto.extend(_with_imports(file))
        else:
            _say(response, grpc.StatusCode.NOT_FOUND if asked else grpc.StatusCode.INVALID_ARGUMENT)
        return response


def _say(response: Any, code: grpc.StatusCode) -> None:
    number, text = code.value
    response.error_response.error_code = number
    response.error_response.error_message = text


def _with_imports(file: Any) -> list[bytes]:
    """Return a file and all files that it imports."""
    files = {file.name: file}
    waiting = [file]
    while waiting:
        for imported in waiting.pop().dependencies:
            if imported.name not in files:
                files[imported.name] = imported
                waiting.append(imported)
    return [one.serialized_pb for one in files.values()]
