"""Tensors: the elements of a predict response's `output`, as the REST API prints them.

Keys, in this order, each only where it has a value: name, data_type, shape, data, byte_buffer, result, dataAsMap.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Tensor = dict[str, Any]

_KEYS = ("name", "data_type", "shape", "data", "byte_buffer", "result", "dataAsMap")


def embedding(vector: Sequence[float], data_type: str = "FLOAT32") -> Tensor:
    return {"name": "sentence_embedding", "data_type": data_type, "shape": [len(vector)], "data": vector}


def similarity(score: float) -> Tensor:
    return {"name": "similarity", "data_type": "FLOAT32", "shape": [1], "data": [score]}


def response(data_as_map: Mapping[str, Any]) -> Tensor:
    return {"name": "response", "dataAsMap": data_as_map}


def of_value(value: Any) -> Tensor:
    """The default mapping of an answer: an object is dataAsMap, anything else stands in it under `response`."""
    return response(value if isinstance(value, dict) else {"response": value})


def of_rest(value: Mapping[str, Any]) -> Tensor:
    """A tensor in REST shape; an object that has none of its keys is an answer of its own."""
    tensor = {key: value[key] for key in _KEYS if value.get(key) is not None}
    return tensor or of_value(dict(value))


def inference_result(outputs: Sequence[Sequence[Tensor]], status_codes: Sequence[int]) -> dict[str, Any]:
    """A predict response: one element for each provider call, in the order of the calls."""
    return {
        "inference_results": [
            {"output": list(output), "status_code": status_code}
            for output, status_code in zip(outputs, status_codes, strict=True)
        ]
    }
