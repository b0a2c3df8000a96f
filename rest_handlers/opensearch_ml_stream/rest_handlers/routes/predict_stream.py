"""`_predict/stream`, `_predict` and `_batch_predict`: a plain ASGI endpoint in front of the router, the hot path.

A stream has two phases. Until the first bytes are due, every failure is an HTTP status with OpenSearch's error body.
From then on, the response is a stream of whole objects that ends with exactly one terminal object, good or bad.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Set
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from opensearch_ml_stream.connectors.chunks import Chunks, Ending
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.predict.inputs import RemoteInput, read_predict_input
from opensearch_ml_stream.connectors.wire_format import NDJSON, SSE, WireFormat
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH, ErrorForm, Paths
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.asgi_extensions import HEAD_MEMO
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.exception_handlers import method_not_allowed
from opensearch_ml_stream.rest_handlers.http.host_and_origin import (
    BrowserPolicy,
    check_browser,
    is_of_listed_page,
    preflight_response,
)
from opensearch_ml_stream.rest_handlers.http.requests import (
    FORMATS,
    LLM_INTERFACE,
    check_query,
    content_coding,
    header,
    is_json,
    json_body,
    query,
    read_body,
    whole_body,
    wire_format,
)
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import (
    InFlightResponse,
    InFlightResponses,
    send_prediction,
)
from opensearch_ml_stream.rest_handlers.http.responses import ERROR_FORM, error_response, wants_compact_json
from opensearch_ml_stream.rest_handlers.openapi_schemas import PREDICT
from opensearch_ml_stream.rest_handlers.operation_description import FLAG, OperationDescription, Schema

_PATTERN = re.compile(
    f"{BASE_PATH}/(?:models/([^/]+)/(_predict|_predict/stream|_batch_predict)|_predict/([^/]+)/([^/]+))/?"
)
_OF_STREAMS = (actions.PREDICT_STREAM, actions.PREDICT)
_OF_WHOLE_ONES = (actions.PREDICT,)


class PredictHead:
    """`any_host` is whether the host name was left unchecked, `actions` are those that the caller needs one of.

    `algorithm` is None where the path names none; `coding` is the body's, `is_checked` says of the query that it was
    found good, `wants_compact_json` is of a whole response, `wires` are the formats of a stream.
    """

    __slots__ = (
        "_query", "actions", "algorithm", "any_host", "coding", "is_batch", "is_checked", "is_json", "is_stream",
        "model_id", "wants_compact_json", "wires",
    )  # fmt: skip

    def __init__(self, scope: Scope, path: re.Match[str], *, any_host: bool) -> None:
        self.model_id: str = path[1] or path[4]
        self.algorithm: str | None = path[3]
        self.is_stream = path[2] == "_predict/stream"
        self.is_batch = path[2] == "_batch_predict"
        self.any_host = any_host
        self.actions = _OF_STREAMS if self.is_stream else _OF_WHOLE_ONES
        self.is_json = is_json(header(scope, b"content-type"))
        self._query = query(scope)
        self.is_checked = False
        self.coding = content_coding(scope)
        self.wants_compact_json = wants_compact_json(scope, self._query)
        self.wires = _Wires(scope, self._query)

    def check_query(self, scope: Scope, accepted: Set[str]) -> None:
        """Raise InvalidRequest for what the query may not say."""
        check_query(scope, self._query, accepted)
        self.is_checked = True


class _Wires(dict[bool, WireFormat | None]):
    """The formats of streamed responses, by whether a request has `_llm_interface`; see `wire_format` of requests."""

    __slots__ = ("_headers", "_query")

    def __init__(self, scope: Scope, query: Mapping[str, str]) -> None:
        super().__init__()
        self._headers = {"headers": scope["headers"]}
        self._query = query

    def __missing__(self, is_of_llm: bool) -> WireFormat | None:
        wire = self[is_of_llm] = wire_format(self._headers, self._query, {LLM_INTERFACE: ""} if is_of_llm else {})
        return wire


def read_head(scope: Scope, *, any_host: bool) -> PredictHead | None:
    """Return the head of a request for a prediction, of any method; None if the path is not of one."""
    path = _PATTERN.fullmatch(scope["path"])
    return None if path is None else PredictHead(scope, path, any_host=any_host)


_QUERY_PARAMETERS: Mapping[str, Schema] = {"format": {"enum": list(FORMATS)}, "stream": FLAG}
_MODEL = f"{BASE_PATH}/models/{{model_id}}"
_WHOLE = {"POST": OperationDescription("Make a whole prediction.", body=PREDICT, is_body_required=True)}

PREDICT_OPERATIONS = {
    f"{_MODEL}/_predict/stream": {
        "POST": OperationDescription(
            "Stream a prediction.",
            _QUERY_PARAMETERS,
            body=PREDICT,
            is_body_required=True,
            content_types=(NDJSON.content_type, SSE.content_type, "application/json"),
        )
    },
    f"{_MODEL}/_predict": _WHOLE,
    f"{BASE_PATH}/_predict/{{algorithm}}/{{model_id}}": _WHOLE,
    f"{_MODEL}/_batch_predict": {
        "POST": OperationDescription("Start a batch job.", body=PREDICT, is_body_required=True)
    },
}
"""What the OpenAPI document says of predictions."""


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

    def terminal_fields(self, ending: Ending) -> dict[str, Any]:
        """Return what the terminal object says beside the stream's ending, such as what is left of budgets."""
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
    """The use cases behind these routes.

    Whole responses are JSON objects as the API has them. Errors are MLStreamErrors: InvalidRequest and NotFound, and
    UpstreamError for a fault of the provider.
    """

    def stream(
        self, caller: Caller, model_id: str, parameters: Mapping[str, str], action_type: str | None = None
    ) -> AbstractAsyncContextManager[ProviderStream]:
        """Open the provider's stream for the parameters of a request, by the predict action unless it names another."""
        ...

    async def predict(
        self, caller: Caller, model_id: str, body: bytes, algorithm: str | None = None
    ) -> Mapping[str, Any]:
        """Make a whole prediction, `{"inference_results": [...]}`, also for callers who ask a stream for one object."""
        ...

    async def predict_encoded(self, caller: Caller, model_id: str, body: bytes, algorithm: str | None = None) -> bytes:
        """Return what `predict` returns as compact JSON."""
        ...

    async def batch_predict(self, caller: Caller, model_id: str, body: bytes) -> Mapping[str, Any]:
        """Start a batch job: `{"task_id", "status", ...}`."""
        ...


RelayIfElsewhere = Callable[[Scope, Receive, Send, str], Awaitable[bool]]
"""Sends the request for a model on to where the model runs, and returns True, unless it runs here."""


@dataclass(frozen=True, slots=True)
class _OtherHead:
    """The head of a request for the router that the browser rules allow; see `PredictHead`."""

    any_host: bool
    error_form: ErrorForm | None


class PredictStream:
    """The ASGI application: every prediction here, every other path to `router`; `policy` holds for all.

    No middleware and no router stands between a prediction and its client. With `relay_if_elsewhere`, some models may
    run on another server.
    """

    def __init__(
        self,
        predictions: Predictions,
        in_flight: InFlightResponses,
        gate: Gate,
        router: ASGIApp,
        policy: BrowserPolicy,
        relay_if_elsewhere: RelayIfElsewhere | None = None,
        paths: Paths = Paths(),  # noqa: B008 - a frozen value
    ) -> None:
        self._predictions = predictions
        self._in_flight = in_flight
        self._gate = gate
        self._router = router
        self._policy = policy
        self._relay_if_elsewhere = relay_if_elsewhere
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request, until its response has ended or its client has disconnected."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        any_host = self._gate.asks_for_login
        memo: dict[Any, PredictHead | _OtherHead] = scope.get(HEAD_MEMO, {})
        head = memo.get(self)
        if head is None or head.any_host is not any_host:
            if (head := await self._look_at(scope, receive, send, any_host=any_host)) is None:
                return
            if not is_of_listed_page(scope):
                memo[self] = head
        if isinstance(head, _OtherHead):
            if head.error_form is not None:
                scope[ERROR_FORM] = head.error_form
            await self._router(scope, receive, send)
            return
        if self._relay_if_elsewhere is not None and await self._relay_if_elsewhere(scope, receive, send, head.model_id):
            return
        if (begun := await self._begin(scope, receive, send, head)) is not None:
            response, work = begun
            await response.run(work)

    async def _look_at(
        self, scope: Scope, receive: Receive, send: Send, *, any_host: bool
    ) -> PredictHead | _OtherHead | None:
        """Return the head of a request, None if the request has been refused by it, or was a browser's preflight."""
        form = self._paths.error_form(scope["path"])
        if form is not None:
            scope[ERROR_FORM] = form
        if (early := self._early_response(scope, any_host=any_host)) is not None:
            await early(scope, receive, send)
            return None
        if (head := read_head(scope, any_host=any_host)) is None:
            return _OtherHead(any_host, form)
        if scope["method"] != "POST":
            await method_not_allowed(Request(scope), ["POST"])(scope, receive, send)
            return None
        return head

    def _early_response(self, scope: Scope, *, any_host: bool) -> Response | None:
        """Return the response to a browser that is refused, or asks beforehand; None for all other requests."""
        try:
            check_browser(scope, self._policy, any_host=any_host)
            return preflight_response(scope) if scope["method"] == "OPTIONS" else None
        except MLStreamError as error:
            return error_response(Request(scope), error)

    async def _begin(
        self, scope: Scope, receive: Receive, send: Send, head: PredictHead
    ) -> tuple[InFlightResponse, Awaitable[None]] | None:
        """Read the request; return its response and the work that makes it, None if the request was refused.

        Nothing of the prompt stays here while the response streams: a prompt may be large, and its response long.
        """
        reservation = BodyReservation(self._in_flight.bodies)
        response = InFlightResponse(scope, receive, send, self._in_flight, reservation)
        remote, direct = RemoteInput(), response.direct
        try:
            caller = await self._gate.admit(scope, *head.actions)
            if not head.is_checked:
                head.check_query(scope, _QUERY_PARAMETERS.keys() if head.is_stream else frozenset())
            self._in_flight.check_room()
            if direct is None or (body := direct.take_body(reservation)) is None:
                body = await read_body(scope, receive, reservation)
                self._in_flight.check_room()
            elif head.coding or len(body) > reservation.max_body_size:
                body = whole_body(body, head.coding, reservation)
            if body and not head.is_json:
                body = json_body(scope, body)
            if head.is_stream:
                predict_input = read_predict_input(body)
                remote = predict_input if isinstance(predict_input, RemoteInput) else remote
                response.wire = head.wires[LLM_INTERFACE in predict_input.parameters]
        except ClientDisconnect:
            reservation.release()
            return None
        except MLStreamError as error:
            reservation.release()
            await response.fail(error)
            return None
        return response, self._work(response, caller, head, body, remote)

    def _work(
        self, response: InFlightResponse, caller: Caller, head: PredictHead, body: bytes, remote: RemoteInput
    ) -> Awaitable[None]:
        """Return what makes the response: from the input of a stream that is wanted as one, else from the body."""
        if response.wire is not None:
            opening = self._predictions.stream(caller, head.model_id, remote.parameters, remote.action_type)
            return relay(response, opening, response.wire)
        prediction: Awaitable[Mapping[str, Any] | bytes]
        if head.is_batch:
            prediction = self._predictions.batch_predict(caller, head.model_id, body)
        elif head.wants_compact_json:
            prediction = self._predictions.predict_encoded(caller, head.model_id, body, head.algorithm)
        else:
            prediction = self._predictions.predict(caller, head.model_id, body, head.algorithm)
        return send_prediction(response, prediction)


async def relay(
    response: InFlightResponse, opening: AbstractAsyncContextManager[ProviderStream], wire: WireFormat
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
                chunks = []  # not held until the stream ends
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
