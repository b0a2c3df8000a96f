"""`/v1/embeddings`: embeddings of texts, whole."""

from collections.abc import Mapping
from typing import Any, Protocol

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.openai_api.protocol.embeddings import (
    EmbeddingsRequest,
    embeddings_response,
    read_embeddings_request,
)
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.exception_handlers import method_not_allowed, read_or_refuse
from opensearch_ml_stream.rest_handlers.http.requests import json_body, read_body
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponse, InFlightResponses
from opensearch_ml_stream.rest_handlers.routes.prediction_responses import send_prediction


class EmbeddingModels(Protocol):
    """The use case behind this route."""

    async def embed(self, caller: Caller, request: EmbeddingsRequest) -> Mapping[str, Any]:
        """Return the whole prediction. NotFound for an unknown model, InvalidRequest for one that takes no texts."""
        ...


class EmbeddingsEndpoint:
    """The ASGI endpoint."""

    def __init__(self, models: EmbeddingModels, in_flight: InFlightResponses, gate: Gate) -> None:
        self._models = models
        self._in_flight = in_flight
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, until its response has ended or its client has disconnected."""
        if scope["method"] != "POST":
            await method_not_allowed(Request(scope), ["POST"])(scope, receive, send)
            return
        reservation = BodyReservation(self._in_flight.bodies)
        reading = self._read(scope, receive, reservation)
        if (read := await read_or_refuse(scope, receive, send, reservation, reading)) is None:
            return
        caller, request = read
        response = InFlightResponse(scope, receive, send, self._in_flight, reservation)
        await response.run(send_prediction(response, self._embed(caller, request)))

    async def _read(
        self, scope: Scope, receive: Receive, reservation: BodyReservation
    ) -> tuple[Caller, EmbeddingsRequest]:
        caller = await self._gate.admit(scope, actions.PREDICT)
        self._in_flight.check_room()
        body = await read_body(scope, receive, reservation)
        self._in_flight.check_room()
        return caller, read_embeddings_request(jsontext.load_object(json_body(scope, body)))

    async def _embed(self, caller: Caller, request: EmbeddingsRequest) -> bytes:
        return embeddings_response(request, await self._models.embed(caller, request))
