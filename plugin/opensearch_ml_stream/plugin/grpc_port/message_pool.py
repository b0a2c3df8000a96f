"""Messages of services, of the descriptors that `make protos` writes, in pools of their own."""

from collections.abc import Iterable
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool


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
