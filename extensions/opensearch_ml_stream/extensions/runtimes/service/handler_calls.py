"""Calls of custom handlers: under the rights and limits of the model that has them."""

from collections.abc import Mapping
from contextlib import nullcontext

from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound
from opensearch_ml_stream.extensions.runtimes.http.custom_handlers import HandlerRequest, HandlerResponse
from opensearch_ml_stream.extensions.runtimes.service import runtime_errors
from opensearch_ml_stream.extensions.runtimes.service.handler_messages import (
    MAX_HEAD_BYTES,
    read_response,
    request_message,
)
from opensearch_ml_stream.extensions.runtimes.service.runtime_handlers import RuntimeHandlers
from opensearch_ml_stream.extensions.runtimes.service.runtime_models import RuntimeModels
from opensearch_ml_stream.extensions.runtimes.service.runtime_protocol import Runtime
from opensearch_ml_stream.extensions.v2.face import Unloaded, own_errors
from opensearch_ml_stream.plugin.limits.call_timeouts import in_time
from opensearch_ml_stream.plugin.observation import Observation, Observations
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.model_cache import ModelCache
from opensearch_ml_stream.plugin.predictions.provider_call import ProviderCalls, read_all
from opensearch_ml_stream.rest_handlers.callers import Caller


class HandlerCalls:
    """Fits `runtimes.http.custom_handlers.HandlerModels`."""

    def __init__(
        self, runtimes: RuntimeModels, models: ModelCache, calls: ProviderCalls, observations: Observations
    ) -> None:
        self._runtimes = runtimes
        self._models = models
        self._calls = calls
        self._observations = observations
        self._handlers = RuntimeHandlers(runtimes)

    def find(self, path: str) -> Mapping[str, str]:
        """Return the models that have a handler at a path, by its method."""
        return self._handlers.find(path)

    async def handle(self, caller: Caller, name: str, request: HandlerRequest) -> HandlerResponse:
        """Call the handler as a prediction of its model is: counted, limited, charged, within the model's times."""
        status = self._runtimes.current().get(name)
        if status is None:
            raise runtime_errors.unknown_model(name)
        with self._observations.whole(caller) as observed:
            model = await self._models.get(caller, status.model_id)
            observed.find(model.model_id)
            if not isinstance(model.protocol, Runtime) or model.protocol.model != name:
                raise runtime_errors.unknown_model(name)
            try:
                with own_errors():
                    return await self._call(observed, model, model.protocol, request)
            except Unloaded:
                raise NotFound(f"Model {name} not found") from None

    async def _call(
        self, observed: Observation, model: CompiledModel, runtime: Runtime, request: HandlerRequest
    ) -> HandlerResponse:
        caller = observed.caller
        if model.guardrails.input is not None or model.guardrails.output is not None:
            raise InvalidRequest(
                f"Model {runtime.model} has guardrails, and what its custom handlers take and return cannot be checked "
                "by them"
            )
        limit = self._calls.live_settings.current.max_json_size + MAX_HEAD_BYTES
        async with self._calls.open_streams.place(model.model_id, model.settings.limits, caller.name):
            self._calls.apply_rate_limits(model, caller)
            charge = await self._calls.charge(model, caller, request.body)
            observed.admit()
            with charge or nullcontext():
                opening = runtime.handle(request_message(request))
                async with in_time(opening, model.settings.limits) if model.is_timed else opening as opened:
                    return read_response(runtime.model, await read_all(opened, limit))
