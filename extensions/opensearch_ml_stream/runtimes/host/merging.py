"""One request of many, and one response for each of them: as MLServer merges and splits a batch.

Tensors of a name are joined along their first axis. Parameters of an input other than its content type become lists,
one value a request. Of the requests' headers the model sees those that all of them have alike. A response's tensors are
cut along the first axis; so are their parameters that are lists with a value for each row.
"""

import json
import re
from collections.abc import Mapping
from importlib import import_module
from math import prod
from typing import Any

HEADERS = "headers"
KEPT = ("content_type", HEADERS)  # parameters that are the same for a whole batch

# Headers that say how one request came, and nothing of what it asks: which client, hop or trace it is of, and how its
# body and its response travel. Each request has values of its own, so they keep none from a batch.
_OF_ONE_REQUEST = re.compile(
    r"content-(?:length|type|encoding)|transfer-encoding|te|trailer|expect|connection|keep-alive|upgrade|date|host"
    r"|user-agent|sec-.*|accept(?:-encoding|-charset)?"
    r"|traceparent|tracestate|b3|x-b3-.*|uber-trace-id|x-amzn-trace-id|x-cloud-trace-context|x-datadog-.*|cf-ray"
    r"|(?:x-)?(?:amzn-)?(?:request|correlation|trace|span|transaction)-?id|x-request-start|x-envoy-.*"
    r"|ce-(?:id|time|requestid)"
)


class CannotSplit(ValueError):
    """The response to a batch has not a row for each row of it."""


def batch_key(request: Any) -> str | None:
    """Say which requests may be merged: those with the same key. None if this one must be predicted alone.

    The same are the names, datatypes, shapes without the first axis, and content types of the inputs, the outputs asked
    for, and the request's parameters, of its headers those that may say what it asks. Alone goes a request whose inputs
    differ in their first axis or hold something else than their shape says: its rows could not be told from those of
    others.
    """
    inputs = []
    for tensor in request.inputs:
        data = data_of(tensor)
        if (
            not tensor.shape
            or tensor.shape[0] != request.inputs[0].shape[0]
            or not isinstance(data, list | str | bytes)
        ):
            return None
        if len(data) != prod(tensor.shape) and (len(data) != tensor.shape[0] or not isinstance(data, list)):
            return None
        parameters = dumped(tensor.parameters)
        kept = [parameters.get(name) for name in KEPT]
        nested = len(data) != prod(tensor.shape)
        inputs.append(
            [tensor.name, tensor.datatype, tensor.shape[1:], type(data).__name__, nested, sorted(parameters), kept]
        )
    names = [one[0] for one in inputs]
    if not names or len(set(names)) != len(names):
        return None
    outputs = [[tensor.name, dumped(tensor.parameters)] for tensor in request.outputs or []]
    parameters = _without_own_headers(dumped(request.parameters))
    return json.dumps([sorted(inputs, key=str), outputs, parameters], sort_keys=True, default=repr)


def merge(requests: list[Any]) -> Any:
    """Make one request of several with the same key; it has no identifier."""
    types = import_module("mlserver.types")
    first = requests[0]
    by_name = [{tensor.name: tensor for tensor in request.inputs} for request in requests]
    inputs = [_merge_tensors(types, [tensors[tensor.name] for tensors in by_name]) for tensor in first.inputs]
    given = {"outputs": first.outputs, "parameters": _merge_parameters(types, requests)}
    return types.InferenceRequest(inputs=inputs, **{name: value for name, value in given.items() if value is not None})


def _without_own_headers(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    headers = parameters.get(HEADERS)
    if not isinstance(headers, Mapping):
        return parameters
    shared = {name: value for name, value in headers.items() if not _OF_ONE_REQUEST.fullmatch(name.lower())}
    return {**parameters, HEADERS: shared}


def _merge_parameters(types: Any, requests: list[Any]) -> Any:
    """Return the parameters that all requests have alike: what differs are headers of one request."""
    first, *others = [dumped(request.parameters) for request in requests]
    headers = first.get(HEADERS)
    if not isinstance(headers, Mapping):
        return requests[0].parameters
    alike = [name for name, value in headers.items() if all(one[HEADERS].get(name) == value for one in others)]
    return types.Parameters(**{**first, HEADERS: {name: headers[name] for name in alike}})


def _merge_tensors(types: Any, tensors: list[Any]) -> Any:
    first = tensors[0]
    given = {}
    parameters = dumped(first.parameters)
    if parameters:
        all_parameters = [dumped(tensor.parameters) for tensor in tensors]
        merged = {
            name: value if name in KEPT else [one[name] for one in all_parameters] for name, value in parameters.items()
        }
        given["parameters"] = types.Parameters(**merged)
    rows = sum(tensor.shape[0] for tensor in tensors)
    data = _join([data_of(tensor) for tensor in tensors])
    return types.RequestInput(
        name=first.name, datatype=first.datatype, shape=[rows, *first.shape[1:]], data=data, **given
    )


def _join(data: list[Any]) -> Any:
    if isinstance(data[0], str):
        return "".join(data)
    if isinstance(data[0], bytes):
        return b"".join(data)
    return [element for one in data for element in one]


def split(requests: list[Any], response: Any) -> list[Any]:
    """Cut the response to a merged request into one for each request, in their order. CannotSplit if that fails."""
    types = import_module("mlserver.types")
    sizes = [request.inputs[0].shape[0] for request in requests]
    outputs = [_split_tensor(types, tensor, sizes) for tensor in response.outputs]
    given = {"model_version": response.model_version, "parameters": response.parameters}
    given = {name: value for name, value in given.items() if value is not None}
    return [
        types.InferenceResponse(
            model_name=response.model_name, id=request.id, outputs=[tensors[place] for tensors in outputs], **given
        )
        for place, request in enumerate(requests)
    ]


def _split_tensor(types: Any, tensor: Any, sizes: list[int]) -> list[Any]:
    data, rows = data_of(tensor), sum(sizes)
    if not tensor.shape or tensor.shape[0] != rows or len(data) not in (rows, prod(tensor.shape)):
        raise CannotSplit(f"Output {tensor.name} has the shape {tensor.shape} for a batch of {rows} rows")
    elements = len(data) // rows if rows else 0
    parameters = dumped(tensor.parameters)
    found, row = [], 0
    for place, size in enumerate(sizes):
        own = {name: _own_value(name, value, sizes, place, row) for name, value in parameters.items()}
        given = {"parameters": types.Parameters(**own)} if tensor.parameters is not None else {}
        found.append(
            types.ResponseOutput(
                name=tensor.name,
                datatype=tensor.datatype,
                shape=[size, *tensor.shape[1:]],
                data=data[row * elements : (row + size) * elements],
                **given,
            )
        )
        row += size
    return found


def _own_value(name: str, value: Any, sizes: list[int], place: int, row: int) -> Any:
    """Pick what of a parameter belongs to the request at `place`, whose first row is `row`."""
    if name in KEPT or not isinstance(value, list):
        return value
    if len(value) == sum(sizes):
        return value[row]
    return value[place] if len(value) == len(sizes) else value


def data_of(tensor: Any) -> Any:
    """Take a tensor's data out of its TensorData, if it is in one."""
    return getattr(tensor.data, "root", tensor.data)


def dumped(parameters: Any) -> Mapping[str, Any]:
    """Turn Parameters into a mapping; none are an empty one."""
    found: Mapping[str, Any] = parameters.model_dump() if parameters is not None else {}
    return found
