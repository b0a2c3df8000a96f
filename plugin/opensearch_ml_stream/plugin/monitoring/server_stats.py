"""The stats use case: what the store holds, and how often this server and each of its models were called."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.monitoring.statistics import ACTIONS, ActionCount, ModelFigures, Statistics
from opensearch_ml_stream.plugin.registry.deployment_state_store import DeploymentStateStore
from opensearch_ml_stream.plugin.registry.document_access import VisibleDocuments
from opensearch_ml_stream.plugin.registry.model_documents import FUNCTIONS
from opensearch_ml_stream.plugin.registry.node import ServerNode
from opensearch_ml_stream.plugin.registry.stored_documents import MAX_FOUND, Json, strings_of
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import Caller

MODEL_COUNT = "ml_model_count"
CONNECTOR_COUNT = "ml_connector_count"
INDEX_STATUSES = {
    "ml_model_index_status": Index.MODEL,
    "ml_connector_index_status": Index.CONNECTOR,
    "ml_config_index_status": Index.CONFIG,
    "ml_task_index_status": Index.TASK,
    "ml_controller_index_status": Index.CONTROLLER,
}
CLUSTER_STATS = (*INDEX_STATUSES, MODEL_COUNT, CONNECTOR_COUNT)
NODE_STATS = (
    "ml_executing_task_count", "ml_request_count", "ml_failure_count", "ml_deployed_model_count",
    "ml_circuit_breaker_trigger_count", "ml_jvm_heap_usage",
)  # fmt: skip
ACTION_STATS = ("ml_action_request_count", "ml_action_failure_count")

_LEVELS = ("cluster", "node", "algorithm", "action", "model")
_OTHER_ACTION_STATS = ("ml_action_executing_task_count",)  # of ML Commons; no remote model has it
_OTHER_ACTIONS = ("train", "train_predict", "execute")
_ALGORITHMS = frozenset({"remote", *(name.lower() for name in FUNCTIONS)})
_NOT_A_CHUNK: Json = {"bool": {"must_not": [{"exists": {"field": "chunk_number"}}]}}  # of a local model's content
_MISSING = "non-existent"  # ML Commons' status of an index that there is not yet


@dataclass(frozen=True, slots=True)
class StatSelection:
    """The selected stats, all in lower case; except for `levels`, an empty collection selects everything."""

    levels: Collection[str] = _LEVELS
    cluster_stats: Collection[str] = ()
    node_stats: Collection[str] = ()
    action_stats: Collection[str] = ()
    node_ids: Sequence[str] = ()
    algorithms: Collection[str] = ()
    actions: Collection[str] = ()
    models: Collection[str] = ()

    @property
    def has_nodes(self) -> bool:
        """Whether stats of the nodes are selected, as they are without any level."""
        return not self.levels or set(self.levels) != {"cluster"}

    @property
    def has_algorithms(self) -> bool:
        """Whether the counts of all models together are selected."""
        asked = "algorithm" in self.levels or "action" in self.levels
        return asked and (not self.algorithms or "remote" in self.algorithms)


def select_by_name(names: Sequence[str], node_ids: Sequence[str]) -> StatSelection:
    """Return the selection of stats of cluster and nodes by their names, in any case; of everything for none."""
    if not names:
        return StatSelection(node_ids=node_ids)
    lower = [name.lower() for name in names]
    of_nodes = {name for name in lower if name in NODE_STATS}
    of_cluster = set(lower) - of_nodes
    _check(of_cluster, CLUSTER_STATS, "Wrong ML cluster level stat")
    levels = (["cluster"] if of_cluster else []) + (["node"] if of_nodes else [])
    return StatSelection(levels, of_cluster, of_nodes, node_ids=node_ids)


def select_by_body(body: Json) -> StatSelection:
    """Return what a request's body selects; InvalidRequest, in ML Commons' words, for names that it does not know."""

    def names(field: str, known: Collection[str], wrong: str) -> set[str]:
        found = {name.lower() for name in strings_of(body, field) or []}
        _check(found, known, wrong)
        return found

    return StatSelection(
        names("target_stat_levels", _LEVELS, "Wrong ML stat level"),
        names("cluster_level_stats", CLUSTER_STATS, "Wrong ML cluster level stat"),
        names("node_level_stats", NODE_STATS, "Wrong ML node level stat"),
        names("action_level_stats", (*ACTION_STATS, *_OTHER_ACTION_STATS), "Wrong ML action level stat"),
        strings_of(body, "node_ids") or [],
        names("algorithms", _ALGORITHMS, "Wrong function name"),
        names("actions", (*ACTIONS, *_OTHER_ACTIONS), "Wrong action name"),
        set(strings_of(body, "models") or []),
    )


def _check(names: Collection[str], known: Collection[str], wrong: str) -> None:
    for name in sorted(names):
        if name not in known:
            raise InvalidRequest(f"{wrong} [{name}]; known are {', '.join(sorted(known))}")


@dataclass(frozen=True, slots=True)
class ServerStats:
    """The stats use case, over the store and this server's statistics.

    All numbers, also those of the server, only count models and connectors that the caller may see.
    """

    store: Store
    states: DeploymentStateStore
    statistics: Statistics
    node: ServerNode
    visible: VisibleDocuments

    async def named(self, caller: Caller, names: Sequence[str], node_ids: Sequence[str]) -> Json:
        """Return the stats of these names, all for none; InvalidRequest for a name that is no stat's."""
        return await self._get(caller, select_by_name(names, node_ids))

    async def selected(self, caller: Caller, body: Json) -> Json:
        """Return the stats that the body selects: `target_stat_levels`, and names, ids and actions at each level."""
        return await self._get(caller, select_by_body(body))

    async def _get(self, caller: Caller, selection: StatSelection) -> Json:
        stats = await self._cluster_stats(caller, selection) if "cluster" in selection.levels else {}
        node_id = await self.node.id_if_asked(selection.node_ids) if selection.has_nodes else None
        if node_id is not None and (node_stats := await self._node_stats(caller, selection)):
            stats["nodes"] = {node_id: {"server": self.node.server, **node_stats}}
        return stats

    async def _cluster_stats(self, caller: Caller, selection: StatSelection) -> dict[str, Any]:
        wanted = selection.cluster_stats or CLUSTER_STATS
        stats: dict[str, Any] = {}
        if any(name in wanted for name in INDEX_STATUSES):
            statuses = await self.store.index_statuses()
            if statuses is not None:
                stats |= {
                    name: statuses.get(index, _MISSING) for name, index in INDEX_STATUSES.items() if name in wanted
                }
        if MODEL_COUNT in wanted:
            stats[MODEL_COUNT] = await self._document_count(caller, Index.MODEL, _NOT_A_CHUNK)
        if CONNECTOR_COUNT in wanted:
            stats[CONNECTOR_COUNT] = await self._document_count(caller, Index.CONNECTOR, {"match_all": {}})
        return stats

    async def _document_count(self, caller: Caller, index: Index, query: Json) -> int:
        visible = await self.visible.query(caller, index)
        counted = query if visible is None else {"bool": {"filter": [query, visible]}}
        response = await self.store.search(index, {"query": counted, "size": 0, "track_total_hits": True})
        count: int = response["hits"]["total"]["value"]
        return count

    async def _node_stats(self, caller: Caller, selection: StatSelection) -> Json:
        called = await self._models(caller)
        counts = await self._counts(caller, called)
        stats: dict[str, Any] = {}
        if "node" in selection.levels:
            numbers = await self._numbers(caller, counts)
            names = selection.node_stats or NODE_STATS
            stats |= {name: number for name, number in numbers.items() if name in names}
        done = _action_view(counts, selection) if selection.has_algorithms else {}
        wanted = selection.models
        figures = {id: of_model for id, of_model in called.items() if not wanted or id in wanted}
        views = {model_id: _action_view(of_model.actions, selection) for model_id, of_model in figures.items()}
        models = {model_id: view for model_id, view in views.items() if view}
        if not stats and not done and not models:
            return {}
        return {**stats, "algorithms": {"remote": done} if done else {}, "models": models}

    async def _counts(self, caller: Caller, called: Mapping[str, ModelFigures]) -> Mapping[str, ActionCount]:
        """Return the server's counts; for a caller who may not see every model, the sum of those that they may see."""
        if self.visible.shows_all(caller, Index.MODEL):
            return await asyncio.to_thread(self.statistics.counts)
        return _sums(figures.actions for figures in called.values())

    async def _numbers(self, caller: Caller, counts: Mapping[str, ActionCount]) -> Mapping[str, int]:
        running = [task.model_id for task in (await asyncio.to_thread(self.statistics.running)).values()]
        running_visible = await self.visible.models(caller, set(running))
        return {
            "ml_executing_task_count": sum(model_id in running_visible for model_id in running),
            "ml_request_count": sum(count.requests for count in counts.values()),
            "ml_failure_count": sum(count.failures for count in counts.values()),
            "ml_deployed_model_count": len(await self.visible.models(caller, await self.states.deployed())),
            "ml_circuit_breaker_trigger_count": 0,  # there is none; in ML Commons it spares remote models
        }

    async def _models(self, caller: Caller) -> dict[str, ModelFigures]:
        """Return the models that were called, are still stored, and that the caller may see.

        Statistics of models that were deleted elsewhere are removed when a caller asks who may see all models.
        """
        models = await asyncio.to_thread(self.statistics.models)
        if not self.visible.shows_all(caller, Index.MODEL):
            visible = await self.visible.models(caller, models)
            return {model_id: figures for model_id, figures in models.items() if model_id in visible}
        ids = list(models)
        for start in range(0, len(ids), MAX_FOUND):
            part = ids[start : start + MAX_FOUND]
            body = {"query": {"ids": {"values": part}}, "size": MAX_FOUND, "_source": False}
            hits = (await self.store.search(Index.MODEL, body))["hits"]["hits"]
            for model_id in set(part) - {hit["_id"] for hit in hits}:
                del models[model_id]
                self.statistics.forget(model_id)
        return models


def _sums(of_models: Iterable[Mapping[str, ActionCount]]) -> dict[str, ActionCount]:
    """Return the counts of some models together, by action."""
    sums: dict[str, ActionCount] = {}
    for counts in of_models:
        for action, count in counts.items():
            before = sums.get(action, ActionCount(0, 0))
            sums[action] = ActionCount(before.requests + count.requests, before.failures + count.failures)
    return sums


def _action_view(counts: Mapping[str, ActionCount], selection: StatSelection) -> Json:
    """Return the counts by action, those that are 0 left out as in ML Commons."""
    view: dict[str, Json] = {}
    for action, count in counts.items():
        numbers = dict(zip(ACTION_STATS, (count.requests, count.failures), strict=True))
        shown = {name: number for name, number in numbers.items() if number and _has(selection.action_stats, name)}
        if shown and _has(selection.actions, action):
            view[action] = shown
    return view


def _has(names: Collection[str], name: str) -> bool:
    return not names or name in names
