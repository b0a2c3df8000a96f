"""Requests, responses and metadata of the V2 inference protocol, with MLServer's names and fields."""

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

from opensearch_ml_stream.runtimes.interface.types.base import BaseModel
from opensearch_ml_stream.runtimes.interface.types.roots import RootModel


class MetadataServerResponse(BaseModel):
    """What a server says of itself."""

    name: str
    version: str
    extensions: list[str]


class MetadataServerErrorResponse(BaseModel):
    """Why a server says nothing of itself."""

    error: str


class MetadataModelErrorResponse(BaseModel):
    """Why nothing is said of a model."""

    error: str


class Parameters(BaseModel, extra=True):
    """Parameters of a request, a response or a tensor; others than these two may be given and are attributes too.

    What a codec made of the data lies in a slot, which no request can fill and no JSON shows.
    """

    __slots__ = ("_decoded_payload",)
    content_type: str | None = None
    headers: dict[str, Any] | None = None

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


class TensorData(RootModel):
    """The data of a tensor: mostly a list, flat or nested; also what a runtime gives, as an array."""

    def __init__(self, root: Any = None, /, **values: Any) -> None:
        if values:
            super().__init__(**values)
            root = self.root
        self.__dict__["root"] = root[:] if type(root) is list else root

    @classmethod
    def model_validate(cls, obj: Any, **_: Any) -> "TensorData":
        """Take any value as data."""
        return obj if isinstance(obj, cls) else cls(obj)


class RequestOutput(BaseModel):
    """A tensor that a request asks for."""

    name: str
    parameters: Parameters | None = None


class InferenceErrorResponse(BaseModel):
    """Why there is no response."""

    error: str | None = None


class Datatype(Enum):
    """The types of a tensor's elements. The field `datatype` holds the member's value, a string."""

    BOOL = "BOOL"
    UINT8 = "UINT8"
    UINT16 = "UINT16"
    UINT32 = "UINT32"
    UINT64 = "UINT64"
    INT8 = "INT8"
    INT16 = "INT16"
    INT32 = "INT32"
    INT64 = "INT64"
    FP16 = "FP16"
    FP32 = "FP32"
    FP64 = "FP64"
    BYTES = "BYTES"


class MetadataTensor(BaseModel):
    """What a model says of a tensor."""

    name: str
    datatype: Annotated[str, Datatype]
    shape: list[int]
    parameters: Parameters | None = None


class RequestInput(BaseModel):
    """A tensor of a request."""

    name: str
    shape: list[int]
    datatype: Annotated[str, Datatype]
    parameters: Parameters | None = None
    data: TensorData


class ResponseOutput(BaseModel):
    """A tensor of a response."""

    name: str
    shape: list[int]
    datatype: Annotated[str, Datatype]
    parameters: Parameters | None = None
    data: TensorData


class InferenceResponse(BaseModel):
    """What a model answers: one response, or one of those of a stream."""

    model_name: str
    model_version: str | None = None
    id: str | None = None
    parameters: Parameters | None = None
    outputs: list[ResponseOutput]


class MetadataModelResponse(BaseModel):
    """What a model says of itself."""

    name: str
    versions: list[str] | None = None
    platform: str
    inputs: list[MetadataTensor] | None = None
    outputs: list[MetadataTensor] | None = None
    parameters: Parameters | None = None


class InferenceRequest(BaseModel):
    """What a model is asked."""

    id: str | None = None
    parameters: Parameters | None = None
    inputs: list[RequestInput]
    outputs: list[RequestOutput] | None = None
