"""`POST /_plugins/_ml/models/{model_id}/_predict/stream`: a pure ASGI endpoint, since it is the hot path.

Two phases. Until the first bytes are due, every failure is an HTTP status with OpenSearch's error body. From then
on, the answer is a stream of whole objects that ends with exactly one terminal object, good or bad.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.chunks import Chunks, Ending
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.predict.inputs import RemoteInput, read_predict_input
from opensearch_ml_stream.connectors.wire_format import WireFormat
from opensearch_ml_stream.rest_handlers.http.requests import (
    ClientDisconnect,
    check_content_type,
    check_query,
    query,
    read_body,
    wire_format,
)
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponse, InFlightResponses
from opensearch_ml_stream.rest_handlers.http.responses import error_response
from opensearch_ml_stream.rest_handlers.routes.predict import send_whole

_PARAMETERS = frozenset({"format", "stream"})


class ProviderStream(Protocol):
    """An open provider stream."""

    @property
    def outcome(self) -> Ending | MLStreamError | None:
        """None while the stream runs."""
        ...

    @property
    def skipped_events(self) -> int: ...

    async def read(self) -> Chunks:
        """The next chunks; none only when the outcome is known."""
        ...

    async def pump(self, encode: Callable[[Chunks], bytes], write: Callable[[bytes], bool]) -> Chunks:
        """Encodes and writes chunks as they come, until `write` returns False or the outcome is known.

        Returns the chunks that came with the outcome; those are not written.
        """
        ...


class Predictions(Protocol):
    """The use cases behind the predict routes."""

    def stream(self, model_id: str, parameters: Mapping[str, str]) -> AbstractAsyncContextManager[ProviderStream]: ...

    async def predict(self, model_id: str, body: bytes, algorithm: str | None = None) -> Mapping[str, Any]: ...


class PredictStream:
    """The endpoint."""

    def __init__(self, predictions: Predictions, answers: InFlightResponses) -> None:
        self._predictions = predictions
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send, model_id: str) -> None:
        try:
            asked = query(scope)
            check_query(scope, asked, _PARAMETERS)
            body = await read_body(scope, receive, self._answers.limits().max_body_size)
            if body:
                check_content_type(scope)
            given = read_predict_input(body)
            wire = wire_format(scope, asked, given.parameters)
            parameters = given.parameters if isinstance(given, RemoteInput) else {}
        except ClientDisconnect:
            return
        except MLStreamError as error:
            await error_response(Request(scope), error)(scope, receive, send)
            return
        answer = InFlightResponse(scope, receive, send, self._answers, wire)
        if wire is None:
            work = send_whole(answer, self._predictions.predict(model_id, body))
        else:
            work = relay(answer, self._predictions.stream(model_id, parameters), wire)
        del body, given, parameters  # a prompt may be large, and its answer long
        await answer.run(work)


async def relay(
    answer: InFlightResponse, opening: AbstractAsyncContextManager[ProviderStream], wire: WireFormat
) -> None:
    """From the first chunk to the terminal object."""
    encode, writer = wire.chunks, answer.writer
    try:
        async with opening as provider:
            chunks = await provider.read()
            outcome = provider.outcome
            if not chunks and isinstance(outcome, MLStreamError):
                raise outcome
            await answer.start(wire)
            if outcome is None:
                writer.write_chunk(encode(chunks))
            while outcome is None:
                await writer.drain()
                chunks = await provider.pump(encode, writer.write_chunk)
                outcome = provider.outcome
            # Before the call of the provider is wound up, which the client need not wait for.
            last = encode(chunks) if chunks else b""
            if isinstance(outcome, MLStreamError):
                await answer.end(last + wire.error(outcome))
            else:
                extra = {"skipped_events": provider.skipped_events} if provider.skipped_events else {}
                await answer.end(last + wire.ending(outcome, extra))
    except MLStreamError as error:
        await answer.fail(error)
