"""Tasks: what was asked for that runs by itself, and how it went."""

from dataclasses import dataclass
from typing import Any, Protocol

from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound
from opensearch_ml_stream.plugin.registry.search import search
from opensearch_ml_stream.plugin.registry.stored_documents import Clock, Json, in_order
from opensearch_ml_stream.plugin.store import Index, Store

BATCH_PREDICTION = "BATCH_PREDICTION"
FINAL_STATES = frozenset({"COMPLETED", "FAILED", "CANCELLED", "COMPLETED_WITH_ERROR", "EXPIRED"})

_FIELDS = (
    "model_id", "task_type", "function_name", "state", "input_type", "progress", "output_index", "worker_node",
    "create_time", "last_update_time", "error", "user", "is_async", "remote_job", "response",
)  # fmt: skip


class BatchJobs(Protocol):
    """The provider's side of a batch prediction."""

    async def refresh(self, task_id: str, source: Json) -> Json:
        """Asks the provider, stores what has changed, and returns the task's source as it is now."""
        ...

    async def cancel(self, task_id: str, source: Json) -> None: ...


@dataclass(frozen=True, slots=True)
class Tasks:
    store: Store
    batch: BatchJobs | None = None

    async def get(self, task_id: str) -> Json:
        """The task; an unfinished batch job's is brought up to date first."""
        source = await self._source(task_id)
        if self.batch is not None and _is_batch(source) and source.get("state") not in FINAL_STATES:
            source = await self.batch.refresh(task_id, source)
        return in_order({"is_async": False, **source}, _FIELDS)

    async def delete(self, task_id: str) -> Json:
        source = await self._source(task_id)
        if source.get("state") == "RUNNING":
            raise InvalidRequest(
                "Task cannot be deleted in running state. Try after some time.", type="status_exception"
            )
        return (await self.store.delete(Index.TASK, task_id)).response

    async def cancel(self, task_id: str) -> Json:
        source = await self._source(task_id)
        if self.batch is None or not _is_batch(source):
            raise InvalidRequest("The task ID you provided does not have any associated batch job")
        await self.batch.cancel(task_id, source)
        return {"status": "OK"}

    async def search(self, body: Json, *, dashboards: bool = False) -> Json:
        return await search(self.store, Index.TASK, body, ())

    async def _source(self, task_id: str) -> Json:
        document = await self.store.get(Index.TASK, task_id)
        if document is None:
            raise _missing()
        return document.source


async def record_task(
    store: Store, clock: Clock, task_type: str, model_id: str, node: str, started: int, *, is_async: bool = False
) -> str:
    """Stores the task of something that is done, begun at `started` (epoch ms); returns its id."""
    source: dict[str, Any] = {
        "model_id": model_id,
        "task_type": task_type,
        "function_name": "REMOTE",
        "state": "COMPLETED",
        "worker_node": [node],
        "create_time": started,
        "last_update_time": clock(),
        "is_async": is_async,
    }
    return (await store.create(Index.TASK, source)).id


def _is_batch(source: Json) -> bool:
    return source.get("task_type") == BATCH_PREDICTION


def _missing() -> NotFound:
    return NotFound("Failed to find task")
