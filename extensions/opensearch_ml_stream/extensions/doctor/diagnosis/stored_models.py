"""The use case of `_diagnose`: a diagnosis of a stored model, made in the sidecar, which counts as a prediction."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest, MLStreamError, NotFound, Unavailable
from opensearch_ml_stream.connectors.predict.inputs import RemoteInput
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.extensions.doctor.diagnosis.diagnose import Diagnosis, ModelDiagnosis
from opensearch_ml_stream.extensions.doctor.diagnosis.report import Report
from opensearch_ml_stream.extensions.doctor.diagnosis.request_steps import describe_document, with_text
from opensearch_ml_stream.extensions.doctor.diagnosis.step_log import StepLog
from opensearch_ml_stream.plugin.limits.budgets import Charge
from opensearch_ml_stream.plugin.observation import Observations
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.model_cache import ModelCache
from opensearch_ml_stream.plugin.predictions.predictor import Predictor
from opensearch_ml_stream.plugin.predictions.provider_call import ProviderCalls
from opensearch_ml_stream.plugin.settings import streaming_disabled
from opensearch_ml_stream.rest_handlers.callers import Caller


class StoredModelDiagnoses:
    """Diagnoses models of the store: by the rules, limits, budgets and input guardrails of a streamed prediction.

    Only the model's own predict action is called, none of its fallback models; what the provider responds is not shown.
    """

    def __init__(
        self,
        models: ModelCache,
        calls: ProviderCalls,
        predictor: Predictor,
        observations: Observations,
    ) -> None:
        self._models = models
        self._calls = calls
        self._predictor = predictor
        self._observations = observations

    async def diagnose(
        self, caller: Caller, model_id: str, parameters: Mapping[str, str], *, record: bool
    ) -> Mapping[str, Any]:
        """Return the report, with the recording if `record` asks for it, whatever the provider does.

        Raises what a prediction raises for a model that the caller may not use, and for limits, budgets, the model's
        interface and guardrails; InvalidRequest also for a recording of a model whose output is guarded.
        """
        if not self._calls.live_settings.current.stream_enabled:
            raise streaming_disabled()
        log = StepLog()
        with self._observations.stream(caller) as observed:
            try:
                model = await self._document(caller, model_id, log)
            except (NotFound, Forbidden, Unavailable):
                raise
            except MLStreamError as error:
                observed.outcome = error
                return Diagnosis(Report(log.steps())).to_json()
            observed.set_model(model_id)
            model.check_input(RemoteInput(with_text(model, parameters)))
            if record and model.guardrails.output is not None:
                raise InvalidRequest("The model's output is guarded, and a recording would hold it unchecked")
            calls = self._calls

            async def admit(held: AsyncExitStack, request: ProviderRequest) -> Charge | None:
                return await self._predictor.admit(held, observed, model, request)

            diagnosing = ModelDiagnosis(model, calls.live_settings, log, record=record)
            diagnosis = await diagnosing.run(
                parameters, lambda upstream, request: replace(calls, upstream=upstream).open(model, request), admit
            )
            observed.outcome = diagnosing.outcome
            if diagnosing.stream is not None:
                observed.set_stream(diagnosing.stream)
        return diagnosis.to_json()

    async def _document(self, caller: Caller, model_id: str, log: StepLog) -> CompiledModel:
        with log.timed("document") as found:
            model = await self._models.get(caller, model_id)
            found.details = describe_document(model)
            connector = model.connector
            found.summary = f"model {model.definition.name}, connector {connector.name} ({connector.protocol})"
        return model
