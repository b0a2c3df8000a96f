"""The types of the V2 inference protocol, as `mlserver.types` has them."""

from opensearch_ml_stream.runtimes.interface.types.dataplane import (
    Datatype,
    InferenceErrorResponse,
    InferenceRequest,
    InferenceResponse,
    MetadataModelErrorResponse,
    MetadataModelResponse,
    MetadataServerErrorResponse,
    MetadataServerResponse,
    MetadataTensor,
    Parameters,
    RequestInput,
    RequestOutput,
    ResponseOutput,
    TensorData,
)
from opensearch_ml_stream.runtimes.interface.types.model_repository import (
    RepositoryIndexRequest,
    RepositoryIndexResponse,
    RepositoryIndexResponseItem,
    RepositoryLoadErrorResponse,
    RepositoryUnloadErrorResponse,
    State,
)
from opensearch_ml_stream.runtimes.interface.types.validation import ValidationError

__all__ = [
    "Datatype",
    "InferenceErrorResponse",
    "InferenceRequest",
    "InferenceResponse",
    "MetadataModelErrorResponse",
    "MetadataModelResponse",
    "MetadataServerErrorResponse",
    "MetadataServerResponse",
    "MetadataTensor",
    "Parameters",
    "RepositoryIndexRequest",
    "RepositoryIndexResponse",
    "RepositoryIndexResponseItem",
    "RepositoryLoadErrorResponse",
    "RepositoryUnloadErrorResponse",
    "RequestInput",
    "RequestOutput",
    "ResponseOutput",
    "State",
    "TensorData",
    "ValidationError",
]
