"""Tensors as parameters of a template, by the position of the parameter.

In quotes, where a text belongs, each element is a value (`elements`). Without quotes, where JSON belongs, all elements
are one value (`as_json`).
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Sequence
from typing import Any

import orjson

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText, to_json
from opensearch_ml_stream.extensions.v2.protocol.json_responses import tensor_object
from opensearch_ml_stream.extensions.v2.protocol.messages import Tensor

MAX_TEXTS = 10_000  # of a tensor

MAX_ROWS = 40_000  # of numbers in a tensor that becomes JSON

_LISTS = ("tools", "stop", "documents", "texts")  # parameters that are arrays, also of one object or number


def texts(tensor: Tensor, at_most: int = MAX_TEXTS) -> list[str]:
    """Return the elements of a BYTES tensor as strings: text that comes in base64 decoded, other bytes in base64.

    InvalidRequest for a null among them, and for more than `at_most`.
    """
    if len(tensor.data) > at_most:
        raise InvalidRequest(f"Tensor {tensor.name} has {len(tensor.data)} texts; {at_most} are possible")
    is_base64 = tensor.parameters.get("content_type") == "base64"
    return [_text(element, tensor.name, is_base64=is_base64) for element in tensor.data]


def elements(tensor: Tensor, at_most: int) -> list[str]:
    """Return a parameter's value for each element. InvalidRequest for more than `at_most`."""
    if tensor.datatype == "BYTES":
        return texts(tensor, at_most)
    if len(tensor.data) > at_most:
        raise InvalidRequest(f"Tensor {tensor.name} has {len(tensor.data)} elements; {at_most} are possible")
    return [json_text(value) for value in tensor.data]


def as_json(tensor: Tensor, *, of_texts: bool = False) -> str:
    """Return a parameter's value as JSON: an array, unless a single element is JSON or a number.

    With `of_texts` the elements are texts, even if one looks like a number. Numbers are nested by rows.
    """
    if tensor.datatype != "BYTES":
        return json_text(tensor.data[0] if len(tensor.data) == 1 else _rows(tensor))
    found = texts(tensor)
    values = [container(text) for text in found]
    is_list = of_texts or tensor.name in _LISTS
    if len(values) == 1 and isinstance(values[0], list if tensor.name in _LISTS else list | dict):
        return json_text(values[0])
    if len(values) == 1 and not is_list and jsontext.is_json(found[0]):
        return JsonText(found[0])
    return json_text(values)


def _rows(tensor: Tensor) -> Sequence[Any]:
    """Return numbers nested by the tensor's shape, without trailing dimensions of 1."""
    lengths = list(tensor.shape)
    while lengths and lengths[-1] == 1:
        lengths.pop()
    rows: Sequence[Any] = tensor.data
    for length in reversed(lengths[1:]):
        if len(rows) > MAX_ROWS * length:
            raise InvalidRequest(f"Tensor {tensor.name} has more than {MAX_ROWS} rows")
        rows = [rows[start : start + length] for start in range(0, len(rows), length)]
    return rows


def json_tensors(tensors: Sequence[Tensor]) -> str:
    """Return tensors as JSON, as a request of the V2 protocol has them."""
    return json_text([{**tensor_object(tensor), "shape": list(tensor.shape)} for tensor in tensors])


def json_text(value: Any) -> JsonText:
    """Return a value as a parameter that is JSON."""
    return JsonText(to_json(value).decode())


def to_parameter(value: Any) -> str:
    """Return a value as a parameter: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json_text(value)


def container(text: str) -> Any:
    """Return the array or object that a whole text is, else the text."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        value = orjson.loads(text)
        if jsontext.may_be_deep(text):
            jsontext.check_depth(value)
    except (orjson.JSONDecodeError, RecursionError):
        return text
    return value


def _text(element: object, name: str, *, is_base64: bool) -> str:
    if isinstance(element, str):
        return _decoded(element) if is_base64 else element
    if isinstance(element, bytes):
        return b64encode(element).decode()
    raise InvalidRequest(f"Tensor {name}: an element is null; a text is needed")


def _decoded(encoded: str) -> str:
    """Decode base64; data that is not text, such as an image, stays in base64."""
    try:
        return b64decode(encoded, validate=True).decode()
    except (Base64Error, ValueError):
        return encoded
