"""Tasks over SQLite: shown, deleted, cancelled, and batch jobs brought up to date."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound
from opensearch_ml_stream.plugin.registry.stored_documents import Json
from opensearch_ml_stream.plugin.registry.tasks import record_task
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller
from tests.registry.registry_setup import registry_on

BATCH = {"task_type": "BATCH_PREDICTION", "state": "RUNNING"}


class FinishedJobs:
    """A provider whose batch jobs are all done."""

    def __init__(self) -> None:
        self.cancelled: list[str] = []

    async def refresh(self, caller: Caller, task_id: str, source: Json) -> Json:
        return {**source, "state": "COMPLETED", "remote_job": {"id": task_id}}

    async def cancel(self, caller: Caller, task_id: str, source: Json) -> None:
        self.cancelled.append(task_id)


async def add(store: Store, **source: Any) -> str:
    return (await store.create(Index.TASK, source)).id


async def test_a_task_is_shown_in_ml_commons_order_without_nulls(store: Store) -> None:
    task_id = await add(store, extra=1, state="FAILED", error="x", model_id="m", output_index=None)
    shown = await registry_on(store).tasks.get(ANYONE, task_id)
    assert list(shown.items()) == [
        ("model_id", "m"),
        ("state", "FAILED"),
        ("error", "x"),
        ("is_async", False),
        ("extra", 1),
    ]


async def test_a_task_that_is_not_there_is_not_found(store: Store) -> None:
    tasks = registry_on(store).tasks
    for call in (tasks.get(ANYONE, "x"), tasks.delete(ANYONE, "x"), tasks.cancel(ANYONE, "x")):
        with pytest.raises(NotFound, match=r"^Failed to find task$"):
            await call


async def test_only_an_unfinished_batch_job_is_refreshed(store: Store) -> None:
    tasks = registry_on(store, FinishedJobs()).tasks
    unfinished = await add(store, **BATCH)
    assert (await tasks.get(ANYONE, unfinished))["remote_job"] == {"id": unfinished}
    for state in ("COMPLETED", "FAILED", "CANCELLED", "COMPLETED_WITH_ERROR", "EXPIRED"):
        assert "remote_job" not in await tasks.get(ANYONE, await add(store, **{**BATCH, "state": state}))
    assert "remote_job" not in await tasks.get(ANYONE, await add(store, task_type="DEPLOY_MODEL", state="RUNNING"))
    assert "remote_job" not in await registry_on(store).tasks.get(ANYONE, unfinished)


async def test_only_a_batch_job_can_be_cancelled(store: Store) -> None:
    jobs = FinishedJobs()
    tasks = registry_on(store, jobs).tasks
    batch_id = await add(store, **BATCH)
    assert await tasks.cancel(ANYONE, batch_id) == {"status": "OK"}
    assert jobs.cancelled == [batch_id]
    refusal = r"^The task ID you provided does not have any associated batch job$"
    with pytest.raises(InvalidRequest, match=refusal):
        await tasks.cancel(ANYONE, await add(store, task_type="DEPLOY_MODEL"))
    with pytest.raises(InvalidRequest, match=refusal):
        await registry_on(store).tasks.cancel(ANYONE, batch_id)


async def test_a_running_task_cannot_be_deleted(store: Store) -> None:
    tasks = registry_on(store).tasks
    with pytest.raises(InvalidRequest, match=r"^Task cannot be deleted in running state\.") as raised:
        await tasks.delete(ANYONE, await add(store, state="RUNNING"))
    assert raised.value.type == "status_exception"
    with pytest.raises(InvalidRequest, match="running state"):
        await tasks.delete(ANYONE, await add(store, state="CREATED", task_type="BATCH_PREDICTION"))
    for fields in ({"state": "COMPLETED"}, {"state": "CANCELLING", "task_type": "BATCH_PREDICTION"}):
        assert (await tasks.delete(ANYONE, await add(store, **fields)))["result"] == "deleted"
    task_id = await add(store, state="COMPLETED")
    assert (await tasks.delete(ANYONE, task_id))["result"] == "deleted"
    assert await store.get(Index.TASK, task_id) is None


async def test_tasks_are_searched(store: Store) -> None:
    await add(store, state="RUNNING")
    failed = await add(store, state="FAILED")
    response = await registry_on(store).tasks.search(ANYONE, {"query": {"term": {"state": "FAILED"}}})
    assert [hit["_id"] for hit in response["hits"]["hits"]] == [failed]


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_finished_operation_is_recorded_with_its_times(store: Store, is_async: bool) -> None:
    fields = {"task_type": "DEPLOY_MODEL", "model_id": "m", "worker_node": ["node"], "is_async": is_async}
    task_id = await record_task(store, lambda: 20, 10, fields)
    document = await store.get(Index.TASK, task_id)
    assert document is not None
    assert document.source == {
        "model_id": "m",
        "task_type": "DEPLOY_MODEL",
        "function_name": "REMOTE",
        "state": "COMPLETED",
        "worker_node": ["node"],
        "create_time": 10,
        "last_update_time": 20,
        "is_async": is_async,
    }
