"""Messages of gRPC services: classes made of the descriptors that `make protos` writes, and the parsing of messages."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from opensearch_ml_stream.connectors.errors import InvalidRequest

MAX_SMALL_BYTES = 64 * 1024  # of a message that is parsed in the event loop


def read_files(folder: Path, *names: str) -> list[FileDescriptorProto]:
    """Return the descriptors of each NAME.proto in the folder, as `make protos` has written them."""
    sets = (FileDescriptorSet.FromString((folder / f"{name}.binpb").read_bytes()) for name in names)
    return [file for one in sets for file in one.file]


def pool_of(files: Iterable[FileDescriptorProto]) -> DescriptorPool:
    """Return a descriptor pool with only these files.

    mlserver, tritonclient and opensearch-protobufs have messages of the same full names in protobuf's common pool.
    """
    pool = DescriptorPool()
    for file in files:
        pool.Add(file)
    return pool


def parse(message_class: Any, data: bytes) -> Any:
    """Parse a small message; InvalidRequest if it is too large or not of the class."""
    if len(data) > MAX_SMALL_BYTES:
        name = message_class.DESCRIPTOR.full_name
        raise InvalidRequest(f"A {name} may have {MAX_SMALL_BYTES} bytes; this one has {len(data)}")
    return parse_message(message_class, data)


def parse_message(message_class: Any, data: bytes) -> Any:
    """Parse a message; InvalidRequest if it is not of the class."""
    try:
        return message_class.FromString(data)
    except DecodeError:
        raise InvalidRequest(f"The message is not of type {message_class.DESCRIPTOR.full_name}") from None


# The messages of health and reflection. grpcio's packages for these need the newest protobuf, and cannot be imported if
# another package, such as mlserver, needs an older one.

PORT_FILES = read_files(Path(__file__).parent / "protos", "health", "reflection")
_POOL = pool_of(PORT_FILES)


def _message_class(name: str) -> Any:
    return GetMessageClass(_POOL.FindMessageTypeByName(name))


HealthCheckRequest = _message_class("grpc.health.v1.HealthCheckRequest")
HealthCheckResponse = _message_class("grpc.health.v1.HealthCheckResponse")
HealthListResponse = _message_class("grpc.health.v1.HealthListResponse")
ServerReflectionRequest = _message_class("grpc.reflection.v1alpha.ServerReflectionRequest")
ServerReflectionResponse = _message_class("grpc.reflection.v1alpha.ServerReflectionResponse")
