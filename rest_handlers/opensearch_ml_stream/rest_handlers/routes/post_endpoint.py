"""An endpoint that takes a JSON object by POST and sends a whole response."""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.exception_handlers import method_not_allowed, read_or_refuse
from opensearch_ml_stream.rest_handlers.http.requests import json_body, read_body
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponse, InFlightResponses

Asked = TypeVar("Asked")


class PostEndpoint(Generic[Asked]):
    """The ASGI endpoint, for callers who may do one of the `actions`.

    `read` reads the object and raises InvalidRequest if it is wrong; `respond` sends the response, or its error.
    """

    def __init__(
        self,
        in_flight: InFlightResponses,
        gate: Gate,
        actions: tuple[str, ...],
        read: Callable[[dict[str, Any]], Asked],
        respond: Callable[[InFlightResponse, Scope, Caller, Asked], Awaitable[None]],
    ) -> None:
        self._in_flight = in_flight
        self._gate = gate
        self._actions = actions
        self._read = read
        self._respond = respond

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, until its response has ended or its client has disconnected."""
        if scope["method"] != "POST":
            await method_not_allowed(Request(scope), ["POST"])(scope, receive, send)
            return
        reservation = BodyReservation(self._in_flight.bodies)
        reading = self._read_request(scope, receive, reservation)
        if (read := await read_or_refuse(scope, receive, send, reservation, reading)) is None:
            return
        response = InFlightResponse(scope, receive, send, self._in_flight, reservation)
        await response.run(self._respond(response, scope, *read))

    async def _read_request(self, scope: Scope, receive: Receive, reservation: BodyReservation) -> tuple[Caller, Asked]:
        caller = await self._gate.admit(scope, *self._actions)
        self._in_flight.check_room()
        body = await read_body(scope, receive, reservation)
        self._in_flight.check_room()
        return caller, self._read(jsontext.load_object(json_body(scope, body)))
