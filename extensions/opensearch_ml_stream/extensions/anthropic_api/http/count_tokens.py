"""`POST /v1/messages/count_tokens`: how many input tokens a message would have, without an answer to it."""

from typing import Any, Protocol

import orjson
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.conversation.dialect import ANTHROPIC, ClientRequest
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.anthropic_api.protocol.body_members import Members
from opensearch_ml_stream.extensions.anthropic_api.protocol.messages_request import read_counted_conversation
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.exception_handlers import method_not_allowed, read_or_refuse
from opensearch_ml_stream.rest_handlers.http.requests import json_body, read_body
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponse, InFlightResponses
from opensearch_ml_stream.rest_handlers.http.responses import encoded_response

ESTIMATE = {"X-Token-Count": "estimate"}
"""The header of a count that is no provider's own."""


class Count(Protocol):
    """A number of input tokens."""

    @property
    def input_tokens(self) -> int:
        """The number."""
        ...

    @property
    def is_estimated(self) -> bool:
        """Whether no provider has counted them."""
        ...


class Counts(Protocol):
    """The use case behind this route."""

    async def count(self, caller: Caller, name: str, request: ClientRequest) -> Count:
        """Return how many input tokens a request has for a model, by its name or id."""
        ...


class CountTokens:
    """The ASGI endpoint."""

    def __init__(self, counts: Counts, in_flight: InFlightResponses, gate: Gate) -> None:
        self._counts = counts
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
        response = InFlightResponse(scope, receive, send, self._in_flight, reservation)
        await response.run(self._respond(response, Request(scope), *read))

    async def _read(
        self, scope: Scope, receive: Receive, reservation: BodyReservation
    ) -> tuple[Caller, str, ClientRequest]:
        caller = await self._gate.admit(scope, actions.PREDICT_STREAM, actions.PREDICT)
        self._in_flight.check_room()
        body: dict[str, Any] = jsontext.load_object(json_body(scope, await read_body(scope, receive, reservation)))
        model = Members(body).required_text("model")
        body.pop("model")
        return caller, model, ClientRequest(ANTHROPIC, body, read_counted_conversation)

    async def _respond(
        self, response: InFlightResponse, request: Request, caller: Caller, model: str, asked: ClientRequest
    ) -> None:
        try:
            count = await self._counts.count(caller, model, asked)
        except MLStreamError as error:
            await response.fail(error)
            return
        body = orjson.dumps({"input_tokens": count.input_tokens})
        await response.send(encoded_response(request, body, headers=ESTIMATE if count.is_estimated else None))
