"""Message classes of V2 over gRPC, in a descriptor pool of their own."""

from pathlib import Path
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message_factory import GetMessageClass

from opensearch_ml_stream.connectors.protobuf_wire import Shape
from opensearch_ml_stream.plugin.grpc_port.messages import pool_of, read_files

PROTOS = Path(__file__).parent / "protos"
INFERENCE_SERVICE = "inference.GRPCInferenceService"
REPOSITORY_SERVICE = "inference.model_repository.ModelRepositoryService"
POOL = pool_of(read_files(PROTOS, "inference"))


def shown_files(*, is_triton: bool) -> list[FileDescriptorProto]:
    """Return the descriptors for reflection, with the message type that streams have."""
    files = read_files(PROTOS, "inference")
    if is_triton:
        methods = {method.name: method for file in files for service in file.service for method in service.method}
        methods["ModelStreamInfer"].output_type = ".inference.ModelStreamInferResponse"
    return files


def message_class(name: str) -> Any:
    """Return the class of the message of that full name."""
    return GetMessageClass(POOL.FindMessageTypeByName(name))


def serialized(message: Any) -> bytes:
    """Return the bytes of a message."""
    data: bytes = message.SerializeToString()
    return data


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
