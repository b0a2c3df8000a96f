"""Messages and services of the gRPC port, in a pool of descriptors of their own.

The messages of mlserver, tritonclient and opensearch-protobufs have the same full names, and a process may hold those
in the common pool.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from opensearch_ml_stream.connectors.protobuf_wire import Shape

_FOLDER = Path(__file__).parent / "protos"

_NAMES = ("inference", "ml_messages", "ml_service")

INFERENCE_SERVICE = "inference.GRPCInferenceService"
ML_SERVICE = "org.opensearch.protobufs.services.MLService"


def read_files(name: str) -> list[FileDescriptorProto]:
    """Return what `make protos` has made of `protos/NAME.proto`."""
    return list(FileDescriptorSet.FromString((_FOLDER / f"{name}.binpb").read_bytes()).file)


def _pool(files: Iterable[FileDescriptorProto]) -> DescriptorPool:
    pool = DescriptorPool()
    for file in files:
        pool.Add(file)
    return pool


POOL = _pool(file for name in _NAMES for file in read_files(name))


def reflection_pool(*, is_triton: bool) -> DescriptorPool:
    """Return the descriptors that clients are shown: the stream's response in the form that they get."""
    common = [
        FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb) for module in (health_pb2, reflection_pb2)
    ]
    files = [file for name in _NAMES for file in read_files(name)]
    if is_triton:
        methods = {method.name: method for file in files for service in file.service for method in service.method}
        methods["ModelStreamInfer"].output_type = ".inference.ModelStreamInferResponse"
    return _pool([*common, *files])


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


def _shape(descriptor: Descriptor) -> Shape:
    return {field.number: _shape(field.message_type) for field in descriptor.fields if field.message_type is not None}


MODEL_INFER_REQUEST_SHAPE = _shape(ModelInferRequest.DESCRIPTOR)
