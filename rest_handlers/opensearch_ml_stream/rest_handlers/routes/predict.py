"""Predictions that are one JSON object: `_predict`, `_predict/{algorithm}` and `_batch_predict`."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.rest_handlers.http.requests import (
    ClientDisconnect,
    check_content_type,
    check_query,
    query,
    read_body,
)
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponse, InFlightResponses
from opensearch_ml_stream.rest_handlers.http.responses import error_response

PREFIX = "/_plugins/_ml"


class WholePredictions(Protocol):
    async def predict(self, model_id: str, body: bytes, algorithm: str | None = None) -> Mapping[str, Any]: ...

    async def batch_predict(self, model_id: str, body: bytes) -> Mapping[str, Any]: ...


Predict = Callable[[Mapping[str, str], bytes], Awaitable[Mapping[str, Any]]]


class _Endpoint:
    """An ASGI endpoint that ends the call of the provider when the client leaves."""

    def __init__(self, predict: Predict, answers: InFlightResponses) -> None:
        self._predict = predict
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            check_query(scope, query(scope))
            body = await read_body(scope, receive, self._answers.limits().max_body_size)
            if body:
                check_content_type(scope)
        except ClientDisconnect:
            return
        except MLStreamError as error:
            await error_response(Request(scope), error)(scope, receive, send)
            return
        answer = InFlightResponse(scope, receive, send, self._answers)
        await answer.run(send_whole(answer, self._predict(scope["path_params"], body)))


async def send_whole(answer: InFlightResponse, prediction: Awaitable[Mapping[str, Any]]) -> None:
    """The prediction, or its error, as the whole answer."""
    try:
        body = await prediction
    except MLStreamError as error:
        await answer.fail(error)
    else:
        await answer.whole(body)


def predict_routes(predictions: WholePredictions, answers: InFlightResponses) -> list[Route]:
    """The routes of all predictions that are not streamed."""

    def predict(path: Mapping[str, str], body: bytes) -> Awaitable[Mapping[str, Any]]:
        return predictions.predict(path["model_id"], body, path.get("algorithm"))

    def batch_predict(path: Mapping[str, str], body: bytes) -> Awaitable[Mapping[str, Any]]:
        return predictions.batch_predict(path["model_id"], body)

    whole = _Endpoint(predict, answers)
    endpoints = {
        "/models/{model_id}/_predict": whole,
        "/_predict/{algorithm}/{model_id}": whole,
        "/models/{model_id}/_batch_predict": _Endpoint(batch_predict, answers),
    }
    paths = [(PREFIX + path + slash, endpoint) for path, endpoint in endpoints.items() for slash in ("", "/")]
    return [Route(path, endpoint, methods=["POST"]) for path, endpoint in paths]
