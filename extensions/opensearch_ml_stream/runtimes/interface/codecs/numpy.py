"""NumPy's arrays as tensors; NumPy is imported when an array is to be made."""

from typing import Any, ClassVar

from opensearch_ml_stream.runtimes.interface.codecs.base import (
    InputCodec,
    InputCodecLike,
    register_input_codec,
    register_request_codec,
)
from opensearch_ml_stream.runtimes.interface.codecs.decoded import (
    InputOrOutput,
    SingleInputRequestCodec,
    inject_batch_dimension,
)
from opensearch_ml_stream.runtimes.interface.codecs.lazy import HintOf, loaded_class, needed
from opensearch_ml_stream.runtimes.interface.codecs.lists import as_input, is_list_of
from opensearch_ml_stream.runtimes.interface.types import Datatype, Parameters, RequestInput, ResponseOutput

_DTYPES = {
    Datatype.BOOL: "bool",
    Datatype.UINT8: "uint8",
    Datatype.UINT16: "uint16",
    Datatype.UINT32: "uint32",
    Datatype.UINT64: "uint64",
    Datatype.INT8: "int8",
    Datatype.INT16: "int16",
    Datatype.INT32: "int32",
    Datatype.INT64: "int64",
    Datatype.FP16: "float16",
    Datatype.FP32: "float32",
    Datatype.FP64: "float64",
    Datatype.BYTES: "bytes",
}
_DATATYPES = {dtype: datatype for datatype, dtype in _DTYPES.items()} | dict.fromkeys(
    ("object", "S", "U", "str"), Datatype.BYTES
)


def to_dtype(input_or_output: InputOrOutput) -> Any:
    """Find the dtype of a tensor: text where BYTES are text, else bytes of the last dimension's length."""
    numpy = needed("numpy", "NumpyCodec")
    datatype = Datatype(input_or_output.datatype)
    if datatype is not Datatype.BYTES:
        return numpy.dtype(_DTYPES[datatype])
    if is_list_of(_data(input_or_output), str):
        return numpy.dtype(str)
    return numpy.dtype((bytes, input_or_output.shape[-1]))


def to_datatype(dtype: Any) -> Datatype:
    """Find the datatype of a dtype; KeyError where there is none."""
    name = str(dtype)
    return _DATATYPES[name if name in _DATATYPES else dtype.kind]


def convert_nan(val: Any) -> Any:
    """Give None for NaN, which JSON lacks."""
    return None if val != val else val


@register_input_codec
class NumpyCodec(InputCodec):
    """An array as a tensor of its shape and datatype."""

    ContentType: ClassVar[str] = "np"
    TypeHint: ClassVar[Any] = HintOf("numpy", "ndarray")

    @classmethod
    def can_encode(cls, payload: Any) -> bool:
        """Tell whether the payload is an array."""
        return isinstance(payload, loaded_class("numpy", "ndarray"))

    @classmethod
    def encode_output(cls, name: str, payload: Any, **kwargs: Any) -> ResponseOutput:
        """Encode an array: its elements one after the other, or its bytes where it holds bytes."""
        datatype = to_datatype(payload.dtype)
        return ResponseOutput(
            name=name,
            datatype=datatype,
            shape=inject_batch_dimension(list(payload.shape)),
            data=_elements(payload, datatype),
            parameters=Parameters(content_type=cls.ContentType),
        )

    @classmethod
    def decode_output(cls, response_output: ResponseOutput) -> Any:
        """Decode the array."""
        return _array(response_output).reshape(response_output.shape)

    @classmethod
    def encode_input(cls, name: str, payload: Any, **kwargs: Any) -> RequestInput:
        """Encode an array: its elements one after the other, or its bytes where it holds bytes."""
        return as_input(cls.encode_output(name, payload))

    @classmethod
    def decode_input(cls, request_input: RequestInput) -> Any:
        """Decode the array."""
        return _array(request_input).reshape(request_input.shape)


def _data(tensor: InputOrOutput) -> Any:
    return getattr(tensor.data, "root", tensor.data)


def _array(tensor: InputOrOutput) -> Any:
    numpy = needed("numpy", "NumpyCodec")
    data, dtype = _data(tensor), to_dtype(tensor)
    if Datatype(tensor.datatype) is Datatype.BYTES and is_list_of(data, bytes):
        return numpy.concatenate([numpy.frombuffer(buffer, dtype) for buffer in data])
    return numpy.array(data, dtype)


def _elements(array: Any, datatype: Datatype) -> list[Any]:
    if array.dtype.kind == "S":
        return [array.tobytes()]
    elements: list[Any] = array.flatten().tolist()
    if array.dtype.kind == "U":
        return [element.encode() for element in elements]
    has_nan = datatype is not Datatype.BYTES and (array != array).any()
    return list(map(convert_nan, elements)) if has_nan else elements


@register_request_codec
class NumpyRequestCodec(SingleInputRequestCodec):
    """An array as a request's or a response's one tensor."""

    InputCodec: ClassVar[InputCodecLike | None] = NumpyCodec
    ContentType: ClassVar[str] = NumpyCodec.ContentType
