"""Reads the messages of requests: tensors with typed or raw contents, parameters.

Raw contents: kserve/open-inference-protocol, `inference_grpc.md`, "Raw Tensor Contents".
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.protobuf_wire import FieldReader, check_field_count, text
from opensearch_ml_stream.extensions.v2.grpc import triton_clients
from opensearch_ml_stream.extensions.v2.grpc.inference_messages import MODEL_INFER_REQUEST_SHAPE, ModelInferRequest
from opensearch_ml_stream.extensions.v2.protocol.messages import DATATYPES, InferenceRequest, RequestedOutput, Tensor
from opensearch_ml_stream.extensions.v2.protocol.tensor_data import (
    MAX_DIMENSIONS,
    MAX_LENGTH,
    NUMBER_BYTES,
    PLACE_BYTES,
    TEXT_BYTES,
    TensorMemory,
    checked_shape,
)
from opensearch_ml_stream.plugin.grpc_port.parsing import parse_message

STRUCT_FORMATS = {
    "BOOL": "?", "UINT8": "B", "UINT16": "H", "UINT32": "I", "UINT64": "Q", "INT8": "b", "INT16": "h", "INT32": "i",
    "INT64": "q", "FP16": "e", "FP32": "f", "FP64": "d",
}  # fmt: skip


_ONE_BYTE_TYPES = ("BOOL", "INT8", "UINT8")
_MODEL_NAME, _MODEL_VERSION, _PARAMETERS, _RAW_CONTENTS = 1, 2, 4, 7  # fields of a ModelInferRequest


@dataclass(frozen=True, slots=True)
class RequestHead:
    """What is known of a ModelInferRequest before it is read; for the last two see `triton_clients`."""

    model_name: str
    model_version: str
    is_raw: bool
    is_tritons: bool = False
    wants_empty_final: bool = False


def read_head(data: bytes) -> RequestHead:
    """Return the head of a ModelInferRequest. InvalidRequest for what is none, or has too many fields."""
    found = {_MODEL_NAME: b"", _MODEL_VERSION: b""}
    is_raw = is_tritons = wants_empty_final = False
    for number, content in FieldReader(0).fields(data):
        if number in found:
            found[number] = content
        is_raw = is_raw or number == _RAW_CONTENTS
        if number == _PARAMETERS and triton_clients.is_tritons_parameter(content):
            is_tritons = True
            wants_empty_final = wants_empty_final or triton_clients.wants_empty_final(content)
    name, version = text(found[_MODEL_NAME], "model_name"), text(found[_MODEL_VERSION], "model_version")
    return RequestHead(name, version, is_raw, is_tritons, wants_empty_final)


def read_request(data: bytes) -> Any:
    """Return a ModelInferRequest; InvalidRequest also for one of so many small parts that it would become huge."""
    check_field_count(data, MODEL_INFER_REQUEST_SHAPE)
    return parse_message(ModelInferRequest, data)


def inference_request(message: Any, headers: Mapping[str, str]) -> InferenceRequest:
    """Return the request of a ModelInferRequest; `headers` go into its parameters, as in MLServer.

    InvalidRequest for tensors whose contents do not fit their shape and datatype.
    """
    memory = TensorMemory()
    raw = list(message.raw_input_contents)
    inputs: list[Tensor] = []
    for tensor in message.inputs:
        contents = tensor.contents.ListFields()
        if not contents and raw:
            inputs.append(_tensor(tensor, _unpack(tensor, raw.pop(0), memory)))
        else:
            inputs.append(_tensor(tensor, _typed_data(tensor, contents, memory)))
    if raw:
        raise InvalidRequest(f"raw_input_contents has {len(raw)} entries more than there are inputs without contents")
    outputs = tuple(RequestedOutput(output.name, parameters(output.parameters)) for output in message.outputs)
    given = parameters(message.parameters)
    return InferenceRequest(inputs, message.id, {**given, "headers": headers}, outputs)


def _bytes_of_each(datatype: str) -> int:
    if datatype == "BYTES":
        return TEXT_BYTES
    return PLACE_BYTES if datatype in _ONE_BYTE_TYPES else NUMBER_BYTES


def parameters(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as values; one that holds nothing is left out."""
    return {
        name: getattr(entry, choice)
        for name, entry in entries.items()
        if (choice := entry.WhichOneof("parameter_choice")) is not None
    }


def _tensor(tensor: Any, data: Sequence[Any]) -> Tensor:
    name, datatype, shape = tensor.name, tensor.datatype, list(tensor.shape)
    if len(shape) > MAX_DIMENSIONS or not all(-1 <= length <= MAX_LENGTH for length in shape):
        raise InvalidRequest(f"Tensor {name}: a shape has {MAX_DIMENSIONS} dimensions at most, each -1, 0 or more")
    return Tensor(name, datatype, checked_shape(name, datatype, shape, data), data, parameters(tensor.parameters))


def _typed_data(tensor: Any, contents: Sequence[tuple[Any, Any]], memory: TensorMemory) -> Sequence[Any]:
    datatype = _datatype(tensor)
    if len(contents) > 1:
        names = ", ".join(field.name for field, _ in contents)
        raise InvalidRequest(f"Tensor {tensor.name}: its contents are in several fields ({names}); one is needed")
    elements = contents[0][1] if contents else ()
    memory.spend(_bytes_of_each(datatype) * len(elements))
    if contents and contents[0][0].name == "bytes_contents":
        if datatype == "BYTES":
            return _texts(elements)
        if datatype == "FP16":
            return _unpack(tensor, b"".join(elements), memory)
    return list(elements)  # `checked_shape` refuses those of another datatype


def _unpack(tensor: Any, raw: bytes, memory: TensorMemory) -> Sequence[Any]:
    datatype = _datatype(tensor)
    if datatype == "BYTES":
        return _texts(_split(tensor.name, raw, memory))
    code = STRUCT_FORMATS[datatype]
    count, rest = divmod(len(raw), struct.calcsize(code))
    if rest:
        raise InvalidRequest(f"Tensor {tensor.name}: its raw contents end within an element of {datatype}")
    memory.spend(_bytes_of_each(datatype) * count)
    return struct.unpack(f"<{count}{code}", raw)


def _datatype(tensor: Any) -> str:
    datatype: str = tensor.datatype
    if datatype not in DATATYPES:
        raise InvalidRequest(f"Tensor {tensor.name}: its datatype must be one of {', '.join(DATATYPES)}")
    return datatype


def _split(name: str, raw: bytes, memory: TensorMemory) -> list[bytes]:
    """Return the elements of raw BYTES, each behind its length."""
    elements: list[bytes] = []
    place, end = 0, len(raw)
    while place < end:
        if end - place < 4 or end - place - 4 < (length := int.from_bytes(raw[place : place + 4], "little")):
            raise InvalidRequest(f"Tensor {name}: its raw contents end within an element")
        memory.spend(TEXT_BYTES)
        elements.append(raw[place + 4 : place + 4 + length])
        place += 4 + length
    return elements


def _texts(elements: Sequence[bytes]) -> list[str | bytes]:
    return [_text(element) for element in elements]


def _text(element: bytes) -> str | bytes:
    try:
        return element.decode()
    except UnicodeDecodeError:
        return element
