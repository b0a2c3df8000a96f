"""Tensors: make the elements of a predict response's `output`, as ML Commons' REST API writes them.

Their keys, in this order and only with a value: name, data_type, shape, data, byte_buffer, result, dataAsMap.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Tensor = dict[str, Any]

_KEYS = ("name", "data_type", "shape", "data", "byte_buffer", "result", "dataAsMap")


def embedding(vector: Sequence[float], data_type: str = "FLOAT32") -> Tensor:
    """Return the tensor of one embedding; its shape is `[len(vector)]`."""
    return {"name": "sentence_embedding", "data_type": data_type, "shape": [len(vector)], "data": vector}


def similarity(score: float) -> Tensor:
    """Return the tensor of one document's score; its shape is `[1]`."""
    return {"name": "similarity", "data_type": "FLOAT32", "shape": [1], "data": [score]}


def response(data_as_map: Mapping[str, Any]) -> Tensor:
    """Return the tensor of a response that is a JSON object."""
    return {"name": "response", "dataAsMap": data_as_map}


def of_value(value: Any) -> Tensor:
    """Return the tensor of any JSON value: an object is its dataAsMap, any other value stands there as `response`."""
    return response(value if isinstance(value, dict) else {"response": value})


def of_rest(value: Mapping[str, Any]) -> Tensor:
    """Return the tensor of an object in REST form; one without any of its keys is a response of its own."""
    tensor = {key: value[key] for key in _KEYS if value.get(key) is not None}
    return tensor or of_value(dict(value))
