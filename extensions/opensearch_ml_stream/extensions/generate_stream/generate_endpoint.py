"""`/generate-stream`: POST for programs, GET for a browser's EventSource, which can do nothing else.

    {"prompt": "Why is the sky blue?", "max_tokens": 100, "temperature": 0.2}

All members but `prompt` and `stream` are parameters of the prediction, whatever their names. A GET is a call that is
paid for, so browsers may make it for pages of the sidecar's own origin alone (and of listed ones), and it is made once:
an EventSource that comes again, as each does when its stream ends, gets 204.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound, UpstreamError
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.generate_stream.growing_text import MAX_TEXT_BYTES, GrowingText
from opensearch_ml_stream.extensions.v2.face import InferenceModels, InferenceRequest, Tensor, UnreadRequest
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.exception_handlers import method_not_allowed, read_or_refuse
from opensearch_ml_stream.rest_handlers.http.host_and_origin import check_embedding, with_security_headers
from opensearch_ml_stream.rest_handlers.http.requests import header, json_body, query, read_body
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import (
    InFlightResponse,
    InFlightResponses,
)
from opensearch_ml_stream.rest_handlers.openapi_schemas import STRING
from opensearch_ml_stream.rest_handlers.operation_description import OperationDescription
from opensearch_ml_stream.rest_handlers.routes.predict_stream import ProviderStream, relay

SETTING = "opensearch_ml_stream.generate_stream_model"
_BODY = {"type": "object", "required": ["prompt"], "properties": {"prompt": STRING}}


class GenerateStreamEndpoint:
    """The ASGI endpoint. `model_name` returns the name or the id of the model, "" for none."""

    def __init__(
        self, models: InferenceModels, model_name: Callable[[], str], in_flight: InFlightResponses, gate: Gate
    ) -> None:
        self._models = models
        self._model_name = model_name
        self._in_flight = in_flight
        self._gate = gate

    def describe(self) -> Mapping[str, OperationDescription]:
        """Return what the OpenAPI document says of it."""
        types = (GrowingText.content_type,)
        return {
            "POST": OperationDescription(
                "Stream a response as growing text.", body=_BODY, is_body_required=True, content_types=types
            ),
            "GET": OperationDescription(
                "Stream a response as growing text to an EventSource.", {"prompt": STRING}, content_types=types
            ),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, until its response has ended or its client has disconnected."""
        if scope["method"] not in ("GET", "POST"):
            await method_not_allowed(Request(scope), ["GET", "POST"])(scope, receive, send)
            return
        reservation = BodyReservation(self._in_flight.bodies)
        reading = self._read(scope, receive, reservation)
        if (read := await read_or_refuse(scope, receive, send, reservation, reading)) is None:
            return
        caller, name, request = read
        if request is None:
            await with_security_headers(scope, Response(status_code=204))(scope, receive, send)
            return
        wire = GrowingText(lambda: response.interrupt(_too_long()), event_id=scope["method"] == "GET")
        response = InFlightResponse(scope, receive, send, self._in_flight, reservation, wire)
        await response.run(relay(response, self._stream(caller, name, request), wire))

    async def _read(
        self, scope: Scope, receive: Receive, reservation: BodyReservation
    ) -> tuple[Caller, str, InferenceRequest | None]:
        """Return caller, model name and request; the last is None for an EventSource that connects again."""
        is_get = scope["method"] == "GET"
        if is_get:
            check_embedding(scope)
        caller = await self._gate.admit(scope, actions.PREDICT_STREAM, actions.PREDICT)
        name = model_named_by(self._model_name)
        if is_get and header(scope, b"last-event-id"):
            return caller, name, None
        self._in_flight.check_room()
        if is_get:
            return caller, name, _read_members(query(scope))
        body = await read_body(scope, receive, reservation)
        self._in_flight.check_room()
        return caller, name, _read_members(jsontext.load_object(json_body(scope, body)))

    @asynccontextmanager
    async def _stream(self, caller: Caller, name: str, request: InferenceRequest) -> AsyncIterator[ProviderStream]:
        unread = UnreadRequest(0, partial(replace, request))
        opening = self._models.stream(await self._models.prepare(caller, name, None, unread))
        del request, unread  # a prompt may be large, and the stream of its response long
        async with opening as stream:
            yield stream


def model_named_by(model_name: Callable[[], str]) -> str:
    """Return the name of the model that these routes are for; NotFound if none is set, as if there were no routes."""
    if not (name := model_name()):
        raise NotFound(f"/generate-stream is off; name a model in the setting {SETTING}")
    return name


def _too_long() -> UpstreamError:
    return UpstreamError(
        f"The response is longer than {MAX_TEXT_BYTES} bytes, and each event here repeats it; use _predict/stream",
        type="response_too_long_exception",
    )


def _read_members(members: Mapping[str, Any]) -> InferenceRequest:
    """Return the request with these members, of a body or of a query; what is null in it is absent."""
    parameters = {name: value for name, value in members.items() if value is not None}
    prompt = parameters.pop("prompt", "")
    if not isinstance(prompt, str) or not prompt:
        raise InvalidRequest("[prompt] must be a string that is not empty")
    if parameters.pop("stream", True) not in (True, "true"):
        raise InvalidRequest("[stream] cannot be false here; for a response in one piece, use _predict of the model")
    tensor = Tensor("prompt", "BYTES", (1,), (prompt,), {"content_type": "str"})
    return InferenceRequest((tensor,), parameters=parameters)
