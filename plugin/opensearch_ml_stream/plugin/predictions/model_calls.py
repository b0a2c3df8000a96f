"""Models that may be called now, and calls of their providers."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest, UpstreamError
from opensearch_ml_stream.connectors.rendering.action import ProviderRequest
from opensearch_ml_stream.plugin.predictions.provider_call import check_status, open_provider, read_all
from opensearch_ml_stream.plugin.predictions.rate_limits import RateLimits
from opensearch_ml_stream.plugin.predictions.ready_models import ReadyModel, ReadyModels
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.upstream import Upstream, UpstreamResponse


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """The deployments, and the way to the providers."""

    live: LiveSettings
    deployments: ReadyModels
    upstream: Upstream
    limits: RateLimits

    async def deployment(self, model_id: str) -> ReadyModel:
        """The model ready to be called, if it may be called now."""
        if not self.live.current.remote_inference_enabled:
            raise InvalidRequest(
                "Remote Inference is currently disabled. To enable it, update the setting "
                '"plugins.ml_commons.remote_inference.enabled" to true.',
                type="status_exception",
            )
        deployment = await self.deployments.get(model_id)
        if not deployment.model.is_enabled:
            raise Forbidden("Model is disabled.")
        return deployment

    def count(self, deployment: ReadyModel) -> None:
        """One more prediction by the provider; Throttled if the model's `rate_limiter` does not allow it."""
        self.limits.take(deployment.model_id, deployment.model.document.get("rate_limiter"))

    def open(self, deployment: ReadyModel, request: ProviderRequest) -> AbstractAsyncContextManager[UpstreamResponse]:
        """The provider's answer, whatever its status; see `check_status`."""
        return open_provider(self.upstream, self.live.current, deployment, request)

    async def fetch(self, deployment: ReadyModel, request: ProviderRequest) -> bytes:
        """The whole body of a good answer, which is never empty."""
        async with self.open(deployment, request) as response:
            await check_status(response, deployment)
            body = await read_all(response, self.live.current.max_json_size)
        if not body.strip():
            raise UpstreamError("Remote service returned empty response body")
        return body
