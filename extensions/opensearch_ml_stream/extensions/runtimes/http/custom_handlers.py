"""Custom handlers of runtimes: routes of a model's own, at paths that the server itself has nothing at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.extensions.v2.face import handler_headers, readable_header_list
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.base_path import Paths
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.exception_handlers import method_not_allowed, read_or_refuse
from opensearch_ml_stream.rest_handlers.http.host_and_origin import check_embedding, with_security_headers
from opensearch_ml_stream.rest_handlers.http.requests import read_body
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import (
    InFlightResponse,
    InFlightResponses,
)
from opensearch_ml_stream.rest_handlers.http.responses import ERROR_FORM, echoed_headers, plain_error_body

# Of the body as it came: the handler gets it whole and decompressed.
_OF_THE_TRANSFER = ("content-length", "content-encoding", "transfer-encoding", "connection", "expect")


@dataclass(frozen=True, slots=True)
class HandlerRequest:
    """A request as a handler gets it: the path decoded, the query as it was sent, no credentials in the headers."""

    method: str
    path: str
    query: str
    headers: Sequence[tuple[str, str]]
    body: bytes


@dataclass(frozen=True, slots=True)
class HandlerResponse:
    """What a handler responds with."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


class HandlerModels(Protocol):
    """The models that have custom handlers."""

    def find(self, path: str) -> Mapping[str, str]:
        """Return the models that have a handler at a path, by its method."""
        ...

    async def handle(self, caller: Caller, name: str, request: HandlerRequest) -> HandlerResponse:
        """Call a handler of a model; MLStreamErrors as for a prediction of it."""
        ...


class CustomHandlers:
    """The ASGI endpoint of all custom handlers; errors are as those of `/v2`."""

    def __init__(self, models: HandlerModels, in_flight: InFlightResponses, gate: Gate, paths: Paths) -> None:
        self._models = models
        self._in_flight = in_flight
        self._gate = gate
        self._paths = paths

    def before(self, not_found: ASGIApp) -> ASGIApp:
        """Return the endpoint of all paths that no route has; `not_found` is for those that no handler has either."""

        async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
            found = (
                {}
                if scope["type"] != "http" or self._paths.is_reserved(scope["path"])
                else self._models.find(scope["path"])
            )
            if not found:
                await not_found(scope, receive, send)
            elif (model := found.get(scope["method"])) is None:
                await method_not_allowed(Request(scope), sorted(found))(scope, receive, send)
            else:
                await self._respond(scope, receive, send, model)

        return endpoint

    async def _respond(self, scope: Scope, receive: Receive, send: Send, model: str) -> None:
        scope[ERROR_FORM] = plain_error_body
        reservation = BodyReservation(self._in_flight.bodies)
        reading = self._read(scope, receive, reservation)
        if (read := await read_or_refuse(scope, receive, send, reservation, reading)) is None:
            return
        response = InFlightResponse(scope, receive, send, self._in_flight, reservation)
        await response.run(self._handle(response, scope, model, *read))

    async def _read(
        self, scope: Scope, receive: Receive, reservation: BodyReservation
    ) -> tuple[Caller, HandlerRequest]:
        caller = await self._gate.admit(scope, actions.PREDICT)
        if scope["method"] == "GET":
            check_embedding(scope)
        self._in_flight.check_room()
        body = await read_body(scope, receive, reservation, is_of_parts=False)
        self._in_flight.check_room()
        headers = [pair for pair in readable_header_list(scope) if pair[0] not in _OF_THE_TRANSFER]
        headers.append(("content-length", str(len(body))))
        query = scope["query_string"].decode("latin-1")
        return caller, HandlerRequest(scope["method"], scope["path"], query, headers, body)

    async def _handle(
        self, response: InFlightResponse, scope: Scope, model: str, caller: Caller, request: HandlerRequest
    ) -> None:
        try:
            handled = await self._models.handle(caller, model, request)
        except MLStreamError as error:
            await response.fail(error)
            return
        headers = {"Cache-Control": "no-store", **echoed_headers(Request(scope))}
        whole = with_security_headers(scope, Response(handled.body, handled.status, headers))
        whole.raw_headers.extend(handler_headers(handled.headers))
        await response.send(whole)
