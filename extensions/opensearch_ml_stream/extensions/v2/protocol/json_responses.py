"""Write whole responses and errors of the V2 protocol as JSON, in the dialect of the request."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from opensearch_ml_stream.connectors.syntax.jsontext import to_json
from opensearch_ml_stream.extensions.v2.protocol.binary_data import BINARY_DATA_SIZE, BinaryOutputs
from opensearch_ml_stream.extensions.v2.protocol.json_requests import Dialect
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceResponse, ResponseShape, Tensor
from opensearch_ml_stream.extensions.v2.protocol.raw_contents import pack

STRING = {"content_type": "str"}  # the parameters of a tensor of texts, as MLServer's codecs write them
_BASE64 = {"content_type": "base64"}


def response_body(response: InferenceResponse, dialect: Dialect, headers: Mapping[str, str] | None = None) -> bytes:
    """Encode a whole response. `headers` are shown in its `parameters`, as MLServer does."""
    parameters = response.parameters if headers is None else {"headers": headers, **response.parameters}
    write = tensors_object if dialect is Dialect.TENSORS else _text_object
    return to_json(write(response, parameters))


def binary_response_body(response: InferenceResponse, binary: BinaryOutputs) -> tuple[bytes, int]:
    """Encode a whole response with the contents of some outputs after its JSON; return the JSON's length, too."""
    contents: list[bytes] = []
    outputs: list[dict[str, Any]] = []
    for tensor in response.outputs:
        if binary.has(tensor.name):
            contents.append(pack(tensor))
            sized = {**tensor.parameters, BINARY_DATA_SIZE: len(contents[-1])}
            outputs.append(
                {"name": tensor.name, "shape": tensor.shape, "datatype": tensor.datatype, "parameters": sized}
            )
        else:
            outputs.append(tensor_object(tensor))
    shape = response.shape
    head = to_json({**identity(shape), "id": shape.id, "parameters": response.parameters, "outputs": outputs})
    return b"".join((head, *contents)), len(head)


def identity(shape: ResponseShape) -> dict[str, Any]:
    """Return the model's name and version, which every response has."""
    versions = {} if shape.model_version is None else {"model_version": shape.model_version}
    return {"model_name": shape.model_name, **versions}


def tensors_object(response: InferenceResponse, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return an InferenceResponse of MLServer."""
    shape = response.shape
    outputs = [tensor_object(tensor) for tensor in response.outputs]
    return {**identity(shape), "id": shape.id, "parameters": parameters, "outputs": outputs}


def tensor_object(tensor: Tensor) -> dict[str, Any]:
    """Return a tensor for JSON; elements that are not text are written in base64, with that content type."""
    data: Sequence[Any] = tensor.data
    parameters = tensor.parameters
    if tensor.datatype == "BYTES" and bytes in set(map(type, data)):
        data = [b64encode(element if isinstance(element, bytes) else element.encode()).decode() for element in data]
        parameters = {**parameters, **_BASE64}
    written = {"name": tensor.name, "shape": tensor.shape, "datatype": tensor.datatype}
    return {**written, **({"parameters": parameters} if parameters else {}), "data": data}


def _text_object(response: InferenceResponse, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return a GenerateResponse: `text_output`, which is an array for several texts, or `outputs` without any text."""
    shape = response.shape
    found = [tensor for tensor in response.outputs if tensor.datatype == "BYTES"]
    texts = next((tensor for tensor in found if tensor.name == shape.output), found[0] if found else None)
    content: dict[str, Any]
    if texts is None:
        content = {"outputs": [tensor_object(tensor) for tensor in response.outputs]}
    else:
        content = {"text_output": texts.data[0] if len(texts.data) == 1 else texts.data}
        content |= {tensor.name: tensor.data for tensor in response.outputs if tensor is not texts}
    ending = {"details": parameters, "parameters": parameters} if parameters else {}
    return {**identity(shape), **content, "id": shape.id, **ending}
