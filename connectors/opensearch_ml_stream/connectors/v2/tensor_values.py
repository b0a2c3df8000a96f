"""Values of tensors: their texts, and what a parameter of a template gets of one."""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText
from opensearch_ml_stream.connectors.v2.json_responses import tensor_object
from opensearch_ml_stream.connectors.v2.messages import Tensor

_LISTS = ("tools", "stop", "documents", "texts")  # parameters that are arrays, also of one element


def texts(tensor: Tensor) -> list[str]:
    """Return the elements of a BYTES tensor as strings: text that comes in base64 decoded, other bytes in base64.

    InvalidRequest for a null among them.
    """
    is_base64 = tensor.parameters.get("content_type") == "base64"
    return [_text(element, tensor.name, is_base64=is_base64) for element in tensor.data]


def parameter(tensor: Tensor) -> str:
    """Return a parameter's value: a string or number for one element, else a JSON array of them."""
    if tensor.datatype != "BYTES":
        return JsonText(jsontext.dumps(tensor.data[0] if len(tensor.data) == 1 else list(tensor.data)))
    elements = texts(tensor)
    if len(elements) == 1 and tensor.name not in _LISTS:
        return elements[0]
    values = [container(element) for element in elements]
    is_array = len(values) == 1 and isinstance(values[0], list)
    return JsonText(jsontext.dumps(values[0] if is_array else values))


def json_tensors(tensors: Sequence[Tensor]) -> str:
    """Return tensors as JSON, as a request of the V2 protocol has them."""
    return JsonText(jsontext.dumps([{**tensor_object(tensor), "shape": list(tensor.shape)} for tensor in tensors]))


def container(text: str) -> Any:
    """Return the array or object that a whole text is, else the text."""
    return jsontext.value_or_text(text) if jsontext.is_container(text) else text


def _text(element: object, name: str, *, is_base64: bool) -> str:
    if isinstance(element, str):
        return _decoded(element) if is_base64 else element
    if isinstance(element, bytes):
        return b64encode(element).decode()
    raise InvalidRequest(f"Tensor {name}: an element is null; a text is needed")


def _decoded(encoded: str) -> str:
    """Return the text that base64 stands for; what is no text, such as an image, stays in base64."""
    try:
        return b64decode(encoded, validate=True).decode()
    except (Base64Error, ValueError):
        return encoded
