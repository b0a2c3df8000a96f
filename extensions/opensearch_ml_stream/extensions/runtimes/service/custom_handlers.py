"""Custom handlers of runtimes: routes of a model's own, at paths that the server itself does not use."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from re import Pattern
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, NotFound, UpstreamError
from opensearch_ml_stream.extensions.runtimes.service import runtime_errors
from opensearch_ml_stream.extensions.runtimes.service.runtime_models import RuntimeModels
from opensearch_ml_stream.extensions.runtimes.service.runtime_protocol import Runtime
from opensearch_ml_stream.extensions.runtimes.service.status import HandlerStatus, ModelStatus
from opensearch_ml_stream.extensions.v2.face import Unloaded, handler_headers, own_errors, readable_header_list
from opensearch_ml_stream.plugin.limits.call_timeouts import in_time
from opensearch_ml_stream.plugin.observation import Observation, Observations
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.model_cache import ModelCache
from opensearch_ml_stream.plugin.predictions.provider_call import ProviderCalls, read_all
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
from opensearch_ml_stream.runtimes.frames import MalformedFrame, pack_message, unpack_message
from opensearch_ml_stream.runtimes.path_templates import pattern_of

# Headers of the body as it was sent: the handler gets it whole and decompressed.
_OF_THE_TRANSFER = ("content-length", "content-encoding", "transfer-encoding", "connection", "expect")
MAX_HEAD_BYTES = 64 * 1024  # of a response; its body has a limit of its own
_WITHOUT_BODY = (204, 304)


@dataclass(frozen=True, slots=True)
class HandlerRequest:
    """A request for a handler: the path decoded, the query as it was sent, no credentials in the headers."""

    method: str
    path: str
    query: str
    headers: Sequence[tuple[str, str]]
    body: bytes


@dataclass(frozen=True, slots=True)
class HandlerResponse:
    """The response of a handler."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


class CustomHandlers:
    """The ASGI endpoint of all custom handlers; errors have the form of `/v2`."""

    def __init__(self, models: "HandlerCalls", in_flight: InFlightResponses, gate: Gate, paths: Paths) -> None:
        self._models = models
        self._in_flight = in_flight
        self._gate = gate
        self._paths = paths

    def before(self, not_found: ASGIApp) -> ASGIApp:
        """Return the endpoint for paths without a route; `not_found` is for those without a handler, too."""

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


class HandlerCalls:
    """Calls of custom handlers, under the rights and limits of the models that have them."""

    def __init__(
        self, runtimes: RuntimeModels, models: ModelCache, calls: ProviderCalls, observations: Observations
    ) -> None:
        self._runtimes = runtimes
        self._models = models
        self._calls = calls
        self._observations = observations
        self._handlers = RuntimeHandlers(runtimes)

    def find(self, path: str) -> Mapping[str, str]:
        """Return the models that have a handler at a path, by its method."""
        return self._handlers.find(path)

    async def handle(self, caller: Caller, name: str, request: HandlerRequest) -> HandlerResponse:
        """Call the handler like a prediction of its model: counted, limited, charged, with the model's timeouts."""
        status = self._runtimes.current().get(name)
        if status is None:
            raise runtime_errors.unknown_model(name)
        with self._observations.whole(caller) as observed:
            model = await self._models.get(caller, status.model_id)
            observed.set_model(model.model_id)
            if not isinstance(model.protocol, Runtime) or model.protocol.model != name:
                raise runtime_errors.unknown_model(name)
            try:
                with own_errors():
                    return await self._call(observed, model, model.protocol, request)
            except Unloaded:
                raise NotFound(f"Model {name} not found") from None

    async def _call(
        self, observed: Observation, model: CompiledModel, runtime: Runtime, request: HandlerRequest
    ) -> HandlerResponse:
        caller = observed.caller
        if model.guardrails.input is not None or model.guardrails.output is not None:
            raise InvalidRequest(
                f"Model {runtime.model} has guardrails, and what its custom handlers take and return cannot be checked "
                "by them"
            )
        limit = self._calls.live_settings.current.max_json_size + MAX_HEAD_BYTES
        async with self._calls.open_streams.place(model.model_id, model.settings.limits, caller.name):
            self._calls.apply_rate_limits(model, caller)
            charge = await self._calls.charge(model, caller, request.body)
            observed.admit()
            with charge or nullcontext():
                opening = runtime.handle(request_message(request))
                async with in_time(opening, model.settings.limits) if model.is_timed else opening as opened:
                    return read_response(runtime.model, await read_all(opened, limit))


class _Route(NamedTuple):
    pattern: Pattern[str]
    method: str
    model: str


class RuntimeHandlers:
    """Finds handlers by what the keeper has last written; the table of them is made anew only when it has."""

    def __init__(self, models: RuntimeModels) -> None:
        self._models = models
        self._read: Mapping[str, ModelStatus] | None = None  # what the table was made of
        self._routes: list[_Route] = []

    def find(self, path: str) -> dict[str, str]:
        """Return the names of the models that have a handler at a path, by its method."""
        models = self._models.current()
        if models is not self._read:
            self._read, self._routes = models, _table(models)
        found: dict[str, str] = {}
        for route in self._routes:
            if route.pattern.fullmatch(path) is not None:
                found.setdefault(route.method, route.model)
        return found


def _table(models: Mapping[str, ModelStatus]) -> list[_Route]:
    handlers = [(handler, name) for name, model in models.items() for handler in model.handlers]
    return [_route(handler, name) for handler, name in sorted(handlers, key=lambda one: one[0].number)]


def _route(handler: HandlerStatus, model: str) -> _Route:
    return _Route(pattern_of(handler.path), handler.method, model)


def request_message(request: HandlerRequest) -> bytes:
    """Return the message of a request."""
    head = {"method": request.method, "path": request.path, "query": request.query, "headers": request.headers}
    return pack_message(head, request.body)


def read_response(model: str, message: bytes) -> HandlerResponse:
    """Read the message of a response; UpstreamError if it is malformed."""
    try:
        head, body = unpack_message(message)
        status: Any = head["status"]
        headers = [(str(name), str(value)) for name, value in head["headers"]]
        if not isinstance(status, int) or not 200 <= status <= 599:
            raise ValueError("no status of a response")
    except (MalformedFrame, LookupError, TypeError, ValueError) as error:
        raise UpstreamError(f"A custom handler of model {model} sent a malformed response: {error}") from None
    return HandlerResponse(status, headers, b"" if status in _WITHOUT_BODY else body)
