"""Writes the messages of responses, except those of streams (`stream_messages`)."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from opensearch_ml_stream.extensions.v2.grpc.inference_messages import (
    InferParameter,
    ModelInferResponse,
    ModelMetadataResponse,
    RepositoryIndexResponse,
)
from opensearch_ml_stream.extensions.v2.protocol import raw_contents
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceResponse, ResponseShape, Tensor

_CONTENTS = {
    "BOOL": "bool_contents", "UINT8": "uint_contents", "UINT16": "uint_contents", "UINT32": "uint_contents",
    "UINT64": "uint64_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents",
    "INT64": "int64_contents", "FP32": "fp32_contents", "FP64": "fp64_contents",
}  # fmt: skip
_INT64 = range(-(2**63), 2**63)


def infer_response(response: InferenceResponse, *, is_raw: bool) -> Any:
    """Return a ModelInferResponse, raw for a request with raw contents."""
    return tensors_response(response.shape, response.outputs, response.parameters, is_raw=is_raw)


def tensors_response(
    shape: ResponseShape, outputs: Sequence[Tensor], parameters: Mapping[str, Any], *, is_raw: bool
) -> Any:
    """Return a ModelInferResponse of these tensors. UpstreamError for data that is not of its datatype."""
    message = ModelInferResponse(model_name=shape.model_name, model_version=shape.model_version or "", id=shape.id)
    fill_parameters(message.parameters, parameters)
    for tensor in outputs:
        output = message.outputs.add(name=tensor.name, datatype=tensor.datatype, shape=tensor.shape)
        fill_parameters(output.parameters, tensor.parameters)
        if is_raw:
            message.raw_output_contents.append(raw_contents.pack(tensor))
            continue
        try:
            _fill_contents(output.contents, tensor)
        except (TypeError, ValueError, OverflowError, struct.error):
            raise raw_contents.not_of_datatype(tensor) from None
    return message


def fill_parameters(entries: Any, values: Mapping[str, Any]) -> None:
    """Write parameters: members of objects under dotted names, since gRPC has no objects there; arrays as JSON."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            fill_parameters(entries, {f"{name}.{member}": inner for member, inner in value.items()})
        elif value is not None:
            entries[name].CopyFrom(_parameter(value))


def model_metadata(metadata: Mapping[str, Any]) -> Any:
    """Return a ModelMetadataResponse."""
    message = ModelMetadataResponse(
        name=metadata["name"], versions=metadata.get("versions") or (), platform=metadata.get("platform") or ""
    )
    for tensors, field in ((metadata.get("inputs"), message.inputs), (metadata.get("outputs"), message.outputs)):
        for tensor in tensors or ():
            added = field.add(name=tensor["name"], datatype=tensor["datatype"], shape=tensor["shape"])
            fill_parameters(added.parameters, tensor.get("parameters") or {})
    fill_parameters(message.parameters, metadata.get("parameters") or {})
    return message


def repository_index(models: Sequence[Mapping[str, Any]]) -> Any:
    """Return a RepositoryIndexResponse."""
    message = RepositoryIndexResponse()
    for model in models:
        message.models.add(
            name=model["name"], version=model.get("version") or "", state=model["state"], reason=model["reason"]
        )
    return message


def _parameter(value: Any) -> Any:
    if isinstance(value, bool):
        return InferParameter(bool_param=value)
    if isinstance(value, str):
        return InferParameter(string_param=value)
    if isinstance(value, int):
        return InferParameter(int64_param=value) if value in _INT64 else InferParameter(string_param=str(value))
    if isinstance(value, float):
        return InferParameter(double_param=value)
    return InferParameter(string_param=orjson.dumps(value).decode())


def _fill_contents(contents: Any, tensor: Tensor) -> None:
    field = _CONTENTS.get(tensor.datatype)
    if field is not None:
        getattr(contents, field).extend(raw_contents.numbers(tensor))
    elif tensor.datatype == "FP16":
        contents.bytes_contents.extend(struct.pack("<e", number) for number in raw_contents.numbers(tensor))
    else:
        contents.bytes_contents.extend(raw_contents.encoded(element) for element in tensor.data)
