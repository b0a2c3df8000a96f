"""The predict use cases, streamed and whole; every route and transport calls these."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError
from opensearch_ml_stream.connectors.predict.guardrails import INPUT_TRIGGERED, ModelGuard
from opensearch_ml_stream.connectors.predict.inputs import PredictInput, RemoteInput, read_predict_input
from opensearch_ml_stream.connectors.rendering.action import ProviderRequest
from opensearch_ml_stream.connectors.stream_spec import StreamSpec
from opensearch_ml_stream.plugin.metrics import UNKNOWN_MODEL, Metrics, StreamFigures
from opensearch_ml_stream.plugin.predictions.batch_jobs import BatchJobs
from opensearch_ml_stream.plugin.predictions.guardrail_checks import GuardrailChecks
from opensearch_ml_stream.plugin.predictions.painless_runs import PainlessRunner
from opensearch_ml_stream.plugin.predictions.provider_call import ProviderCalls, ProviderStream, check_status
from opensearch_ml_stream.plugin.predictions.ready_models import ReadyModel, ReadyModels
from opensearch_ml_stream.plugin.predictions.whole_prediction import predict_whole, request_text
from opensearch_ml_stream.plugin.settings.feature_switches import streaming_disabled
from opensearch_ml_stream.plugin.store import Store

WHOLE_ANSWER = "$"  # the path of the guard model's answer as its provider gave it


class Predictor:
    """What the routes need, over the models that may be called."""

    def __init__(
        self,
        models: ReadyModels,
        calls: ProviderCalls,
        store: Store,
        scripts: PainlessRunner,
        batch: BatchJobs,
        metrics: Metrics,
    ) -> None:
        self._models = models
        self._calls = calls
        self._store = store
        self._scripts = scripts
        self._batch = batch
        self._metrics = metrics

    @asynccontextmanager
    async def stream(self, model_id: str, parameters: Mapping[str, str]) -> AsyncIterator[ProviderStream]:
        """The provider's stream, its head already good; closed, whatever state it is in, on leaving."""
        if not self._calls.live.current.stream_enabled:
            raise streaming_disabled()
        with self._metrics.stream() as figures:
            model = await self._models.get(model_id)
            figures.model_id = model_id
            spec = model.spec(parameters)
            request = await self._streaming_request(model, spec, parameters)
            self._calls.count(model)
            opening = self._calls.open(model, request)
            del parameters, request  # a prompt may be large, and its answer long
            async with opening as response:
                await check_status(response, model)
                stream = ProviderStream(response, spec.decoder(), model.credential)
                try:
                    yield stream
                finally:
                    _note(figures, stream)

    async def predict(self, model_id: str, body: bytes, algorithm: str | None = None) -> dict[str, Any]:
        """The whole prediction: `{"inference_results": [...]}`."""
        return await self._predict(model_id, read_predict_input(body, algorithm), ())

    async def batch_predict(self, model_id: str, body: bytes) -> Mapping[str, Any]:
        """The task of a new batch job: `{"task_id", "status", "remote_job"}`."""
        return await self._batch.create(model_id, body, self._guards((model_id,)))

    async def _streaming_request(
        self, model: ReadyModel, spec: StreamSpec, parameters: Mapping[str, str]
    ) -> ProviderRequest:
        model.check_input(RemoteInput(parameters))
        request = model.action().render(parameters, spec)
        guard = model.guardrails.input
        if guard is not None:
            text = request_text(request, {**model.connector.parameters, **parameters})
            await self._guards((model.model_id,)).check(guard, text, INPUT_TRIGGERED)
        return request

    async def _predict(self, model_id: str, given: PredictInput, guarded: tuple[str, ...]) -> dict[str, Any]:
        """`guarded` are the models whose guardrails have led to this prediction."""
        counted = UNKNOWN_MODEL
        try:
            model = await self._models.get(model_id)
            counted = model_id

            async def fetch(request: ProviderRequest) -> bytes:
                self._calls.count(model)
                return await self._calls.fetch(model, request)

            guards = self._guards((*guarded, model_id))
            response = await predict_whole(model, given, fetch, self._scripts, guards)
        except MLStreamError as error:
            self._metrics.prediction(counted, error)
            raise
        self._metrics.prediction(counted, None)
        return response

    def _guards(self, guarded: tuple[str, ...]) -> GuardrailChecks:
        return GuardrailChecks(self._store, partial(self._ask_guard_model, guarded))

    async def _ask_guard_model(self, guarded: tuple[str, ...], guard: ModelGuard, text: str) -> Any:
        """A guard with a `response_filter` reads it from the provider's answer, whatever its connector filters."""
        if guard.model_id in guarded:
            raise InvalidRequest("it is guarded, directly or through others, by this very guardrail")
        parameters = {"question": text} | ({"response_filter": WHOLE_ANSWER} if guard.response_filter else {})
        response = await self._predict(guard.model_id, RemoteInput(parameters), guarded)
        output = response["inference_results"][0]["output"]
        answer = output[0].get("dataAsMap", {}) if output else {}
        return answer if guard.response_filter else answer.get("response", answer)


def _note(figures: StreamFigures, stream: ProviderStream) -> None:
    figures.chunks = stream.chunks
    figures.first_chunk = stream.first_chunk
    figures.outcome = stream.outcome
