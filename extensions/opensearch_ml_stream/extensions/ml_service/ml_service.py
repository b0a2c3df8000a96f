"""OpenSearch's `MLService`: `PredictModelStream`, as ML Commons 3.8 has it on OpenSearch's own gRPC port."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from google.protobuf.message_factory import GetMessageClass
from grpc import StatusCode

from opensearch_ml_stream.connectors.errors import FeatureDisabled, MLStreamError
from opensearch_ml_stream.extensions.ml_service.predict_messages import (
    encode_chunks,
    encode_ending,
    read_predict_request,
)
from opensearch_ml_stream.plugin.extension import Core
from opensearch_ml_stream.plugin.grpc_port.calls import Call, CallHandlers, GrpcService, Handler, Ready
from opensearch_ml_stream.plugin.grpc_port.messages import pool_of, read_files
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller
from opensearch_ml_stream.rest_handlers.routes.predict_stream import Predictions, ProviderStream

PROTOS = Path(__file__).parent / "protos"
ML_SERVICE = "org.opensearch.protobufs.services.MLService"
FILES = read_files(PROTOS, "ml_messages", "ml_service")


_MAX_BYTES_AT_ONCE = 64 * 1024  # larger messages are read in a thread
_PREDICT_MODEL_STREAM = "PredictModelStream"

# ML Commons' GrpcStatusMapper. Any other status is INTERNAL, as there, a provider's fault (424) too: on UNAVAILABLE
# clients would send the request again, and the caller would pay for the prompt twice.
_STATUS_CODES = {
    400: StatusCode.INVALID_ARGUMENT,
    401: StatusCode.UNAUTHENTICATED,
    403: StatusCode.PERMISSION_DENIED,
    404: StatusCode.NOT_FOUND,
    408: StatusCode.DEADLINE_EXCEEDED,
    413: StatusCode.RESOURCE_EXHAUSTED,
    429: StatusCode.RESOURCE_EXHAUSTED,
    503: StatusCode.UNAVAILABLE,
}


def make_service(core: Core) -> GrpcService:
    """Return the service over the predictions of this server."""

    def handlers(calls: CallHandlers, ready: Ready) -> dict[str, Handler]:
        return ml_handlers(core.predictions, calls)

    return GrpcService(ML_SERVICE, FILES, handlers)


def ml_handlers(predictions: Predictions, calls: CallHandlers) -> dict[str, Handler]:
    """Return the handlers by method name; the method requires the permissions of `_predict/stream`."""

    async def predict_model_stream(call: Call, caller: Caller) -> None:
        message = await call.first_message() or b""
        if len(message) > _MAX_BYTES_AT_ONCE:  # it may have been compressed a thousandfold
            request = await asyncio.to_thread(read_predict_request, message)
        else:
            request = read_predict_request(message)
        del message
        call.notes.model = request.model_id
        opening = predictions.stream(caller, request.model_id, request.parameters)
        del request  # a prompt may be large, and the stream of its response long
        await _relay(call, opening)

    path = f"/{ML_SERVICE}/{_PREDICT_MODEL_STREAM}"
    work = predict_model_stream
    return {_PREDICT_MODEL_STREAM: calls.stream(path, work, actions.PREDICT_STREAM, actions.PREDICT, code=_status_code)}


async def _relay(call: Call, opening: AbstractAsyncContextManager[ProviderStream]) -> None:
    """Relay a stream. While the client is slow, the provider is not read."""
    async with opening as provider:
        call.notes.stream = provider
        outcome = None
        while outcome is None:
            chunks = await provider.read()
            outcome = provider.outcome
            call.let_go()
            for message in encode_chunks(chunks):
                await call.write(message)
        if isinstance(outcome, MLStreamError):
            raise outcome
        await call.write(encode_ending(outcome, provider.terminal_fields(outcome)))


def _status_code(error: MLStreamError) -> StatusCode:
    if isinstance(error, FeatureDisabled):
        return StatusCode.FAILED_PRECONDITION
    return _STATUS_CODES.get(error.status, StatusCode.INTERNAL)


def message_class(name: str) -> Any:
    """Return the class of the message of that full name, for clients: the service reads and writes bytes itself."""
    return GetMessageClass(pool_of(FILES).FindMessageTypeByName(name))
