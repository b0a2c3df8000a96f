"""Batch jobs: the provider works through a file on its own, and a task in our store shows its progress.

A task keeps the provider's description of its job in `remote_job`, from which its state follows by the settings
`plugins.ml_commons.remote_job.*`. It is refreshed when a caller gets the task.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.documents import BATCH_PREDICT, Action
from opensearch_ml_stream.connectors.errors import Internal, InvalidRequest, MLStreamError, NotFound, Throttled
from opensearch_ml_stream.connectors.predict import remote_job
from opensearch_ml_stream.connectors.predict.guardrails.configuration import INPUT_TRIGGERED
from opensearch_ml_stream.connectors.predict.inputs import PredictInput, RemoteInput
from opensearch_ml_stream.connectors.predict.remote_job_rules import RemoteJobRules
from opensearch_ml_stream.connectors.provider_errors import error_in_body
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.predictions.compiled_model import CompiledModel
from opensearch_ml_stream.plugin.predictions.guardrail_checks import GuardrailChecks
from opensearch_ml_stream.plugin.predictions.model_cache import ModelCache
from opensearch_ml_stream.plugin.predictions.painless_runner import PainlessRunner
from opensearch_ml_stream.plugin.predictions.provider_call import ProviderCalls, check_status
from opensearch_ml_stream.plugin.predictions.whole_prediction import read_responses, run_script_steps
from opensearch_ml_stream.plugin.registry.node import node_id
from opensearch_ml_stream.plugin.registry.stored_documents import Json, rewrite
from opensearch_ml_stream.plugin.registry.tasks import BATCH_PREDICTION, FINAL_STATES
from opensearch_ml_stream.plugin.settings import Settings, batch_inference_disabled
from opensearch_ml_stream.plugin.store import Document, Index, Store
from opensearch_ml_stream.rest_handlers.callers import Caller


@dataclass(frozen=True, slots=True)
class BatchJobs:
    """Creates, refreshes and cancels batch jobs; fits `registry.tasks.BatchJobs`."""

    models: ModelCache
    calls: ProviderCalls
    store: Store
    scripts: PainlessRunner
    clock: Clock

    def check(self, predict_input: PredictInput) -> RemoteInput:
        """Return the input if a job can have it; an MLStreamError if it cannot, or if batch jobs are disabled."""
        if not self.calls.live_settings.current.offline_batch_inference_enabled:
            raise batch_inference_disabled()
        if not isinstance(predict_input, RemoteInput):
            raise InvalidRequest("_batch_predict takes parameters: the texts lie in a file that the provider reads")
        return predict_input

    async def create(self, caller: Caller, model_id: str, predict_input: RemoteInput, checks: GuardrailChecks) -> Json:
        """Start the provider's job and store its task: `{"task_id", "status": "CREATED", "remote_job"}`.

        `predict_input` is what `check` has returned. NotFound without the model; Internal, which names the job, if the
        provider has started it and the store does not take its task.
        """
        model = await self.models.get(caller, model_id)
        compiled = model.action(BATCH_PREDICT)
        await self._check_open_jobs(caller)
        [step] = await run_script_steps(model.steps(compiled, predict_input), self.scripts)
        request = compiled.render(step.parameters)
        parameters = {**model.connector.parameters, **predict_input.parameters}
        await checks.check(model.guardrails.input, model.readable_text(request), INPUT_TRIGGERED)
        self.calls.apply_rate_limits(model, caller)
        await self.calls.budgets.check(model_id, model.settings, caller.name)
        body = await self.calls.fetch(model, request)
        if (refusal := error_in_body(body)) is not None:  # which a job may have that failed later, but not a new one
            raise refusal.redacted(model.redactor.error)
        remote_job = await self._read_job(body, compiled.action, parameters)
        if predict_input.dlq is not None:
            remote_job["dlq"] = predict_input.dlq
        try:
            task_id = await self._store_task(caller, model_id, remote_job)
        except MLStreamError as error:
            # Not the store's 503: OpenSearch's clients send those again, and each would start one more job.
            raise Internal(
                f"The provider has started the job {model.redactor.error(jsontext.dumps(remote_job))}, and its task "
                f"could not be stored: {error.reason}"
            ) from error
        return {"task_id": task_id, "status": "CREATED"} | ({"remote_job": remote_job} if remote_job else {})

    async def refresh(self, caller: Caller, task_id: str, source: Json) -> Json:
        """Fetch the job's status, store what has changed, and return the task's source as it is now.

        A task whose model was deleted stays as it is: without its connector there is nobody to call.
        """
        try:
            model = await self.models.get(caller, source["model_id"])
        except NotFound:
            return source
        action = remote_job.batch_action(model.connector, remote_job.STATUS)
        body = await self.calls.fetch(model, _job_request(model, action, source))
        status = await self._read_job(body, action, {})
        stored_job: Mapping[str, Any] = source.get("remote_job") or {}
        state = remote_job.task_state(status, _remote_job_rules(self.calls.live_settings.current)) or source.get(
            "state"
        )
        changes = {"remote_job": {**stored_job, **status}, "state": state}
        if all(source.get(name) == value for name, value in changes.items()):
            return source
        changes["last_update_time"] = self.clock()

        def change(document: Document) -> Json:
            return {**document.source, **changes}

        await rewrite(self.store, Index.TASK, task_id, change, NotFound("Failed to find task"))
        return {**source, **changes}

    async def cancel(self, caller: Caller, task_id: str, source: Json) -> None:
        """Tell the provider to stop the job; the next `refresh` reads what became of it."""
        model = await self.models.get(caller, source["model_id"])
        request = _job_request(model, remote_job.batch_action(model.connector, remote_job.CANCEL), source)
        async with self.calls.open(model, request) as response:
            await check_status(response, model)  # the body is not read: some providers send none

    async def _check_open_jobs(self, caller: Caller) -> None:
        """Raise Throttled if as many jobs as may be are open, of the caller's tenant if there are tenants."""
        limit = self.calls.live_settings.current.max_batch_inference_tasks
        of_tenant = [{"term": {name: value}} for name, value in caller.tenant_fields.items()]
        open_jobs = {
            "bool": {
                "must": [{"term": {"task_type": BATCH_PREDICTION}}, *of_tenant],
                "must_not": [{"terms": {"state": sorted(FINAL_STATES)}}],
            }
        }
        response = await self.store.search(Index.TASK, {"query": open_jobs, "size": 0})
        if response["hits"]["total"]["value"] >= limit:
            raise Throttled(
                f"Exceeded maximum limit for BATCH_PREDICTION tasks: {limit} are not finished. A task is brought up to "
                "date by GET /_plugins/_ml/tasks/{task_id}. To increase the limit, update the setting "
                '"plugins.ml_commons.max_batch_inference_tasks".',
                limit="batch_jobs",
            )

    async def _store_task(self, caller: Caller, model_id: str, remote_job: Json) -> str:
        now = self.clock()
        source: dict[str, Any] = {
            "model_id": model_id,
            "task_type": BATCH_PREDICTION,
            "function_name": "REMOTE",
            "state": "CREATED",
            "input_type": "REMOTE",
            "worker_node": [await node_id(self.store, self.clock)],
            "create_time": now,
            "last_update_time": now,
            "is_async": False,
            "remote_job": remote_job,
            **caller.tenant_fields,
        }
        return (await self.store.create(Index.TASK, source)).id

    async def _read_job(self, body: bytes, action: Action, parameters: Mapping[str, str]) -> dict[str, Any]:
        """Return the provider's description of the job, empty if its response has none."""
        [output] = await read_responses(action, parameters, [(body, None)], self.scripts)
        job = output[0].get("dataAsMap") if output else None
        return dict(job) if isinstance(job, Mapping) else {}


def _job_request(model: CompiledModel, action: Action, source: Json) -> ProviderRequest:
    """Render an action's request about the job of a task's source."""
    return remote_job.job_request(model.connector, action, source.get("remote_job") or {}, model.credential)


def _remote_job_rules(settings: Settings) -> RemoteJobRules:
    return RemoteJobRules(
        status_field=settings.remote_job_status_field,
        completed=settings.remote_job_status_completed,
        cancelled=settings.remote_job_status_cancelled,
        cancelling=settings.remote_job_status_cancelling,
        expired=settings.remote_job_status_expired,
        failed=settings.remote_job_status_failed,
    )


def asks_for_batch(predict_input: PredictInput, default: str) -> bool:
    """Whether the input asks for a batch job; `default` is the route's action. As in ML Commons, the input has it."""
    asked = predict_input.action_type if isinstance(predict_input, RemoteInput) else None
    return (asked or default) == BATCH_PREDICT
