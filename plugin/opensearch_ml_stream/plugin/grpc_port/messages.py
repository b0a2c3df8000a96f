"""Messages of gRPC services: classes made of the descriptors that `make protos` writes, and the parsing of messages."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from opensearch_ml_stream.connectors.errors import InvalidRequest

MAX_SMALL_BYTES = 64 * 1024  # of a message without tensors, which is parsed in the event loop


def read_files(folder: Path, *names: str) -> list[FileDescriptorProto]:
    """Return what `make protos` has made of each NAME.proto in the folder."""
    sets = (FileDescriptorSet.FromString((folder / f"{name}.binpb").read_bytes()) for name in names)
    return [file for one in sets for file in one.file]


def pool_of(files: Iterable[FileDescriptorProto]) -> DescriptorPool:
    """Return a pool of these files alone.

    The messages of mlserver, tritonclient and opensearch-protobufs have the same full names as ours, and a process may
    hold those in the common pool.
    """
    pool = DescriptorPool()
    for file in files:
        pool.Add(file)
    return pool


def parse(message_class: Any, data: bytes) -> Any:
    """Return a message without tensors; InvalidRequest if the bytes are none of its class, or too many."""
    if len(data) > MAX_SMALL_BYTES:
        name = message_class.DESCRIPTOR.full_name
        raise InvalidRequest(f"A {name} may have {MAX_SMALL_BYTES} bytes; this one has {len(data)}")
    return parse_message(message_class, data)


def parse_message(message_class: Any, data: bytes) -> Any:
    """Return a message; InvalidRequest if the bytes are none of its class."""
    try:
        return message_class.FromString(data)
    except DecodeError:
        raise InvalidRequest(f"The message is no {message_class.DESCRIPTOR.full_name}") from None


# Of the port's own services, health and reflection. The packages that have them are made by a compiler of protobuf as
# new as they are, and stop where another package of the environment, as mlserver, keeps protobuf at an older version.

PORT_FILES = read_files(Path(__file__).parent / "protos", "health", "reflection")
_POOL = pool_of(PORT_FILES)


def _message_class(name: str) -> Any:
    return GetMessageClass(_POOL.FindMessageTypeByName(name))


HealthCheckRequest = _message_class("grpc.health.v1.HealthCheckRequest")
HealthCheckResponse = _message_class("grpc.health.v1.HealthCheckResponse")
HealthListResponse = _message_class("grpc.health.v1.HealthListResponse")
ServerReflectionRequest = _message_class("grpc.reflection.v1alpha.ServerReflectionRequest")
ServerReflectionResponse = _message_class("grpc.reflection.v1alpha.ServerReflectionResponse")
