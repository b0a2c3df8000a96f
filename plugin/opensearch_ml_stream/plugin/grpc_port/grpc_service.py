"""A service of the gRPC port: its name, its messages, and what handles its calls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from opensearch_ml_stream.plugin.grpc_port.call_handlers import CallHandlers, Handler
from opensearch_ml_stream.plugin.grpc_port.health_service import Ready


@dataclass(frozen=True, slots=True)
class GrpcService:
    """A service. `files` are the descriptors that clients are shown, `handlers` returns what handles each method."""

    name: str
    files: Sequence[FileDescriptorProto]
    handlers: Callable[[CallHandlers, Ready], dict[str, Handler]]
