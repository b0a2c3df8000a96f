"""`/v1/embeddings`: embeddings of texts, whole."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.types import Scope

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.inputs import TextDocsInput
from opensearch_ml_stream.connectors.syntax.jsontext import to_parameter
from opensearch_ml_stream.extensions.openai_api.protocol.embeddings import (
    EmbeddingsRequest,
    embeddings_response,
    read_embeddings_request,
)
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.model_cache import ModelCache
from opensearch_ml_stream.plugin.predictions.predictor import Predictor
from opensearch_ml_stream.plugin.registry.models_by_name import ModelsByName
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import (
    InFlightResponse,
    InFlightResponses,
    send_prediction,
)
from opensearch_ml_stream.rest_handlers.routes.post_endpoint import PostEndpoint


@dataclass(frozen=True, slots=True)
class StoredEmbeddingModels:
    """Embeddings by the models in the store, with the predictions of every other route."""

    names: ModelsByName
    models: ModelCache
    predictor: Predictor

    async def embed(self, caller: Caller, request: EmbeddingsRequest) -> Mapping[str, Any]:
        """Return the whole prediction of the texts, which its model's batching may merge with those of others.

        NotFound for an unknown model, InvalidRequest for one that takes no texts.
        """
        model_id = await self.names.model_id(caller, request.model)
        model = await self.models.get(caller, model_id)
        if model.protocol is None and not model.inputs.takes_texts:
            raise InvalidRequest(
                f"model must be one that makes embeddings: the connector of [{request.model}] has no "
                "pre_process_function for texts, and its template no parameter input"
            )
        texts = TextDocsInput(request.texts, _parameters(model, request.further))
        return await self.predictor.predict_input(caller, model_id, texts)


def _parameters(model: CompiledModel, members: Mapping[str, Any]) -> dict[str, str]:
    """Return further members as parameters. InvalidRequest for one that the template has no parameter for.

    Members that the model's `_sidecar.drop_params` names are left out.
    """
    names = model.inputs.names if model.protocol is None else frozenset[str]()
    for name in members.keys() - names - set(model.settings.drop_params):
        raise InvalidRequest(
            f"{name} cannot be passed on to this model: its template has no parameter of that name. Leave it out, "
            "or name it in the model's _sidecar.drop_params"
        )
    return {name: to_parameter(value) for name, value in members.items() if name in names}


def embeddings_endpoint(
    models: StoredEmbeddingModels, in_flight: InFlightResponses, gate: Gate
) -> PostEndpoint[EmbeddingsRequest]:
    """Return the ASGI endpoint."""

    async def embed(caller: Caller, request: EmbeddingsRequest) -> bytes:
        return embeddings_response(request, await models.embed(caller, request))

    async def respond(response: InFlightResponse, scope: Scope, caller: Caller, request: EmbeddingsRequest) -> None:
        await send_prediction(response, embed(caller, request))

    return PostEndpoint(in_flight, gate, (actions.PREDICT,), read_embeddings_request, respond)
