"""The endpoints of `/v2` except inferences: health, metadata, and the model repository."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from opensearch_ml_stream.connectors.errors import InvalidBody, NotFound, Unavailable
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.v2.http.headers import EXTENSIONS, SERVER_NAME
from opensearch_ml_stream.extensions.v2.http.inference_endpoints import ModelPath, compressed_response
from opensearch_ml_stream.extensions.v2.http.use_cases import InferenceModels
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory, BodyReservation
from opensearch_ml_stream.rest_handlers.http.requests import read_body
from opensearch_ml_stream.rest_handlers.routes.health_and_metrics import ping_error

_TRITON = {
    "/config": "This server has no model configurations as Triton has them; GET /v2/models/{name} has a model's inputs "
    "and outputs",
    "/stats": "This server has no model statistics as Triton has them; GET /metrics and GET /_plugins/_ml/stats have "
    "what models did",
}


@dataclass(frozen=True, slots=True)
class Server:
    """This server's version, and `ping`, which raises Unavailable while its store does not respond."""

    version: str
    ping: Callable[[], Awaitable[None]]


class ModelEndpoints:
    """Handlers of requests that have a short response; MLStreamErrors are for the caller."""

    def __init__(self, models: InferenceModels, server: Server, gate: Gate, bodies: BodyMemory, gzip: bool) -> None:
        self._models = models
        self._server = server
        self._gate = gate
        self._bodies = bodies
        self._gzip = gzip

    async def live(self, request: Request) -> Response:
        """Whether the process is alive; for everyone, as `/_health/live` is. The body is KServe's."""
        return await self._respond(request, {"live": True})

    async def ready(self, request: Request) -> Response:
        """Whether the store responds; for everyone, as `/_health/ready` is."""
        if await ping_error(self._server.ping) is not None:
            raise Unavailable("The store does not respond")
        return await self._respond(request, {"ready": True})

    async def server_metadata(self, request: Request) -> Response:
        """Return the server's name and version."""
        await self._gate.admit(request.scope)
        return await self._respond(
            request, {"name": SERVER_NAME, "version": self._server.version, "extensions": EXTENSIONS}
        )

    async def metadata(self, request: Request, path: ModelPath) -> Response:
        """Return a model's metadata."""
        caller = await self._gate.admit(request.scope, actions.MODEL_GET)
        try:
            metadata = await self._models.metadata(caller, path.name, path.version)
        except NotFound as error:  # it may be part of a model's name
            raise _of_triton_alone(path.name) or error from None
        return await self._respond(request, metadata)

    async def model_ready(self, request: Request, path: ModelPath) -> Response:
        """Whether a model can be called. Callers who may only predict may ask, too: a prediction would tell them."""
        caller = await self._gate.admit(request.scope, actions.MODEL_GET, actions.PREDICT, actions.PREDICT_STREAM)
        await self._models.check_ready(caller, path.name, path.version)
        return await self._respond(request, {"name": path.name, "ready": True})

    async def index(self, request: Request) -> Response:
        """Return the models that the caller may see."""
        caller = await self._gate.admit(request.scope, actions.MODEL_SEARCH)
        ready = _ready_only(await self._body(request))
        return await self._respond(request, await self._models.index(caller, ready=ready))

    async def load(self, request: Request, name: str) -> Response:
        """Deploy a model."""
        caller = await self._gate.admit(request.scope, actions.MODEL_DEPLOY)
        await self._body(request)
        await self._models.load(caller, name)
        return await self._respond(request)

    async def unload(self, request: Request, name: str) -> Response:
        """Undeploy a model."""
        caller = await self._gate.admit(request.scope, actions.MODEL_UNDEPLOY)
        await self._body(request)
        await self._models.unload(caller, name)
        return await self._respond(request)

    async def _body(self, request: Request) -> Mapping[str, Any]:
        """Return the body, an empty object if there is none."""
        with BodyReservation(self._bodies) as reservation:
            body = await read_body(request.scope, request.receive, reservation)
            return jsontext.load_object(body) if body.strip() else {}

    async def _respond(self, request: Request, body: Any = None) -> Response:
        encoded = b"" if body is None else orjson.dumps(body)
        return await compressed_response(request.scope, encoded, gzip=self._gzip)


def _of_triton_alone(path: str) -> NotFound | None:
    """Return the error for a path below `/v2/models/` that only Triton has, None for any other."""
    return next((NotFound(reason) for end, reason in _TRITON.items() if f"/{path}".endswith(end)), None)


def _ready_only(body: Mapping[str, Any]) -> bool:
    ready = body.get("ready")
    if ready is None or isinstance(ready, bool):
        return ready is True
    message = "Input should be a valid boolean"
    raise InvalidBody(f"ready: {message}", [{"type": "bool_type", "loc": ["body", "ready"], "msg": message}])
