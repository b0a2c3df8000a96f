"""Messages and services of the gRPC port, in a pool of descriptors of their own.

mlserver's and tritonclient's messages have the same full names, and a process may hold those in the common pool.
"""

from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

_FOLDER = Path(__file__).parent / "protos"

INFERENCE_SERVICE = "inference.GRPCInferenceService"


def read_files(name: str) -> list[FileDescriptorProto]:
    """Return what `make protos` has made of `protos/NAME.proto`."""
    return list(FileDescriptorSet.FromString((_FOLDER / f"{name}.binpb").read_bytes()).file)


def _pool(*names: str) -> DescriptorPool:
    pool = DescriptorPool()
    for name in names:
        for file in read_files(name):
            pool.Add(file)
    return pool


POOL = _pool("inference")


def message_class(name: str) -> Any:
    """Return the class of the message of that full name."""
    return GetMessageClass(POOL.FindMessageTypeByName(name))


ServerLiveResponse = message_class("inference.ServerLiveResponse")
ServerReadyResponse = message_class("inference.ServerReadyResponse")
ModelReadyRequest = message_class("inference.ModelReadyRequest")
ModelReadyResponse = message_class("inference.ModelReadyResponse")
ServerMetadataResponse = message_class("inference.ServerMetadataResponse")
ModelMetadataRequest = message_class("inference.ModelMetadataRequest")
ModelMetadataResponse = message_class("inference.ModelMetadataResponse")
ModelInferRequest = message_class("inference.ModelInferRequest")
ModelInferResponse = message_class("inference.ModelInferResponse")
ModelStreamInferResponse = message_class("inference.ModelStreamInferResponse")
InferParameter = message_class("inference.InferParameter")
RepositoryIndexRequest = message_class("inference.RepositoryIndexRequest")
RepositoryIndexResponse = message_class("inference.RepositoryIndexResponse")
RepositoryModelLoadRequest = message_class("inference.RepositoryModelLoadRequest")
RepositoryModelLoadResponse = message_class("inference.RepositoryModelLoadResponse")
RepositoryModelUnloadRequest = message_class("inference.RepositoryModelUnloadRequest")
RepositoryModelUnloadResponse = message_class("inference.RepositoryModelUnloadResponse")
