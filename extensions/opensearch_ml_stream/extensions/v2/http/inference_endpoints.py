"""Inferences over HTTP: `infer` and `generate`, `infer_stream` and `generate_stream`.

They live as predictions do (`routes/predict_stream.py`): the provider call ends when the client
disconnects, a slow provider is bridged by heartbeats, and a stream ends with exactly one response that says how.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, NotAcceptable
from opensearch_ml_stream.connectors.wire_format import WireFormat
from opensearch_ml_stream.extensions.v2.http.headers import own_headers, readable_headers, response_headers
from opensearch_ml_stream.extensions.v2.http.use_cases import Inference, InferenceModels, UnreadRequest
from opensearch_ml_stream.extensions.v2.protocol.binary_data import BinaryOutputs
from opensearch_ml_stream.extensions.v2.protocol.json_requests import Dialect, WrittenForm, read_request
from opensearch_ml_stream.extensions.v2.protocol.json_responses import binary_response_body, response_body
from opensearch_ml_stream.extensions.v2.protocol.local_responses import LocalResponse
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceRequest, InferenceResponse
from opensearch_ml_stream.extensions.v2.protocol.stream_events import stream_format
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.exception_handlers import read_or_refuse
from opensearch_ml_stream.rest_handlers.http.gzip_coding import (
    GZIP_HEADERS,
    MIN_BYTES,
    VARY,
    GzipFormat,
    accepts_gzip,
    gzipped,
    may_stream_gzip,
)
from opensearch_ml_stream.rest_handlers.http.host_and_origin import Headers
from opensearch_ml_stream.rest_handlers.http.requests import header, read_body
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import (
    InFlightResponse,
    InFlightResponses,
)
from opensearch_ml_stream.rest_handlers.http.responses import encoded_response
from opensearch_ml_stream.rest_handlers.routes.predict_stream import relay

# What a form of a web page can send with JSON in it, and no client of V2 does. An urlencoded form holds none, as its
# braces are percent-encoded: under that type `curl -d` sends JSON, and so do Triton's tutorials.
_FORM_TYPES = ("multipart/form-data", "text/plain")
_JSON_LENGTH = "Inference-Header-Content-Length"  # Triton's: behind the JSON stand contents of tensors


@dataclass(frozen=True, slots=True)
class ModelPath:
    """What a path says of a model. `version` is None for the newest one."""

    name: str
    version: str | None


class _Body:
    """A request's body, which goes when it is read; how it was written is known then."""

    __slots__ = ("_data", "_json_length", "_scope", "form", "unread")

    def __init__(self, data: bytes, json_length: int | None, scope: Scope) -> None:
        self._data = data
        self._json_length = json_length
        self._scope = scope
        self.form = WrittenForm()
        self.unread = UnreadRequest(len(data), self._read)

    def _read(self) -> InferenceRequest:
        data, self._data = self._data, b""
        request, self.form = read_request(data, self._json_length)
        return replace(request, parameters={**request.parameters, "headers": readable_headers(self._scope)})


@dataclass(frozen=True, slots=True)
class _Asked:
    """An inference as a client asked for it."""

    scope: Scope
    caller: Caller
    path: ModelPath
    body: _Body
    reservation: BodyReservation


class InferenceEndpoints:
    """ASGI endpoints of one model each; `gzip` is whether responses are compressed for clients that take it."""

    def __init__(self, models: InferenceModels, in_flight: InFlightResponses, gate: Gate, gzip: bool) -> None:
        self._models = models
        self._in_flight = in_flight
        self._gate = gate
        self._gzip = gzip

    async def infer(self, scope: Scope, receive: Receive, send: Send, path: ModelPath) -> None:
        """Respond with a whole inference."""
        if (begun := await self._begin(scope, receive, send, path, is_stream=False)) is not None:
            response, work = begun
            await response.run(work)

    async def infer_stream(self, scope: Scope, receive: Receive, send: Send, path: ModelPath) -> None:
        """Respond with a stream of inferences."""
        if (begun := await self._begin(scope, receive, send, path, is_stream=True)) is not None:
            response, work = begun
            await response.run(work)

    async def _begin(
        self, scope: Scope, receive: Receive, send: Send, path: ModelPath, *, is_stream: bool
    ) -> tuple[InFlightResponse, Awaitable[None]] | None:
        """Read the request; return its response and the work that makes it, None if the request was refused.

        Nothing of the prompt stays here while the response streams.
        """
        reservation = BodyReservation(self._in_flight.bodies)
        allowing = (actions.PREDICT_STREAM, actions.PREDICT) if is_stream else (actions.PREDICT,)
        reading = self._read(scope, receive, reservation, allowing)
        if (read := await read_or_refuse(scope, receive, send, reservation, reading)) is None:
            return None
        caller, body = read
        response = InFlightResponse(scope, receive, send, self._in_flight, reservation)
        asked = _Asked(scope, caller, path, body, reservation)
        return response, (self._stream if is_stream else self._whole)(response, asked)

    async def _read(
        self, scope: Scope, receive: Receive, reservation: BodyReservation, allowing: Sequence[str]
    ) -> tuple[Caller, _Body]:
        caller = await self._gate.admit(scope, *allowing)
        _check_media_type(scope)
        json_length = _json_length(scope)
        self._in_flight.check_room()
        body = await read_body(scope, receive, reservation, is_of_parts=False)
        self._in_flight.check_room()
        return caller, _Body(body, json_length, scope)

    async def _prepare(self, asked: _Asked) -> Inference:
        path = asked.path
        inference = await self._models.prepare(asked.caller, path.name, path.version, asked.body.unread)
        asked.reservation.cover(inference.size)
        return inference

    async def _stream(self, response: InFlightResponse, asked: _Asked) -> None:
        try:
            inference = await self._prepare(asked)
        except MLStreamError as error:
            await response.fail(error)
            return
        wire: WireFormat = stream_format(inference.shape, asked.body.form.dialect)
        headers = response_headers(asked.scope, inference.shape)
        if self._gzip and may_stream_gzip(asked.scope):
            wire, headers = GzipFormat(wire), (*headers, *GZIP_HEADERS)
        elif self._gzip:
            headers = (*headers, *VARY)
        response.become_stream(wire, headers)
        opening = self._models.stream(inference)
        del inference
        await relay(response, opening, wire)

    async def _whole(self, response: InFlightResponse, asked: _Asked) -> None:
        try:
            inference = await self._prepare(asked)
            inferred = await self._models.infer(inference)
            body, of_body = await _encoded(inferred, asked.body.form)
        except MLStreamError as error:
            await response.fail(error)
            return
        headers = response_headers(asked.scope, inferred.shape, own_headers(inferred))
        await response.send(
            await compressed_response(asked.scope, body, gzip=self._gzip, headers=headers, of_body=of_body)
        )


async def _encoded(inferred: InferenceResponse | LocalResponse, form: WrittenForm) -> tuple[bytes, Mapping[str, str]]:
    """Return the body of a whole response in the form of its request, and its content headers."""
    if form.dialect is Dialect.TENSORS and form.binary:
        body, json_length = await asyncio.to_thread(_binary, inferred, form.binary)  # of numbers that may be millions
        return body, {"Content-Type": "application/octet-stream", _JSON_LENGTH: str(json_length)}
    if isinstance(inferred, LocalResponse):
        return inferred.encoded(form.dialect), {}
    return response_body(inferred, form.dialect), {}


def _binary(inferred: InferenceResponse | LocalResponse, wanted: BinaryOutputs) -> tuple[bytes, int]:
    return binary_response_body(inferred.read() if isinstance(inferred, LocalResponse) else inferred, wanted)


def _json_length(scope: Scope) -> int | None:
    """Return the length of the JSON that the body begins with, None for a body of JSON alone."""
    text = header(scope, _JSON_LENGTH.lower().encode()).strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 16) or int(text) == 0:
        raise InvalidRequest(
            f"{_JSON_LENGTH} must be the length of the JSON that the body begins with, which names the tensors"
        )
    return int(text)


def _check_media_type(scope: Scope) -> None:
    """Raise NotAcceptable for types that a foreign web page may send without a CORS preflight.

    Any other type, or none, counts as JSON, since clients of V2 send various types.
    """
    content_type = header(scope, b"content-type")
    if content_type.partition(";")[0].strip().lower() in _FORM_TYPES:
        raise NotAcceptable(f"Content-Type header [{content_type}] is not supported; send application/json")


async def compressed_response(
    scope: Scope, body: bytes = b"", *, gzip: bool, headers: Headers = (), of_body: Mapping[str, str] | None = None
) -> Response:
    """Return the response of a body that is encoded already, or empty, compressed for clients that take it.

    It is JSON if `of_body` says nothing else.
    """
    if gzip and len(body) >= MIN_BYTES:
        if accepts_gzip(scope):
            body, headers = await gzipped(body), (*headers, *GZIP_HEADERS)
        else:
            headers = (*headers, *VARY)
    response = encoded_response(Request(scope), body, headers=of_body)
    response.raw_headers.extend(headers)
    return response
