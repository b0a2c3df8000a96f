"""The profile use case: deployed models with the durations of their last predictions, and running predictions."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.monitoring.statistics import ModelFigures, RunningPrediction, Statistics
from opensearch_ml_stream.plugin.registry.deployment_state_store import DEPLOYED, DeploymentStateStore
from opensearch_ml_stream.plugin.registry.document_access import VisibleDocuments
from opensearch_ml_stream.plugin.registry.node import ServerNode
from opensearch_ml_stream.plugin.registry.stored_documents import Json, flag_of, strings_of
from opensearch_ml_stream.rest_handlers.callers import Caller

VIEWS = ("node", "model")
MAX_IDS = 10_000  # of models in one request
_STATE: Json = {"model_state": DEPLOYED}
_PERCENTILES = (50, 90, 99)


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profile use case, over the store and this server's statistics: of models that the caller may see.

    `further` returns what extensions add to the profile of a model, by its id.
    """

    states: DeploymentStateStore
    statistics: Statistics
    node: ServerNode
    visible: VisibleDocuments
    further: Callable[[], Mapping[str, Json]] = dict

    async def get(self, caller: Caller, body: Json, *, view: str) -> Json:
        """Return the profile that the body asks for, by node or (`view`) by model; empty if there is nothing to say.

        The body may have `node_ids`, `model_ids`, `task_ids`, `return_all_models` and `return_all_tasks`.
        """
        if view not in VIEWS:
            raise InvalidRequest(f"view must be one of {', '.join(VIEWS)}")
        node_id = await self.node.id_if_asked(strings_of(body, "node_ids") or [])
        if node_id is None:
            return {}
        model_ids = strings_of(body, "model_ids") or []
        if len(model_ids) > MAX_IDS:
            raise InvalidRequest(f"model_ids has more than {MAX_IDS} ids")
        models = await self._models(caller, model_ids, every=flag_of(body, "return_all_models") or False)
        task_ids = strings_of(body, "task_ids") or []
        tasks = await self._tasks(caller, task_ids, every=flag_of(body, "return_all_tasks") or False)
        if not models and not tasks:
            return {}
        now = self.node.clock(), monotonic()
        task_views = {task.task_id: _task_view(task, node_id, now) for task in tasks}
        by_node = view == "node"
        return (_node_view if by_node else _model_view)(node_id, self.node.server, models, task_views)

    async def _models(self, caller: Caller, model_ids: Sequence[str], *, every: bool) -> dict[str, Json]:
        if not every and not model_ids:
            return {}
        deployed = await self.states.deployed(None if every else model_ids)
        visible = await self.visible.models(caller, deployed)

        def read() -> dict[str, Json]:
            further = self.further()
            return {id: {**further.get(id, {}), **_model_profile(self.statistics.model(id))} for id in visible}

        return await asyncio.to_thread(read)

    async def _tasks(self, caller: Caller, task_ids: Sequence[str], *, every: bool) -> list[RunningPrediction]:
        if not every and not task_ids:
            return []
        running = await asyncio.to_thread(self.statistics.running)
        wanted = set(task_ids)
        tasks = [task for task in running.values() if every or task.task_id in wanted]
        visible = await self.visible.models(caller, {task.model_id for task in tasks})
        return [task for task in tasks if task.model_id in visible]


def _model_profile(figures: ModelFigures | None) -> Json:
    """Return what is measured of a deployed model; durations in milliseconds."""
    profile: dict[str, Any] = {}
    if figures is None:
        return profile
    if figures.inference_durations:
        profile["model_inference_stats"] = summary(figures.inference_durations)
    if figures.request_durations:
        profile["predict_request_stats"] = summary(figures.request_durations)
        profile["throttled_request_count"] = figures.throttled
    return profile


def _task_view(task: RunningPrediction, node_id: str, now: tuple[int, float]) -> Json:
    """Return the task as ML Commons shows one; `now` in milliseconds since 1970, and by the task's clock."""
    millis, seconds = now
    started = round(millis - 1000 * (seconds - task.started))
    return {
        "task_id": task.task_id,
        "model_id": task.model_id,
        "task_type": "PREDICTION",
        "function_name": "REMOTE",
        "state": "RUNNING",
        "input_type": "REMOTE",
        "worker_node": [node_id],
        "create_time": started,
        "last_update_time": started,
        "is_async": False,
    }


def _node_view(node_id: str, server: str, models: Mapping[str, Json], tasks: Mapping[str, Json]) -> Json:
    nodes = {"target_worker_nodes": [node_id], "worker_nodes": [node_id]}
    profile: dict[str, Any] = {"server": server}
    if tasks:
        profile["tasks"] = tasks
    if models:
        profile["models"] = {model_id: {**_STATE, **nodes, **model} for model_id, model in models.items()}
    return {"nodes": {node_id: profile}}


def _model_view(node_id: str, server: str, models: Mapping[str, Json], tasks: Mapping[str, Json]) -> Json:
    nodes = {"target_worker_nodes": [node_id], "worker_nodes": [node_id]}
    profiles: dict[str, dict[str, Any]] = {
        model_id: {**nodes, "nodes": {node_id: {"server": server, **_STATE, **model}}}
        for model_id, model in models.items()
    }
    for task_id, task in tasks.items():
        profiles.setdefault(task["model_id"], {}).setdefault("tasks", {})[task_id] = task
    return {"models": profiles}


def summary(durations: Sequence[float]) -> dict[str, float]:
    """Return `{"count", "max", "min", "average", "p50", "p90", "p99"}` of one duration or more, in their unit."""
    ordered = sorted(durations)
    return {
        "count": len(ordered),
        "max": ordered[-1],
        "min": ordered[0],
        "average": sum(ordered) / len(ordered),
        **{f"p{percent}": _percentile(ordered, percent) for percent in _PERCENTILES},
    }


def _percentile(ordered: Sequence[float], percent: int) -> float:
    """Interpolate between the two values beside the percentile's place (as numpy's `linear` does)."""
    place = (len(ordered) - 1) * percent / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
