"""Which stats a request asks for: by their names in its path, or by its body."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.registry.model_documents import FUNCTIONS
from opensearch_ml_stream.plugin.registry.stored_documents import Json, strings_of
from opensearch_ml_stream.plugin.statistics.request_counts import ACTIONS
from opensearch_ml_stream.plugin.store import Index

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


@dataclass(frozen=True, slots=True)
class StatSelection:
    """What is asked for, all in lower case; of all but `levels` an empty collection stands for everything."""

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
        """Whether something of the nodes is asked for, as it also is where no level is named."""
        return not self.levels or set(self.levels) != {"cluster"}

    @property
    def has_algorithms(self) -> bool:
        """Whether what was done by all models together is asked for."""
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
