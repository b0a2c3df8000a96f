"""Pandas' data frames as requests and responses; Pandas is imported when a frame is to be made."""

from typing import Any, ClassVar

from opensearch_ml_stream.runtimes.interface.codecs.base import RequestCodec, register_request_codec
from opensearch_ml_stream.runtimes.interface.codecs.decoded import (
    InputOrOutput,
    get_decoded_or_raw,
    inject_batch_dimension,
)
from opensearch_ml_stream.runtimes.interface.codecs.json import decode_json_input_or_output, encode_to_json
from opensearch_ml_stream.runtimes.interface.codecs.lazy import HintOf, loaded_class, needed
from opensearch_ml_stream.runtimes.interface.codecs.lists import as_input
from opensearch_ml_stream.runtimes.interface.codecs.numpy import convert_nan, to_datatype, to_dtype
from opensearch_ml_stream.runtimes.interface.codecs.string import StringCodec
from opensearch_ml_stream.runtimes.interface.types import (
    Datatype,
    InferenceRequest,
    InferenceResponse,
    Parameters,
    ResponseOutput,
)


@register_request_codec
class PandasCodec(RequestCodec):
    """A data frame as a request or a response with a tensor for each column."""

    ContentType: ClassVar[str] = "pd"
    JsonContentType: ClassVar[str] = "pd_json"
    TypeHint: ClassVar[Any] = HintOf("pandas", "DataFrame")

    @classmethod
    def can_encode(cls, payload: Any) -> bool:
        """Tell whether the payload is a data frame."""
        return isinstance(payload, loaded_class("pandas", "DataFrame"))

    @classmethod
    def encode_response(
        cls, model_name: str, payload: Any, model_version: str | None = None, use_bytes: bool = True, **kwargs: Any
    ) -> InferenceResponse:
        """Encode a frame; texts as bytes, or as text where `use_bytes` is off."""
        return InferenceResponse(
            model_name=model_name,
            model_version=model_version,
            parameters=Parameters(content_type=cls.ContentType),
            outputs=cls.encode_outputs(payload, use_bytes),
        )

    @classmethod
    def decode_response(cls, response: InferenceResponse) -> Any:
        """Decode the frame."""
        return _frame(response.outputs)

    @classmethod
    def encode_outputs(cls, payload: Any, use_bytes: bool = True) -> list[ResponseOutput]:
        """Encode each column as a tensor."""
        return [_column(payload[name], use_bytes) for name in payload]

    @classmethod
    def encode_request(cls, payload: Any, use_bytes: bool = True, **kwargs: Any) -> InferenceRequest:
        """Encode a frame; texts as bytes, or as text where `use_bytes` is off."""
        inputs = [as_input(output) for output in cls.encode_outputs(payload, use_bytes)]
        return InferenceRequest(parameters=Parameters(content_type=cls.ContentType), inputs=inputs)

    @classmethod
    def decode_request(cls, request: InferenceRequest) -> Any:
        """Decode the frame."""
        return _frame(request.inputs)


def _frame(tensors: Any) -> Any:
    pandas = needed("pandas", "PandasCodec")
    return pandas.DataFrame({tensor.name: _series(pandas, tensor) for tensor in tensors})


def _series(pandas: Any, tensor: InputOrOutput) -> Any:
    if tensor.parameters is not None and tensor.parameters.content_type == PandasCodec.JsonContentType:
        return pandas.Series(decode_json_input_or_output(tensor))
    payload = get_decoded_or_raw(tensor)
    if Datatype(tensor.datatype) is Datatype.BYTES:
        return pandas.Series(payload)
    if isinstance(payload, loaded_class("numpy", "ndarray")):
        payload = payload.reshape(tensor.shape[0], 1).squeeze(axis=1)
    return pandas.Series(payload, dtype=to_dtype(tensor))


def _column(series: Any, use_bytes: bool) -> ResponseOutput:
    datatype = to_datatype(series.dtype)
    data = series.tolist()
    if series.isnull().any():
        data = list(map(convert_nan, data))
    content_type = None
    if datatype is Datatype.BYTES:
        data, content_type = _bytes(data, use_bytes)
    given = {"parameters": Parameters(content_type=content_type)} if content_type else {}
    shape = inject_batch_dimension(list(series.shape))
    return ResponseOutput(name=series.name, shape=shape, data=data, datatype=datatype, **given)


def _bytes(data: list[Any], use_bytes: bool) -> tuple[list[Any], str]:
    """Encode texts as they are, and a column of other things, or of both, as JSON."""
    if not all(isinstance(element, str | bytes) for element in data):
        return [encode_to_json(element, use_bytes) for element in data], PandasCodec.JsonContentType
    if use_bytes:
        data = [element.encode() if isinstance(element, str) else element for element in data]
    return data, StringCodec.ContentType
