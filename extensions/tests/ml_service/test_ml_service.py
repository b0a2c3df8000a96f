import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
import pytest
from grpc import StatusCode

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending
from opensearch_ml_stream.connectors.errors import (
    Conflict,
    FeatureDisabled,
    Forbidden,
    Internal,
    InvalidRequest,
    MLStreamError,
    NotFound,
    StreamTruncated,
    Throttled,
    Unauthorized,
    Unavailable,
    UpstreamError,
)
from opensearch_ml_stream.extensions.ml_service.ml_service import message_class, ml_handlers
from opensearch_ml_stream.plugin.grpc_port.calls import CallHandlers
from opensearch_ml_stream.plugin.logs.request_log import RequestLog
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller, Scope
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses, ResponseLimits

Request = message_class("org.opensearch.protobufs.MlPredictModelStreamRequest")
Response = message_class("org.opensearch.protobufs.PredictResponse")
REQUEST = Request(model_id="m", ml_predict_model_stream_request_body={"parameters": {"inputs": "hi"}})
ANN = Caller("ann")


class Stream:
    """A provider's stream that reads these chunks, one list at a time, the outcome with the last."""

    def __init__(self, reads: Sequence[Chunks], outcome: Ending | MLStreamError) -> None:
        self._reads = list(reads)
        self._outcome = outcome
        self.chunks = 0
        self.closed = False

    @property
    def outcome(self) -> Ending | MLStreamError | None:
        return None if self._reads else self._outcome

    def terminal_fields(self, ending: Ending) -> dict[str, Any]:
        return {"model_id": "m2"}

    async def read(self) -> Chunks:
        return self._reads.pop(0)

    async def pump(self, encode: object, write: object) -> Chunks:
        raise AssertionError("a gRPC stream is read")


class OneStream:
    """Predictions of one stream, or an error in its place."""

    def __init__(self, stream: Stream | MLStreamError) -> None:
        self._stream = stream
        self.asked: list[tuple[Caller, str, Mapping[str, str]]] = []

    @asynccontextmanager
    async def stream(
        self, caller: Caller, model_id: str, parameters: Mapping[str, str], action_type: str | None = None
    ) -> AsyncIterator[Stream]:
        self.asked.append((caller, model_id, parameters))
        if isinstance(self._stream, MLStreamError):
            raise self._stream
        try:
            yield self._stream
        finally:
            self._stream.closed = True

    async def predict(
        self, caller: Caller, model_id: str, body: bytes, algorithm: str | None = None
    ) -> Mapping[str, Any]:
        raise AssertionError("only streams are asked for")

    async def predict_encoded(self, caller: Caller, model_id: str, body: bytes, algorithm: str | None = None) -> bytes:
        raise AssertionError("only streams are asked for")

    async def batch_predict(self, caller: Caller, model_id: str, body: bytes) -> Mapping[str, Any]:
        raise AssertionError("only streams are asked for")


class AnnOnly:
    """Lets ann in, for the actions of a stream."""

    asks_for_login = True

    async def admit(self, scope: Scope, *needed: str) -> Caller:
        assert needed == (actions.PREDICT_STREAM, actions.PREDICT)
        if (b"authorization", b"ann") not in scope["headers"]:
            raise Unauthorized()
        return ANN


class Context:
    """What grpc gives a handler: a message to read, and a place for messages and a status."""

    def __init__(self, message: bytes, authorization: str = "ann", *, is_gone: bool = False) -> None:
        self._message = message
        self._authorization = authorization
        self._is_gone = is_gone
        self.written: list[Any] = []
        self.status = StatusCode.OK
        self.details = ""

    def invocation_metadata(self) -> list[tuple[str, str | bytes]]:
        return [("authorization", self._authorization), ("x-bin", b"\0")]

    def peer(self) -> str:
        return "ipv4:127.0.0.1:4711"

    def set_trailing_metadata(self, metadata: object) -> None:
        pass

    async def read(self) -> bytes:
        return self._message

    async def write(self, message: bytes) -> None:
        if self._is_gone:
            raise grpc.aio.UsageError("RPC already finished.")
        self.written.append(Response.FromString(message))

    async def abort(self, code: StatusCode, details: str, metadata: object) -> None:
        self.status = code
        self.details = details
        raise grpc.aio.AbortError


async def run(predictions: OneStream, context: Context) -> Context:
    in_flight = InFlightResponses(ResponseLimits(1_000, 5, 15))
    calls = CallHandlers(AnnOnly(), in_flight, RequestLog(lambda: False), 5)
    handler: Any = ml_handlers(predictions, calls)["PredictModelStream"]
    try:
        await handler.stream_stream(None, context)
    except grpc.aio.AbortError:
        assert context.status is not StatusCode.OK
    assert len(in_flight) == 0
    return context


def outputs(context: Context) -> list[tuple[str, bool]]:
    maps = [response.inference_results[0].output[0].data_as_map for response in context.written]
    return [(data_as_map.content, data_as_map.is_last) for data_as_map in maps]


async def test_a_stream_is_a_message_for_each_chunk_and_one_for_its_end() -> None:
    predictions = OneStream(Stream([[Chunk("a"), Chunk("b")], [Chunk("c")]], Ending()))
    context = await run(predictions, Context(REQUEST.SerializeToString()))
    assert predictions.asked == [(ANN, "m", {"inputs": "hi"})]
    assert outputs(context) == [("a", False), ("b", False), ("c", False), ("", True)]
    ending = context.written[-1].inference_results[0].output[1]
    assert (ending.name, ending.result) == ("ending", '{"finish_reason":"stop","model_id":"m2"}')
    assert context.status is StatusCode.OK


async def test_a_stream_that_fails_has_a_status_behind_its_text_and_no_last_message() -> None:
    stream = Stream([[Chunk("a")], [Chunk("b")]], StreamTruncated("cut off"))
    context = await run(OneStream(stream), Context(REQUEST.SerializeToString()))
    assert outputs(context) == [("a", False), ("b", False)]
    assert (context.status, context.details) == (StatusCode.INTERNAL, "cut off")
    assert stream.closed


async def test_a_client_that_is_gone_ends_the_call_of_the_provider() -> None:
    stream = Stream([[Chunk("a")], [Chunk("b")]], Ending())
    with pytest.raises(asyncio.CancelledError):
        await run(OneStream(stream), Context(REQUEST.SerializeToString(), is_gone=True))
    assert stream.closed


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidRequest("x"), StatusCode.INVALID_ARGUMENT),
        (FeatureDisabled("x"), StatusCode.FAILED_PRECONDITION),
        (Forbidden("x"), StatusCode.PERMISSION_DENIED),
        (NotFound("x"), StatusCode.NOT_FOUND),
        (Throttled("x"), StatusCode.RESOURCE_EXHAUSTED),
        (Unavailable("x"), StatusCode.UNAVAILABLE),
        (UpstreamError("x", provider_status=429), StatusCode.RESOURCE_EXHAUSTED),
        (UpstreamError("x", provider_status=422), StatusCode.INVALID_ARGUMENT),
        (UpstreamError("x", provider_status=503), StatusCode.INTERNAL),
        (UpstreamError("x"), StatusCode.INTERNAL),
        (Conflict("x"), StatusCode.INTERNAL),
        (Internal("x"), StatusCode.INTERNAL),
    ],
)
async def test_errors_have_the_status_that_ml_commons_gives_them(error: MLStreamError, status: StatusCode) -> None:
    context = await run(OneStream(error), Context(REQUEST.SerializeToString()))
    assert (context.status, context.details, context.written) == (status, "x", [])


async def test_nobody_is_let_in_without_a_login_nor_asked_about_a_request_that_cannot_be_read() -> None:
    predictions = OneStream(NotFound("x"))
    refused = await run(predictions, Context(REQUEST.SerializeToString(), "bob"))
    assert refused.status is StatusCode.UNAUTHENTICATED
    malformed = await run(predictions, Context(b"\xff"))
    assert malformed.status is StatusCode.INVALID_ARGUMENT
    assert predictions.asked == []
