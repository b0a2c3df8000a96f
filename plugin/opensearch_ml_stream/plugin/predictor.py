"""The predict use cases, streamed and whole; every route and transport calls these."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest, MLStreamError
from opensearch_ml_stream.connectors.predict.inputs import read_predict_input
from opensearch_ml_stream.connectors.rendering import ProviderRequest
from opensearch_ml_stream.plugin.deployments import Deployment, Deployments
from opensearch_ml_stream.plugin.metrics import UNKNOWN_MODEL, Metrics, StreamFigures
from opensearch_ml_stream.plugin.provider_call import ProviderStream, call_provider, read_all
from opensearch_ml_stream.plugin.rate_limits import RateLimits
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.store import Store
from opensearch_ml_stream.plugin.upstream import Upstream
from opensearch_ml_stream.plugin.whole_prediction import predict_whole


class Predictor:
    """What the routes need, over the deployments and the way to the providers."""

    def __init__(
        self,
        live: LiveSettings,
        store: Store,
        deployments: Deployments,
        upstream: Upstream,
        limits: RateLimits,
        metrics: Metrics,
    ) -> None:
        self._live = live
        self._store = store
        self._deployments = deployments
        self._upstream = upstream
        self._limits = limits
        self._metrics = metrics

    @asynccontextmanager
    async def stream(self, model_id: str, parameters: Mapping[str, str]) -> AsyncIterator[ProviderStream]:
        """The provider's stream, its head already good; closed, whatever state it is in, on leaving."""
        settings = self._live.current
        if not settings.stream_enabled:
            raise Forbidden(
                "Streaming is currently disabled. To enable it, update the setting "
                '"plugins.ml_commons.stream_enabled" to true.'
            )
        with self._metrics.stream() as figures:
            deployment = await self.deployment(model_id)
            figures.model_id = model_id
            spec = deployment.spec(parameters)
            request = deployment.action().render(parameters, spec)
            async with call_provider(self._upstream, settings, deployment, request) as response:
                stream = ProviderStream(response, spec.decoder(), deployment.credential)
                try:
                    yield stream
                finally:
                    _note(figures, stream)

    async def predict(self, model_id: str, body: bytes, algorithm: str | None = None) -> dict[str, Any]:
        """The whole prediction: `{"inference_results": [...]}`."""
        given = read_predict_input(body, algorithm)
        settings = self._live.current
        counted = UNKNOWN_MODEL

        try:
            deployment = await self.deployment(model_id)
            counted = model_id

            async def fetch(request: ProviderRequest) -> bytes:
                async with call_provider(self._upstream, settings, deployment, request) as response:
                    return await read_all(response, settings.max_json_size)

            results = await predict_whole(self._store, deployment, deployment.action(), given, fetch)
        except MLStreamError as error:
            self._metrics.prediction(counted, error)
            raise
        self._metrics.prediction(counted, None)
        return {"inference_results": results}

    async def deployment(self, model_id: str) -> Deployment:
        """The model ready to be called, if it may be called now."""
        if not self._live.current.remote_inference_enabled:
            raise InvalidRequest(
                "Remote Inference is currently disabled. To enable it, update the setting "
                '"plugins.ml_commons.remote_inference.enabled" to true.',
                type="status_exception",
            )
        deployment = await self._deployments.get(model_id)
        if not deployment.model.is_enabled:
            raise Forbidden("Model is disabled.")
        self._limits.take(model_id, deployment.model.document.get("rate_limiter"))
        return deployment


def _note(figures: StreamFigures, stream: ProviderStream) -> None:
    figures.chunks = stream.chunks
    figures.first_chunk = stream.first_chunk
    figures.outcome = stream.outcome
