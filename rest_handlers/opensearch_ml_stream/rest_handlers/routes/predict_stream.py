"""`POST /_plugins/_ml/models/{model_id}/_predict/stream`: a plain ASGI endpoint in front of the router, the hot path.

Two phases. Until the first bytes are due, every failure is an HTTP status with OpenSearch's error body. From then
on, the response is a stream of whole objects that ends with exactly one terminal object, good or bad.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from opensearch_ml_stream.connectors.chunks import Chunks, Ending
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.predict.inputs import RemoteInput, read_predict_input
from opensearch_ml_stream.connectors.wire_format import NDJSON, SSE, WireFormat
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.body_budget import BodyReservation
from opensearch_ml_stream.rest_handlers.http.browsers import BrowserPolicy, check_browser, preflight_response
from opensearch_ml_stream.rest_handlers.http.exception_handlers import method_not_allowed
from opensearch_ml_stream.rest_handlers.http.requests import (
    FORMATS,
    check_query,
    json_body,
    query,
    read_body,
    wire_format,
)
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import (
    InFlightResponse,
    InFlightResponses,
    StreamFormat,
    read_or_refuse,
)
from opensearch_ml_stream.rest_handlers.http.responses import error_response
from opensearch_ml_stream.rest_handlers.openapi.description import FLAG, OperationDescription, Schema
from opensearch_ml_stream.rest_handlers.openapi.schemas import PREDICT
from opensearch_ml_stream.rest_handlers.routes.predict import send_prediction

_PATH = f"{BASE_PATH}/models/{{model_id}}/_predict/stream"
_PATTERN = re.compile(_PATH.replace("{model_id}", "([^/]+)") + "/?")
_QUERY_PARAMETERS: Mapping[str, Schema] = {"format": {"enum": list(FORMATS)}, "stream": FLAG}

STREAM_OPERATIONS = {
    _PATH: {
        "POST": OperationDescription(
            "Stream a prediction.",
            _QUERY_PARAMETERS,
            body=PREDICT,
            is_body_required=True,
            content_types=(NDJSON.content_type, SSE.content_type, "application/json"),
        )
    }
}
"""What the OpenAPI document says of the stream."""


class ProviderStream(Protocol):
    """An open provider stream."""

    @property
    def outcome(self) -> Ending | MLStreamError | None:
        """None while the stream runs."""
        ...

    @property
    def chunks(self) -> int:
        """How many chunks have come so far."""
        ...

    @property
    def skipped_events(self) -> int:
        """How many events could not be read so far."""
        ...

    def terminal_fields(self, ending: Ending) -> dict[str, Any]:
        """Return what the terminal object says beside the stream's ending, such as skipped events."""
        ...

    async def read(self) -> Chunks:
        """Return the next chunks; none only when the outcome is known."""
        ...

    async def pump(self, encode: Callable[[Chunks], bytes], write: Callable[[bytes], bool]) -> Chunks:
        """Encode and write chunks as they come, until `write` returns False or the outcome is known.

        Returns the chunks that came with the outcome; those are not written.
        """
        ...


class Predictions(Protocol):
    """The use cases behind the stream route."""

    def stream(
        self, caller: Caller, model_id: str, parameters: Mapping[str, str], action_type: str | None = None
    ) -> AbstractAsyncContextManager[ProviderStream]:
        """Open the provider's stream for the parameters of a request, by the predict action unless it names another."""
        ...

    async def predict(
        self, caller: Caller, model_id: str, body: bytes, algorithm: str | None = None
    ) -> Mapping[str, Any]:
        """Make a whole prediction, for callers who ask for one merged object."""
        ...

    async def predict_encoded(self, caller: Caller, model_id: str, body: bytes, algorithm: str | None = None) -> bytes:
        """Return the response of `predict` as compact JSON."""
        ...


RelayIfElsewhere = Callable[[Scope, Receive, Send, str], Awaitable[bool]]
"""Sends the request for a model on to where the model runs, and returns True, unless it runs here."""


class PredictStream:
    """The ASGI application: streams here, every other path to `router`; `policy` holds for both.

    No middleware and no router stands between a stream and its client. With `relay_if_elsewhere`, some models may run
    on another server.
    """

    def __init__(
        self,
        predictions: Predictions,
        in_flight: InFlightResponses,
        gate: Gate,
        router: ASGIApp,
        policy: BrowserPolicy,
        relay_if_elsewhere: RelayIfElsewhere | None = None,
    ) -> None:
        self._predictions = predictions
        self._in_flight = in_flight
        self._gate = gate
        self._router = router
        self._policy = policy
        self._relay_if_elsewhere = relay_if_elsewhere

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, until its response has ended or its client has disconnected."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
        elif (early := self._early_response(scope)) is not None:
            await early(scope, receive, send)
        elif (match := _PATTERN.fullmatch(scope["path"])) is None:
            await self._router(scope, receive, send)
        elif scope["method"] != "POST":
            await method_not_allowed(Request(scope), ["POST"])(scope, receive, send)
        elif self._relay_if_elsewhere is not None and await self._relay_if_elsewhere(scope, receive, send, match[1]):
            pass
        elif (begun := await self._begin(scope, receive, send, match[1])) is not None:
            response, work = begun
            await response.run(work)

    def _early_response(self, scope: Scope) -> Response | None:
        """Return the response to a browser that is refused, or asks beforehand; None for all other requests."""
        try:
            check_browser(scope, self._policy, any_host=self._gate.asks_for_login)
        except MLStreamError as error:
            return error_response(Request(scope), error)
        return preflight_response(scope) if scope["method"] == "OPTIONS" else None

    async def _begin(
        self, scope: Scope, receive: Receive, send: Send, model_id: str
    ) -> tuple[InFlightResponse, Awaitable[None]] | None:
        """Read the request; return its response and the work that makes it, None if the request was refused.

        Nothing of the prompt stays here while the response streams: a prompt may be large, and its response long.
        """
        reservation = BodyReservation(self._in_flight.bodies)
        request = self._read(scope, receive, reservation)
        if (read := await read_or_refuse(scope, receive, send, reservation, request)) is None:
            return None
        caller, body, remote, wire = read
        response = InFlightResponse(scope, receive, send, self._in_flight, reservation, wire)
        if wire is None:
            return response, send_prediction(response, self._predictions.predict(caller, model_id, body))
        return response, relay(
            response, self._predictions.stream(caller, model_id, remote.parameters, remote.action_type), wire
        )

    async def _read(
        self, scope: Scope, receive: Receive, reservation: BodyReservation
    ) -> tuple[Caller, bytes, RemoteInput, WireFormat | None]:
        caller = await self._gate.admit(scope, actions.PREDICT_STREAM, actions.PREDICT)
        query_parameters = query(scope)
        check_query(scope, query_parameters, _QUERY_PARAMETERS.keys())
        self._in_flight.check_room()
        body = await read_body(scope, receive, reservation)
        self._in_flight.check_room()
        if body:
            body = json_body(scope, body)
        predict_input = read_predict_input(body)
        wire = wire_format(scope, query_parameters, predict_input.parameters)
        return caller, body, predict_input if isinstance(predict_input, RemoteInput) else RemoteInput(), wire


async def relay(
    response: InFlightResponse, opening: AbstractAsyncContextManager[ProviderStream], wire: StreamFormat
) -> None:
    """Relay the stream from its first chunk to the terminal object."""
    encode, writer = wire.chunks, response.writer
    try:
        async with opening as provider:
            if response.notes is not None:
                response.notes.stream = provider
            chunks = await provider.read()
            outcome = provider.outcome
            if not chunks and isinstance(outcome, MLStreamError):
                raise outcome
            await response.start(wire)
            if outcome is None:
                writer.write_chunk(encode(chunks))
            while outcome is None:
                await writer.drain()
                chunks = await provider.pump(encode, writer.write_chunk)
                outcome = provider.outcome
            # Before the provider call is wound up, which the client need not wait for.
            if isinstance(outcome, MLStreamError):
                await response.fail(outcome, encode(chunks) if chunks else b"")
            else:
                await response.end(wire.last(chunks, outcome, provider.terminal_fields(outcome)))
    except MLStreamError as error:
        await response.fail(error)
