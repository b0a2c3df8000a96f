"""`/v1/embeddings`: embeddings of texts, whole."""

from collections.abc import Mapping
from typing import Any, Protocol

from starlette.types import Scope

from opensearch_ml_stream.extensions.openai_api.protocol.embeddings import (
    EmbeddingsRequest,
    embeddings_response,
    read_embeddings_request,
)
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponse, InFlightResponses
from opensearch_ml_stream.rest_handlers.routes.posted_object import PostedObject
from opensearch_ml_stream.rest_handlers.routes.prediction_responses import send_prediction


class EmbeddingModels(Protocol):
    """The use case behind this route."""

    async def embed(self, caller: Caller, request: EmbeddingsRequest) -> Mapping[str, Any]:
        """Return the whole prediction. NotFound for an unknown model, InvalidRequest for one that takes no texts."""
        ...


def embeddings_endpoint(
    models: EmbeddingModels, in_flight: InFlightResponses, gate: Gate
) -> PostedObject[EmbeddingsRequest]:
    """Return the ASGI endpoint."""

    async def embed(caller: Caller, request: EmbeddingsRequest) -> bytes:
        return embeddings_response(request, await models.embed(caller, request))

    async def respond(response: InFlightResponse, scope: Scope, caller: Caller, request: EmbeddingsRequest) -> None:
        await send_prediction(response, embed(caller, request))

    return PostedObject(in_flight, gate, (actions.PREDICT,), read_embeddings_request, respond)
