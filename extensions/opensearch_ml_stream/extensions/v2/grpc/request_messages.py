"""Reads the messages of requests: tensors with typed or raw contents, parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.protobuf_wire import FieldReader, check_field_count, text
from opensearch_ml_stream.extensions.v2.grpc import triton_clients
from opensearch_ml_stream.extensions.v2.grpc.inference_messages import MODEL_INFER_REQUEST_SHAPE, ModelInferRequest
from opensearch_ml_stream.extensions.v2.protocol import raw_contents
from opensearch_ml_stream.extensions.v2.protocol.messages import DATATYPES, InferenceRequest, RequestedOutput, Tensor
from opensearch_ml_stream.extensions.v2.protocol.tensor_checks import (
    MAX_DIMENSIONS,
    MAX_LENGTH,
    TensorMemory,
    checked_shape,
)
from opensearch_ml_stream.plugin.grpc_port.messages import parse_message

_MODEL_NAME, _MODEL_VERSION, _PARAMETERS, _INPUTS, _RAW_CONTENTS = 1, 2, 4, 5, 7  # fields of a ModelInferRequest


@dataclass(frozen=True, slots=True)
class RequestHead:
    """Fields of a ModelInferRequest that are read before its tensors; for the last three see `triton_clients`."""

    model_name: str
    model_version: str
    is_raw: bool
    is_tritons: bool = False
    wants_empty_final: bool = False
    has_content_type: bool = False

    @property
    def is_bare(self) -> bool:
        """Whether the contents are raw without a content type."""
        return self.is_raw and not self.has_content_type


def read_head(data: bytes) -> RequestHead:
    """Return the head of a ModelInferRequest. InvalidRequest for other bytes, or too many fields."""
    found = {_MODEL_NAME: b"", _MODEL_VERSION: b""}
    is_raw = is_tritons = wants_empty_final = has_content_type = False
    for number, content in FieldReader(0).fields(data):
        if number in found:
            found[number] = content
        is_raw = is_raw or number == _RAW_CONTENTS
        if number == _PARAMETERS and triton_clients.is_tritons_parameter(content):
            is_tritons = True
            wants_empty_final = wants_empty_final or triton_clients.wants_empty_final(content)
        elif number == _PARAMETERS:
            has_content_type = has_content_type or triton_clients.is_content_type(content)
        elif number == _INPUTS:
            has_content_type = has_content_type or triton_clients.has_content_type(content)
    name, version = text(found[_MODEL_NAME], "model_name"), text(found[_MODEL_VERSION], "model_version")
    return RequestHead(name, version, is_raw, is_tritons, wants_empty_final, has_content_type)


def read_request(data: bytes) -> Any:
    """Return a ModelInferRequest; InvalidRequest also for one whose many small fields would take too much memory."""
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
            inputs.append(_tensor(tensor, _unpacked(tensor, raw.pop(0), memory), is_raw=True))
        else:
            inputs.append(_tensor(tensor, _typed_data(tensor, contents, memory)))
    if raw:
        raise InvalidRequest(f"raw_input_contents has {len(raw)} entries more than there are inputs without contents")
    outputs = tuple(RequestedOutput(output.name, parameters(output.parameters)) for output in message.outputs)
    given = parameters(message.parameters)
    return InferenceRequest(inputs, message.id, {**given, "headers": headers}, outputs)


def parameters(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as values, without empty ones."""
    return {
        name: getattr(entry, choice)
        for name, entry in entries.items()
        if (choice := entry.WhichOneof("parameter_choice")) is not None
    }


def _tensor(tensor: Any, data: Sequence[Any], *, is_raw: bool = False) -> Tensor:
    name, datatype, shape = tensor.name, tensor.datatype, list(tensor.shape)
    if len(shape) > MAX_DIMENSIONS or not all(-1 <= length <= MAX_LENGTH for length in shape):
        raise InvalidRequest(f"Tensor {name}: a shape has {MAX_DIMENSIONS} dimensions at most, each -1, 0 or more")
    checked = checked_shape(name, datatype, shape, data, is_raw=is_raw)
    return Tensor(name, datatype, checked, data, parameters(tensor.parameters))


def _typed_data(tensor: Any, contents: Sequence[tuple[Any, Any]], memory: TensorMemory) -> Sequence[Any]:
    datatype = _datatype(tensor)
    if len(contents) > 1:
        names = ", ".join(field.name for field, _ in contents)
        raise InvalidRequest(f"Tensor {tensor.name}: its contents are in several fields ({names}); one is needed")
    elements = contents[0][1] if contents else ()
    memory.spend(raw_contents.bytes_of_each(datatype) * len(elements))
    if contents and contents[0][0].name == "bytes_contents":
        if datatype == "BYTES":
            return raw_contents.texts(elements)
        if datatype == "FP16":
            return _unpacked(tensor, b"".join(elements), memory)
    return list(elements)  # `checked_shape` refuses those of another datatype


def _unpacked(tensor: Any, raw: bytes, memory: TensorMemory) -> Sequence[Any]:
    return raw_contents.unpack(tensor.name, _datatype(tensor), raw, memory)


def _datatype(tensor: Any) -> str:
    datatype: str = tensor.datatype
    if datatype not in DATATYPES:
        raise InvalidRequest(f"Tensor {tensor.name}: its datatype must be one of {', '.join(DATATYPES)}")
    return datatype
