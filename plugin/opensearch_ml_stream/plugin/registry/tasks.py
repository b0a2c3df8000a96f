"""Task use cases (get, delete, cancel, search), and the records of finished tasks."""

from dataclasses import dataclass
from typing import Any, Protocol

from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.registry.document_access import ModelAccess, VisibleDocuments
from opensearch_ml_stream.plugin.registry.search import search
from opensearch_ml_stream.plugin.registry.stored_documents import Json, existing, in_order
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import Caller

BATCH_PREDICTION = "BATCH_PREDICTION"
FINAL_STATES = frozenset({"COMPLETED", "FAILED", "CANCELLED", "COMPLETED_WITH_ERROR", "EXPIRED"})

_FIELDS = (
    "model_id", "task_type", "function_name", "state", "input_type", "progress", "output_index", "worker_node",
    "create_time", "last_update_time", "error", "user", "is_async", "remote_job", "response",
)  # fmt: skip


class BatchJobs(Protocol):
    """The provider's side of batch predictions; see `predictions.batch_jobs`."""

    async def refresh(self, caller: Caller, task_id: str, source: Json) -> Json:
        """Fetch the job's status, store what has changed, and return the task's source as it is now."""
        ...

    async def cancel(self, caller: Caller, task_id: str, source: Json) -> None:
        """Tell the provider to stop the job."""
        ...


@dataclass(frozen=True, slots=True)
class Tasks:
    """The task use cases. Without `batch`, tasks of batch jobs are shown as stored and cannot be cancelled."""

    store: Store
    access: ModelAccess
    visible: VisibleDocuments
    batch: BatchJobs | None = None

    async def get(self, caller: Caller, task_id: str) -> Json:
        """Return the task; that of an unfinished batch job is refreshed first."""
        source = await self._source(caller, task_id)
        if self.batch is not None and _is_batch(source) and source.get("state") not in FINAL_STATES:
            source = await self.batch.refresh(caller, task_id, source)
        return in_order({"is_async": False, **source}, _FIELDS)

    async def delete(self, caller: Caller, task_id: str) -> Json:
        """Delete the task; InvalidRequest while it is running, a batch job from its start on."""
        source = await self._source(caller, task_id)
        state = source.get("state")
        if state == "RUNNING" or (state == "CREATED" and _is_batch(source)):
            raise InvalidRequest(
                "Task cannot be deleted in running state. Try after some time.", type="status_exception"
            )
        return (await self.store.delete(Index.TASK, task_id)).response

    async def cancel(self, caller: Caller, task_id: str) -> Json:
        """Cancel the task's batch job; InvalidRequest if it has none."""
        source = await self._source(caller, task_id)
        if self.batch is None or not _is_batch(source):
            raise InvalidRequest("The task ID you provided does not have any associated batch job")
        await self.batch.cancel(caller, task_id, source)
        return {"status": "OK"}

    async def search(self, caller: Caller, body: Json, *, dashboards: bool = False) -> Json:
        """Search tasks; nothing in them is hidden from anybody."""
        return await search(self.store, Index.TASK, body, (), await self.visible.query(caller, Index.TASK))

    async def _source(self, caller: Caller, task_id: str) -> Json:
        """Return a task's source; Forbidden if the caller may not access its model."""
        source = (await existing(self.store, Index.TASK, task_id, NotFound("Failed to find task"))).source
        caller.check_tenant(source)
        if self.access.groups.restricts(caller):
            await self.access.check_id(caller, source.get("model_id"))
        return source


async def record_task(store: Store, clock: Clock, started: int, fields: Json) -> str:
    """Store the task of a finished operation, begun at `started` (epoch ms); return its id."""
    source: dict[str, Any] = {
        "function_name": "REMOTE",
        "state": "COMPLETED",
        "create_time": started,
        "last_update_time": clock(),
        "is_async": False,
        **fields,
    }
    return (await store.create(Index.TASK, source)).id


def _is_batch(source: Json) -> bool:
    return source.get("task_type") == BATCH_PREDICTION
