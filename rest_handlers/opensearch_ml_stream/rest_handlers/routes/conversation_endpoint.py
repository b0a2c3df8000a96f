"""The endpoint of a client API for conversations: it reads a request, and streams the answer or sends it whole.

A response lives as that of a prediction (`routes/predict_stream.py`): the provider call ends when the client
disconnects, heartbeats are sent while the provider is slow, and a stream ends with exactly one terminal object. A
`ConversationAPI` reads the API's requests and writes its answers.
"""

from collections.abc import Awaitable, Mapping
from contextlib import AbstractAsyncContextManager
from random import getrandbits
from typing import Any, Protocol

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer
from opensearch_ml_stream.connectors.conversation.dialect import ClientRequest
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.wire_format import WireFormat
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.asgi_extensions import HEAD_MEMO
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.exception_handlers import method_not_allowed
from opensearch_ml_stream.rest_handlers.http.requests import (
    content_coding,
    header,
    is_json,
    json_body,
    read_body,
    whole_body,
)
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import (
    InFlightResponse,
    InFlightResponses,
    send_prediction,
)
from opensearch_ml_stream.rest_handlers.routes.predict_stream import ProviderStream, relay


class AnswerRequest(Protocol):
    """What a client asks for: the next answer of a model, by its name or id."""

    @property
    def model(self) -> str:
        """The name or id of the model."""
        ...

    @property
    def is_stream(self) -> bool:
        """Whether the answer is to be streamed."""
        ...

    @property
    def request(self) -> ClientRequest:
        """The conversation."""
        ...

    def wire(self) -> WireFormat:
        """Return the format of the stream of the answer."""
        ...

    def whole(self, answer: WholeAnswer) -> bytes:
        """Return the JSON body of an answer in one piece."""
        ...


class ConversationAPI(Protocol):
    """A client API."""

    def read(self, body: dict[str, Any]) -> AnswerRequest:
        """Return what the members of a request ask for. InvalidRequest names the member that is wrong."""
        ...


class Conversations(Protocol):
    """The use cases behind these routes; errors are MLStreamErrors, NotFound for an unknown model."""

    def stream(self, caller: Caller, name: str, request: ClientRequest) -> AbstractAsyncContextManager[ProviderStream]:
        """Open the stream of the next answer of a model, by its name or id."""
        ...

    async def whole(self, caller: Caller, name: str, request: ClientRequest) -> WholeAnswer:
        """Return the next answer of a model, by its name or id."""
        ...


class ConversationEndpoint:
    """The ASGI endpoint of one path."""

    def __init__(
        self, api: ConversationAPI, conversations: Conversations, in_flight: InFlightResponses, gate: Gate
    ) -> None:
        self._api = api
        self._conversations = conversations
        self._in_flight = in_flight
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, until its response has ended or its client has disconnected."""
        if scope["method"] != "POST":
            await method_not_allowed(Request(scope), ["POST"])(scope, receive, send)
            return
        if (begun := await self._begin(scope, receive, send)) is not None:
            response, work = begun
            await response.run(work)

    async def _begin(
        self, scope: Scope, receive: Receive, send: Send
    ) -> tuple[InFlightResponse, Awaitable[None]] | None:
        """Read the request; return its response and the work that makes it, None if the request was refused.

        Nothing of the prompt stays here while the response streams: a prompt may be large, and its response long.
        """
        reservation = BodyReservation(self._in_flight.bodies)
        response = InFlightResponse(scope, receive, send, self._in_flight, reservation)
        try:
            caller = await self._gate.admit(scope, actions.PREDICT_STREAM, actions.PREDICT)
            body = await self._read_body(scope, receive, response, reservation)
            asked = self._api.read(jsontext.load_object(body))
            if asked.is_stream:
                response.wire = wire = asked.wire()
                self._in_flight.loop.call_soon(_prepare, asked.request, wire)  # once the provider is called
            else:
                caller = await self._gate.admit(scope, actions.PREDICT)
        except ClientDisconnect:
            reservation.release()
            return None
        except MLStreamError as error:
            reservation.release()
            await response.fail(error)
            return None
        return response, self._work(response, caller, asked)

    async def _read_body(
        self, scope: Scope, receive: Receive, response: InFlightResponse, reservation: BodyReservation
    ) -> bytes:
        self._in_flight.check_room()
        memo: dict[Any, bool] = scope.get(HEAD_MEMO, {})
        is_plain = memo.get(self)
        if is_plain is None:
            is_plain = memo[self] = is_json(header(scope, b"content-type")) and not content_coding(scope)
        direct = response.direct
        if direct is None or (body := direct.take_body(reservation)) is None:
            body = await read_body(scope, receive, reservation)
            self._in_flight.check_room()
        elif not is_plain or len(body) > reservation.max_body_size:
            body = whole_body(body, content_coding(scope), reservation)
        return body if is_plain else json_body(scope, body)

    def _work(self, response: InFlightResponse, caller: Caller, asked: AnswerRequest) -> Awaitable[None]:
        if response.wire is not None:
            return relay(response, self._conversations.stream(caller, asked.model, asked.request), response.wire)
        return send_prediction(response, self._whole(caller, asked))

    async def _whole(self, caller: Caller, asked: AnswerRequest) -> bytes:
        return asked.whole(await self._conversations.whole(caller, asked.model, asked.request))


def _prepare(request: ClientRequest, wire: WireFormat) -> None:
    if request.is_translated:  # else the stream begins as its provider sends it
        wire.prepare()


class AtPaths:
    """An ASGI application: those at their paths, which stand in front of the router, and all else to `router`."""

    def __init__(self, at: Mapping[str, ASGIApp], router: ASGIApp) -> None:
        self._at = at
        self._router = router

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handle a request."""
        application = self._at.get(scope["path"], self._router) if scope["type"] == "http" else self._router
        return application(scope, receive, send)  # no frame of its own, through which all of a stream would go


def new_id() -> str:
    """Return 32 hexadecimal digits that tell a response from all others.

    They are no secret: nothing is kept or found by them. So the kernel is not asked for them, which is a system call.
    """
    return f"{getrandbits(128):032x}"
