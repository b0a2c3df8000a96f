"""The use cases of V2 over a store in memory and a scripted provider."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from opensearch_ml_stream.extensions.v2.extension import EXTENSION
from opensearch_ml_stream.extensions.v2.http.use_cases import UnreadRequest
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceRequest, RequestedOutput, Tensor
from opensearch_ml_stream.extensions.v2.service.model_names import ModelNames
from opensearch_ml_stream.extensions.v2.service.stored_inference_models import StoredInferenceModels
from opensearch_ml_stream.plugin.connector_protocol import ConnectorProtocol, ModelAdditions
from opensearch_ml_stream.plugin.predictions.model_cache import ModelCache
from opensearch_ml_stream.plugin.registry import Registry, build_registry
from opensearch_ml_stream.plugin.registry.deployment_state_store import DeploymentStateStore
from opensearch_ml_stream.plugin.registry.document_access import VisibleDocuments
from opensearch_ml_stream.plugin.registry.model_deployment import ModelDeployment
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller
from tests.predictions.prediction_setup import Setup, connector_body, prediction_setup
from tests.predictions.scripted_provider import ScriptedProvider


@dataclass(frozen=True)
class InferenceSetup:
    predictions: Setup
    registry: Registry
    inference_models: StoredInferenceModels

    async def register(self, name: str = "m", caller: Caller = ANYONE, **fields: Any) -> str:
        """Register a model with a connector of its own, as the API does; return its id."""
        body = {"name": name, "function_name": "remote", "connector": connector_body(), **fields}
        response = await self.registry.models.register(caller, body)
        return str(response["model_id"])


@asynccontextmanager
async def inference_setup(
    folder: Path,
    provider: ScriptedProvider,
    store: SQLiteStore | None = None,
    protocols: Sequence[ConnectorProtocol] = (),
    **settings: Any,
) -> AsyncIterator[InferenceSetup]:
    async with prediction_setup(folder, provider, store, protocols, EXTENSION.model_options, **settings) as setup:
        ticks = count(1_000)

        def clock() -> int:
            return next(ticks)

        options = EXTENSION.model_options
        states = DeploymentStateStore(setup.store, clock)
        deployment = ModelDeployment(setup.store, setup.cipher, setup.live, clock, states, protocols=protocols)
        registry = build_registry(setup.store, setup.cipher, setup.live, clock, deployment, setup.batch, options)
        names = ModelNames(setup.store, VisibleDocuments.of(setup.store, setup.live), states, protocols)
        additions = ModelAdditions(protocols, options)
        compiled = ModelCache(setup.store, setup.cipher, setup.live, deployment.plan, additions)
        inference_models = StoredInferenceModels(names, compiled, setup.predictor, registry.models, protocols)
        yield InferenceSetup(setup, registry, inference_models)


def asks(*texts: str, id: str = "", output: str = "", **parameters: Any) -> UnreadRequest:
    """A request of a tensor of texts."""
    tensor = Tensor("prompt", "BYTES", [len(texts)], texts)
    return unread(InferenceRequest([tensor], id, parameters, (RequestedOutput(output),) if output else ()))


def unread(request: InferenceRequest) -> UnreadRequest:
    return UnreadRequest(0, lambda: request)
