"""Predictions that are one JSON object: `_predict`, `_predict/{algorithm}` and `_batch_predict`."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.body_budget import BodyReservation
from opensearch_ml_stream.rest_handlers.http.exception_handlers import read_or_refuse
from opensearch_ml_stream.rest_handlers.http.requests import check_query, json_body, query, read_body
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import (
    InFlightResponse,
    InFlightResponses,
)
from opensearch_ml_stream.rest_handlers.openapi.description import OperationDescription, summary_of
from opensearch_ml_stream.rest_handlers.openapi.schemas import PREDICT


class WholePredictions(Protocol):
    """The use cases behind these routes.

    Responses are JSON objects as the API has them. Errors are MLStreamErrors: InvalidRequest and NotFound, and
    UpstreamError for a fault of the provider.
    """

    async def predict(
        self, caller: Caller, model_id: str, body: bytes, algorithm: str | None = None
    ) -> Mapping[str, Any]:
        """Make a whole prediction: `{"inference_results": [...]}`."""
        ...

    async def predict_encoded(self, caller: Caller, model_id: str, body: bytes, algorithm: str | None = None) -> bytes:
        """Return the response of `predict` as compact JSON."""
        ...

    async def batch_predict(self, caller: Caller, model_id: str, body: bytes) -> Mapping[str, Any]:
        """Start a batch job: `{"task_id", "status", ...}`."""
        ...


Predict = Callable[[Caller, Mapping[str, str], bytes], Awaitable[Mapping[str, Any]]]
"""A prediction for a caller, from the path's parameters and the request body."""


class _PredictEndpoint:
    """An ASGI endpoint that ends the provider call when the client disconnects; `predict` is what it is for."""

    def __init__(self, predict: Predict, in_flight: InFlightResponses, gate: Gate) -> None:
        self._predict = predict
        self._gate = gate
        self._in_flight = in_flight

    def describe(self) -> Mapping[str, OperationDescription]:
        """Return what the OpenAPI document says of it."""
        return {"POST": OperationDescription(summary_of(self._predict), body=PREDICT, is_body_required=True)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reservation = BodyReservation(self._in_flight.bodies)
        request = self._read(scope, receive, reservation)
        if (read := await read_or_refuse(scope, receive, send, reservation, request)) is None:
            return
        caller, body = read
        response = InFlightResponse(scope, receive, send, self._in_flight, reservation)
        await response.run(send_prediction(response, self._predict(caller, scope["path_params"], body)))

    async def _read(self, scope: Scope, receive: Receive, reservation: BodyReservation) -> tuple[Caller, bytes]:
        caller = await self._gate.admit(scope, actions.PREDICT)
        check_query(scope, query(scope))
        self._in_flight.check_room()
        body = await read_body(scope, receive, reservation)
        self._in_flight.check_room()
        return caller, json_body(scope, body) if body else body


async def send_prediction(response: InFlightResponse, prediction: Awaitable[Mapping[str, Any]]) -> None:
    """Send the prediction, or its error, as the whole response."""
    try:
        body = await prediction
    except MLStreamError as error:
        await response.fail(error)
    else:
        await response.send_whole(body)


async def send_encoded_prediction(response: InFlightResponse, prediction: Awaitable[bytes]) -> None:
    """Send the prediction, which is compact JSON, or its error, as the whole response."""
    try:
        content = await prediction
    except MLStreamError as error:
        await response.fail(error)
    else:
        await response.send_encoded(content)


def predict_routes(predictions: WholePredictions, in_flight: InFlightResponses, gate: Gate) -> list[Route]:
    """Return the routes of all predictions that are not streamed."""

    def predict(caller: Caller, path: Mapping[str, str], body: bytes) -> Awaitable[Mapping[str, Any]]:
        """Make a whole prediction."""
        return predictions.predict(caller, path["model_id"], body, path.get("algorithm"))

    def batch_predict(caller: Caller, path: Mapping[str, str], body: bytes) -> Awaitable[Mapping[str, Any]]:
        """Start a batch job."""
        return predictions.batch_predict(caller, path["model_id"], body)

    whole = _PredictEndpoint(predict, in_flight, gate)
    endpoints = {
        "/models/{model_id}/_predict": whole,
        "/_predict/{algorithm}/{model_id}": whole,
        "/models/{model_id}/_batch_predict": _PredictEndpoint(batch_predict, in_flight, gate),
    }
    paths = [(BASE_PATH + path + slash, endpoint) for path, endpoint in endpoints.items() for slash in ("", "/")]
    return [Route(path, endpoint, methods=["POST"]) for path, endpoint in paths]
