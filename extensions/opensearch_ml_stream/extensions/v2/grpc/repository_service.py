"""The model repository over gRPC: as methods of `inference.GRPCInferenceService`, and as MLServer's own service."""

from opensearch_ml_stream.extensions.v2.grpc import inference_messages as messages
from opensearch_ml_stream.extensions.v2.grpc import response_messages
from opensearch_ml_stream.extensions.v2.http.use_cases import InferenceModels
from opensearch_ml_stream.plugin.extension import Core
from opensearch_ml_stream.plugin.grpc_port.calls import Call, CallHandlers, GrpcService, Handler, Ready
from opensearch_ml_stream.plugin.grpc_port.messages import parse, read_files
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller


def make_service(core: Core) -> GrpcService:
    """Return MLServer's service over the models of V2; its messages are those of V2."""
    models = core.face(InferenceModels)  # type: ignore[type-abstract]

    def handlers(calls: CallHandlers, ready: Ready) -> dict[str, Handler]:
        return repository_handlers(messages.REPOSITORY_SERVICE, models, calls)

    return GrpcService(messages.REPOSITORY_SERVICE, read_files(messages.PROTOS, "model_repository"), handlers)


def repository_handlers(service: str, models: InferenceModels, calls: CallHandlers) -> dict[str, Handler]:
    """Return the handlers by method name; each requires the same permissions as its route under `/v2`."""
    repository = Repository(models)
    return {
        name: calls.unary(f"/{service}/{name}", work, needed)
        for name, work, needed in (
            ("RepositoryIndex", repository.index, actions.MODEL_SEARCH),
            ("RepositoryModelLoad", repository.load, actions.MODEL_DEPLOY),
            ("RepositoryModelUnload", repository.unload, actions.MODEL_UNDEPLOY),
        )
    }


class Repository:
    """The methods; MLStreamErrors become statuses."""

    def __init__(self, models: InferenceModels) -> None:
        self._models = models

    async def index(self, call: Call, caller: Caller, request: bytes) -> bytes:
        """Return the models that the caller may see."""
        asked = parse(messages.RepositoryIndexRequest, request)
        return messages.serialized(
            response_messages.repository_index(await self._models.index(caller, ready=asked.ready))
        )

    async def load(self, call: Call, caller: Caller, request: bytes) -> bytes:
        """Deploy a model."""
        asked = parse(messages.RepositoryModelLoadRequest, request)
        call.notes.model = asked.model_name
        await self._models.load(caller, asked.model_name)
        return messages.serialized(messages.RepositoryModelLoadResponse())

    async def unload(self, call: Call, caller: Caller, request: bytes) -> bytes:
        """Undeploy a model."""
        asked = parse(messages.RepositoryModelUnloadRequest, request)
        call.notes.model = asked.model_name
        await self._models.unload(caller, asked.model_name)
        return messages.serialized(messages.RepositoryModelUnloadResponse())
