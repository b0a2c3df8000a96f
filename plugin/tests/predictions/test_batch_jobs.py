"""Batch jobs of a scripted provider: created, refreshed, cancelled, and the tasks about them."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.errors import (
    Forbidden,
    Internal,
    InvalidRequest,
    NotFound,
    Throttled,
    Unavailable,
    UpstreamError,
)
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.registry.node import node_id
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.store import Index, Written
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.predictions.prediction_setup import SECRET, Setup, connector_body, prediction_setup
from tests.predictions.scripted_provider import Response, ScriptedProvider, json_response

BATCHES = "https://api.openai.com/v1/batches"
BATCH_ACTION = {
    "action_type": "batch_predict",
    "method": "POST",
    "url": BATCHES,
    "headers": {"Authorization": "Bearer ${credential.key}"},
    "request_body": '{"input_file_id": "${parameters.file}"}',
}
BODY = {"parameters": {"file": "f1"}}


class Jobs:
    """A provider of one job, as OpenAI has it."""

    def __init__(self) -> None:
        self.status = "validating"

    def __call__(self, request: ProviderRequest) -> Response:
        if request.url.endswith("/cancel"):
            return Response([])
        return json_response({"id": "batch_1", "status": self.status})


@pytest.fixture
def jobs() -> Jobs:
    return Jobs()


@pytest.fixture
async def setup(tmp_path: Path, jobs: Jobs) -> AsyncIterator[Setup]:
    async with prediction_setup(tmp_path, ScriptedProvider(jobs)) as setup:
        await setup.add_model(batch_connector())
        yield setup


def batch_connector(**fields: Any) -> dict[str, Any]:
    return connector_body(actions=[*connector_body()["actions"], BATCH_ACTION], **fields)


async def created(setup: Setup, model_id: str = "m", **fields: Any) -> Any:
    return await setup.predictor.batch_predict(ANYONE, model_id, orjson.dumps({**BODY, **fields}))


async def stored(setup: Setup, task_id: str) -> Any:
    document = await setup.store.get(Index.TASK, task_id)
    assert document is not None
    return document.source


async def refreshed(setup: Setup, task_id: str) -> Any:
    source = await setup.batch.refresh(ANYONE, task_id, await stored(setup, task_id))
    assert source == await stored(setup, task_id)
    return source


class StoreWithoutTasks(SQLiteStore):
    async def create(self, index: Index, source: Mapping[str, Any], id: str | None = None) -> Written:
        if index is Index.TASK:
            raise Unavailable("read-only")
        return await super().create(index, source, id)


async def test_a_job_whose_task_cannot_be_stored_is_named_and_not_started_again(tmp_path: Path) -> None:
    provider = ScriptedProvider(Jobs())
    async with prediction_setup(tmp_path, provider, store=StoreWithoutTasks(":memory:")) as setup:
        await setup.add_model(batch_connector())
        with pytest.raises(Internal) as raised:  # a 503 would be sent again, and start another job
            await created(setup)
    assert raised.value.reason == (
        'The provider has started the job {"id":"batch_1","status":"validating"}, and its task could not be stored: '
        "read-only"
    )
    assert len(provider.calls) == 1


async def test_a_new_job_is_a_task_with_the_providers_description(setup: Setup) -> None:
    response = await created(setup)
    job = {"id": "batch_1", "status": "validating"}
    assert response == {"task_id": response["task_id"], "status": "CREATED", "remote_job": job}
    assert await stored(setup, response["task_id"]) == {
        "model_id": "m",
        "task_type": "BATCH_PREDICTION",
        "function_name": "REMOTE",
        "state": "CREATED",
        "input_type": "REMOTE",
        "worker_node": [await node_id(setup.store, lambda: 0)],
        "create_time": 1_000,
        "last_update_time": 1_000,
        "is_async": False,
        "remote_job": job,
    }
    [call] = setup.provider.calls
    assert (call.request.method, call.request.url) == ("POST", BATCHES)
    assert setup.provider.bodies == [{"input_file_id": "f1"}]


async def test_a_dead_letter_queue_is_kept_with_the_job(setup: Setup) -> None:
    response = await created(setup, dlq={"bucket": "b", "region": "r"})
    assert response["remote_job"]["dlq"] == {"bucket": "b", "region": "r"}


@pytest.mark.parametrize("body", [{}, {"inference_results": [{"output": [{"name": "x", "dataAsMap": 5}]}]}])
async def test_a_provider_that_describes_no_job_leaves_a_task_without_one(setup: Setup, body: dict[str, Any]) -> None:
    setup.provider.script = lambda request: json_response(body)
    response = await created(setup)
    assert response == {"task_id": response["task_id"], "status": "CREATED"} | ({"remote_job": body} if body else {})


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("completed", "COMPLETED"),
        ("FAILED", "FAILED"),
        ("expired", "EXPIRED"),
        ("cancelling", "CANCELLING"),
        ("stopped", "CANCELLED"),
        ("in_progress", "CREATED"),
    ],
)
async def test_the_state_of_a_task_follows_from_the_jobs_status(
    setup: Setup, jobs: Jobs, status: str, state: str
) -> None:
    task_id = (await created(setup))["task_id"]
    jobs.status = status
    source = await refreshed(setup, task_id)
    assert source["state"] == state
    assert source["remote_job"] == {"id": "batch_1", "status": status}
    status_call = setup.provider.calls[-1].request
    assert (status_call.method, status_call.url) == ("GET", f"{BATCHES}/batch_1")
    assert status_call.headers["Authorization"] == f"Bearer {SECRET}"


async def test_the_words_for_states_are_settings(setup: Setup, jobs: Jobs) -> None:
    setup.live.current = Settings(remote_job_status_completed="(all done)")
    task_id = (await created(setup))["task_id"]
    jobs.status = "completed"
    assert (await refreshed(setup, task_id))["state"] == "CREATED"
    jobs.status = "All Done"
    assert (await refreshed(setup, task_id))["state"] == "COMPLETED"


async def test_an_error_is_no_new_job_and_may_be_what_became_of_one(tmp_path: Path) -> None:
    failed = {"error": {"code": "c", "message": f"no {SECRET}"}, "name": "n"}
    async with prediction_setup(tmp_path, ScriptedProvider(lambda request: json_response(failed))) as setup:
        await setup.add_model(batch_connector())
        with pytest.raises(UpstreamError, match=r"^Error from remote service: no \*\*\*$"):
            await created(setup)
        source = {"model_id": "m", "state": "RUNNING", "remote_job": {"id": "batch_1"}}
        task = await setup.store.create(Index.TASK, source)
        refreshed = await setup.batch.refresh(ANYONE, task.id, source)
    assert refreshed["remote_job"]["error"]["message"] == "no ***"


async def test_an_unchanged_job_is_not_written_again(setup: Setup) -> None:
    task_id = (await created(setup))["task_id"]
    before = await setup.store.get(Index.TASK, task_id)
    assert before is not None
    assert await setup.batch.refresh(ANYONE, task_id, before.source) is before.source
    assert await setup.store.get(Index.TASK, task_id) == before


async def test_what_the_provider_no_longer_says_is_kept(setup: Setup) -> None:
    task_id = (await created(setup, dlq={"bucket": "b"}))["task_id"]
    setup.provider.script = lambda request: json_response({"status": "completed", "output_file_id": "f2"})
    assert (await refreshed(setup, task_id))["remote_job"] == {
        "id": "batch_1",
        "status": "completed",
        "output_file_id": "f2",
        "dlq": {"bucket": "b"},
    }


async def test_a_task_whose_model_is_gone_stays_as_it_is(setup: Setup) -> None:
    source = {"model_id": "gone", "remote_job": {"id": "x"}, "state": "CREATED"}
    assert await setup.batch.refresh(ANYONE, "t", source) is source
    assert setup.provider.calls == []


async def test_a_task_that_was_deleted_meanwhile_is_not_found(setup: Setup, jobs: Jobs) -> None:
    task_id = (await created(setup))["task_id"]
    source = await stored(setup, task_id)
    await setup.store.delete(Index.TASK, task_id)
    jobs.status = "completed"
    with pytest.raises(NotFound, match=r"^Failed to find task$"):
        await setup.batch.refresh(ANYONE, task_id, source)


async def test_cancelling_tells_the_provider_whose_response_may_be_empty(setup: Setup) -> None:
    task_id = (await created(setup))["task_id"]
    await setup.batch.cancel(ANYONE, task_id, await stored(setup, task_id))
    request = setup.provider.calls[-1].request
    assert (request.method, request.url, request.body) == ("POST", f"{BATCHES}/batch_1/cancel", b"")
    assert (await stored(setup, task_id))["state"] == "CREATED"


async def test_a_provider_that_refuses_to_cancel_is_heard(setup: Setup) -> None:
    setup.provider.script = lambda request: Response([b"too late"], 409)
    with pytest.raises(UpstreamError, match=r"^Error from remote service: too late$"):
        await setup.batch.cancel(ANYONE, "t", {"model_id": "m", "remote_job": {"id": "batch_1"}})


async def test_only_so_many_jobs_may_be_unfinished(setup: Setup, jobs: Jobs) -> None:
    setup.live.current = Settings(max_batch_inference_tasks=2)
    task_id = (await created(setup))["task_id"]
    await created(setup)
    with pytest.raises(Throttled) as raised:
        await created(setup)
    assert raised.value.reason.startswith("Exceeded maximum limit for BATCH_PREDICTION tasks: 2 are not finished.")
    assert len(setup.provider.calls) == 2
    jobs.status = "completed"
    await refreshed(setup, task_id)
    await created(setup)


async def test_a_rate_limit_counts_a_new_job(setup: Setup) -> None:
    await setup.add_model(batch_connector(), "limited", rate_limiter={"limit": "1", "unit": "HOURS"})
    await created(setup, "limited")
    with pytest.raises(Throttled):
        await created(setup, "limited")


async def test_with_batch_inference_off_no_job_is_begun(setup: Setup) -> None:
    setup.live.current = Settings(offline_batch_inference_enabled=False)
    with pytest.raises(Forbidden, match=r"^Offline batch inference is currently disabled\."):
        await created(setup)
    assert setup.provider.calls == []


async def test_texts_are_refused_since_the_provider_reads_a_file(setup: Setup) -> None:
    with pytest.raises(InvalidRequest, match="_batch_predict takes parameters"):
        await setup.predictor.batch_predict(ANYONE, "m", b'{"text_docs": ["a"]}')


async def test_a_connector_without_a_batch_action_is_refused(setup: Setup) -> None:
    await setup.add_model(connector_body(), "plain")
    with pytest.raises(InvalidRequest, match="no BATCH_PREDICT action found"):
        await created(setup, "plain")
