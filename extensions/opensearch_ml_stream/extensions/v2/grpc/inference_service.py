"""`inference.GRPCInferenceService`: the V2 protocol over gRPC."""

from functools import partial

from opensearch_ml_stream.connectors.errors import MLStreamError, NotFound
from opensearch_ml_stream.extensions.v2.extension import AUTO, TRITON, V2Settings
from opensearch_ml_stream.extensions.v2.grpc import inference_messages as messages
from opensearch_ml_stream.extensions.v2.grpc import response_messages, triton_clients
from opensearch_ml_stream.extensions.v2.grpc.repository_service import repository_handlers
from opensearch_ml_stream.extensions.v2.grpc.request_messages import inference_request, read_head, read_request
from opensearch_ml_stream.extensions.v2.grpc.stream_messages import StreamMessages, error_message
from opensearch_ml_stream.extensions.v2.http.headers import (
    EXTENSIONS,
    SERVER_NAME,
    own_headers,
    readable_headers,
    response_headers,
)
from opensearch_ml_stream.extensions.v2.http.use_cases import Inference, InferenceModels, NextInference, UnreadRequest
from opensearch_ml_stream.extensions.v2.protocol.local_responses import LocalResponse
from opensearch_ml_stream.extensions.v2.protocol.messages import ResponseShape
from opensearch_ml_stream.plugin.extension import Core
from opensearch_ml_stream.plugin.grpc_port.calls import Call, CallHandlers, GrpcService, Handler, Ready
from opensearch_ml_stream.plugin.grpc_port.messages import parse
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate

_STREAM_ACTIONS = (actions.PREDICT_STREAM, actions.PREDICT)


def make_service(core: Core) -> GrpcService:
    """Return the service over the inferences of V2."""
    form = core.settings.of(V2Settings).grpc_stream_response
    models = core.face(InferenceModels)  # type: ignore[type-abstract]

    def handlers(calls: CallHandlers, ready: Ready) -> dict[str, Handler]:
        service = InferenceService(models, core.gate, ready, core.version, form)
        repository = repository_handlers(messages.INFERENCE_SERVICE, models, calls)
        return {**inference_handlers(service, calls), **repository}

    return GrpcService(messages.INFERENCE_SERVICE, messages.shown_files(is_triton=form == TRITON), handlers)


def inference_handlers(service: "InferenceService", calls: CallHandlers) -> dict[str, Handler]:
    """Return the handlers by method name; each requires the same permissions as its route under `/v2`."""

    def path(method: str) -> str:
        return f"/{messages.INFERENCE_SERVICE}/{method}"

    unary = {
        "ServerMetadata": (service.server_metadata, ()),
        "ModelReady": (service.model_ready, (actions.MODEL_GET, *_STREAM_ACTIONS)),
        "ModelMetadata": (service.model_metadata, (actions.MODEL_GET,)),
        "ModelInfer": (service.infer, (actions.PREDICT,)),
    }
    return {
        "ServerLive": calls.unary(path("ServerLive"), service.live, is_open=True),
        "ServerReady": calls.unary(path("ServerReady"), service.ready, is_open=True),
        **{name: calls.unary(path(name), work, *needed) for name, (work, needed) in unary.items()},
        "ModelStreamInfer": calls.stream(path("ModelStreamInfer"), service.stream_infer, *_STREAM_ACTIONS),
    }


class InferenceService:
    """The methods; MLStreamErrors become statuses.

    `form` is the form of streams, except those of clients that identify as Triton's; with AUTO the first message of a
    stream decides.
    """

    def __init__(self, models: InferenceModels, gate: Gate, ready: Ready, version: str, form: str) -> None:
        self._models = models
        self._gate = gate
        self._ready = ready
        self._version = version
        self._form = form

    async def live(self, call: Call, caller: Caller, request: bytes) -> bytes:
        """Whether the process is alive; for everyone."""
        return messages.serialized(messages.ServerLiveResponse(live=True))

    async def ready(self, call: Call, caller: Caller, request: bytes) -> bytes:
        """Whether the store responds; for everyone."""
        return messages.serialized(messages.ServerReadyResponse(ready=await self._ready()))

    async def server_metadata(self, call: Call, caller: Caller, request: bytes) -> bytes:
        """Return the server's name and version."""
        server = messages.ServerMetadataResponse(name=SERVER_NAME, version=self._version, extensions=EXTENSIONS)
        return messages.serialized(server)

    async def model_ready(self, call: Call, caller: Caller, request: bytes) -> bytes:
        """Whether a model can be called; false for a model that does not exist."""
        asked = parse(messages.ModelReadyRequest, request)
        call.notes.model = asked.name
        try:
            await self._models.check_ready(caller, asked.name, asked.version or None)
        except NotFound:
            return messages.serialized(messages.ModelReadyResponse(ready=False))
        return messages.serialized(messages.ModelReadyResponse(ready=True))

    async def model_metadata(self, call: Call, caller: Caller, request: bytes) -> bytes:
        """Return a model's metadata."""
        asked = parse(messages.ModelMetadataRequest, request)
        call.notes.model = asked.name
        metadata = await self._models.metadata(caller, asked.name, asked.version or None)
        return messages.serialized(response_messages.model_metadata(metadata))

    async def infer(self, call: Call, caller: Caller, request: bytes) -> bytes:
        """Make a whole inference."""
        head = read_head(request)
        inference = await self._prepare(call, caller, request, head.model_name, head.model_version)
        del request
        response = await self._models.infer(inference)
        call.set_trailing_metadata(response_headers(call.scope, response.shape, own_headers(response)))
        if isinstance(response, LocalResponse):
            response = response.read()
        return messages.serialized(response_messages.infer_response(response, is_raw=head.is_raw))

    async def stream_infer(self, call: Call, caller: Caller) -> None:
        """Stream the inferences of each message of the client, in their order.

        In MLServer's form all messages are requests of one stream, if the model takes further ones, as in MLServer:
        name, version and the kind of contents are those of the first, and the call ends with that stream.

        A message without a model is for the model of the message before: MLServer only reads the first one's, Triton
        each. In Triton's form an error is a message, and the next request is read, unless the client asks for a status.
        A stream changes to that form with the first message that identifies the client as Triton's.
        """
        is_triton = self._form == TRITON or triton_clients.is_tritons_call(call.scope)
        may_be_bare = self._form == AUTO
        name = version = ""
        message = await call.first_message()
        while message is not None:
            head = read_head(message)
            if head.model_name:
                name, version = head.model_name, head.model_version
            elif head.model_version:
                version = head.model_version
            is_triton = is_triton or head.is_tritons or (may_be_bare and head.is_bare)
            may_be_bare = False
            shape: ResponseShape | None = None
            try:
                inference = await self._prepare(call, caller, message, name, version)
                del message
                shape = inference.shape
                encoder = StreamMessages(
                    shape, is_raw=head.is_raw, is_triton=is_triton, has_empty_final=head.wants_empty_final
                )
                if inference.takes_further and not is_triton:
                    await self._relay(call, inference, encoder, partial(self._further, call, name, version))
                    return
                await self._relay(call, inference, encoder)
            except MLStreamError as error:
                if not is_triton or triton_clients.wants_status(call.scope):
                    raise
                call.notes.error = error
                await call.write(error_message(shape, error.reason))
            message = await call.next_message()
            if message is not None:  # permissions may have changed: a stream may be open for days
                caller = await self._gate.admit(call.scope, *_STREAM_ACTIONS)

    async def _prepare(self, call: Call, caller: Caller, message: bytes, name: str, version: str) -> Inference:
        call.notes.model = name
        headers = readable_headers(call.scope)
        request = UnreadRequest(len(message), lambda: inference_request(read_request(message), headers))
        inference = await self._models.prepare(caller, name, version or None, request)
        call.cover(inference.size)
        return inference

    async def _further(self, call: Call, name: str, version: str) -> Inference | None:
        """Return the inference of the client's next message while its stream is open, None after its last."""
        message = await call.further_message()
        if message is None:
            return None
        caller = await self._gate.admit(call.scope, *_STREAM_ACTIONS)
        return await self._prepare(call, caller, message, name, version)

    async def _relay(
        self, call: Call, inference: Inference, encoder: StreamMessages, further: NextInference | None = None
    ) -> None:
        """Relay a stream. While the client is slow, the provider is not read."""
        async with self._models.stream(inference, further) as provider:
            call.notes.stream = provider
            call.set_trailing_metadata(response_headers(call.scope, inference.shape))
            chunks = await provider.read()
            call.let_go()
            while (outcome := provider.outcome) is None:
                for message in encoder.chunks(chunks):
                    await call.write(message)
                chunks = await provider.read()
            if isinstance(outcome, MLStreamError):
                for message in encoder.chunks(chunks) if chunks else ():
                    await call.write(message)
                raise outcome
            for message in encoder.last(chunks, outcome, provider.terminal_fields(outcome)):
                await call.write(message)
