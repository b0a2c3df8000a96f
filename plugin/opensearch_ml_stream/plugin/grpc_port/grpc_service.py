"""A service of the gRPC port: its name, its messages, and what handles its calls."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool

from opensearch_ml_stream.plugin.grpc_port.call_handlers import CallHandlers, Handler
from opensearch_ml_stream.plugin.grpc_port.health_service import Ready


@dataclass(frozen=True, slots=True)
class GrpcService:
    """A service. `files` are the descriptors that clients are shown, `handlers` returns what handles each method."""

    name: str
    files: Sequence[FileDescriptorProto]
    handlers: Callable[[CallHandlers, Ready], dict[str, Handler]]


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
