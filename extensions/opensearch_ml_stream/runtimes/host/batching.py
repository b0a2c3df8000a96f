"""Adaptive batching: unary calls that arrive close together become one prediction.

A batch is open for `max_batch_time` seconds from its first request on, or until it has `max_batch_size` requests, as in
MLServer. Unlike there, only compatible requests share one, and if the prediction of a batch fails, each of its requests
is predicted alone, so that one bad request fails alone.

Requests are merged, and responses split, as in MLServer: tensors of a name are joined along their first axis.
Parameters of an input other than its content type become lists, one value a request. Of the requests' headers the model
sees those that all of them have alike. A response's tensors are cut along the first axis; so are their parameters that
are lists with a value for each row.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from importlib import import_module
from math import prod
from typing import Any

from opensearch_ml_stream.runtimes.host.keeper_socket import Figures
from opensearch_ml_stream.runtimes.host.served_model import Predict

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


class _Batch:
    """Requests and the futures of their responses; `timer` runs them."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.responses: list[asyncio.Future[Any]] = []
        self.timer: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[None] | None = None


class AdaptiveBatcher:
    """Calls `predict_one` with merged requests; `predict` is called in its place."""

    def __init__(self, predict_one: Predict, max_batch_size: int, max_batch_time: float, figures: Figures) -> None:
        self._predict_one = predict_one
        self._max_batch_size = max_batch_size
        self._max_batch_time = max_batch_time
        self._figures = figures
        self._open: dict[str, _Batch] = {}
        self._running: set[_Batch] = set()

    async def predict(self, request: Any) -> Any:
        """Predict a request with others of its kind; alone if it cannot be merged."""
        key = batch_key(request)
        if key is None:
            return await self._predict_one(request)
        loop = asyncio.get_running_loop()
        batch = self._open.get(key)
        if batch is None:
            batch = self._open[key] = _Batch()
            batch.timer = loop.call_later(self._max_batch_time, self._run, key, batch)
        response: asyncio.Future[Any] = loop.create_future()
        batch.requests.append(request)
        batch.responses.append(response)
        if len(batch.requests) >= self._max_batch_size:
            self._run(key, batch)
        try:
            return await response
        except asyncio.CancelledError:
            self._leave(batch)
            raise

    def _run(self, key: str, batch: _Batch) -> None:
        del self._open[key]
        if batch.timer is not None:
            batch.timer.cancel()
        left = [pair for pair in zip(batch.requests, batch.responses, strict=True) if not pair[1].done()]
        if left:
            batch.requests, batch.responses = [one for one, _ in left], [response for _, response in left]
            self._running.add(batch)
            batch.task = asyncio.get_running_loop().create_task(self._predict_batch(batch))

    def _leave(self, batch: _Batch) -> None:
        """End the prediction of a batch that nobody waits for."""
        if batch.task is not None and all(response.done() for response in batch.responses):
            batch.task.cancel()

    async def _predict_batch(self, batch: _Batch) -> None:
        try:
            await self._predict_merged(batch)
        except BaseException as error:  # noqa: BLE001 - the calls raise it, each in its own task
            for response in batch.responses:
                if not response.done():
                    response.set_exception(_as_exception(error))
        finally:
            self._running.discard(batch)

    async def _predict_merged(self, batch: _Batch) -> None:
        self._figures.batches += 1
        self._figures.batched_requests += len(batch.requests)
        if len(batch.requests) > 1:
            try:
                merged = await self._predict_one(merge(batch.requests))
                found = split(batch.requests, merged)
            except Exception:  # noqa: BLE001 - a model raises what it likes, and will again to whom it belongs
                await asyncio.gather(*map(self._predict_alone, batch.requests, batch.responses))
                return
            for response, own in zip(batch.responses, found, strict=True):
                if not response.done():
                    response.set_result(own)
        else:
            await self._predict_alone(batch.requests[0], batch.responses[0])

    async def _predict_alone(self, request: Any, response: "asyncio.Future[Any]") -> None:
        if response.done():
            return
        try:
            own = await self._predict_one(request)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the request's call raises it
            if not response.done():
                response.set_exception(error)
        else:
            if not response.done():
                response.set_result(own)


def _as_exception(error: BaseException) -> BaseException:
    return error if not isinstance(error, asyncio.CancelledError) else RuntimeError("The prediction was cancelled")


class CannotSplit(ValueError):
    """The response to a batch does not have a row for each of its rows."""


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
