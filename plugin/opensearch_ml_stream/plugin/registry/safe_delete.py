"""Refuse to delete a model that is still used in the cluster: `plugins.ml_commons.safe_delete_model`."""

from collections.abc import Iterable, Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import Conflict
from opensearch_ml_stream.plugin.store import Cluster

_PIPELINE_KINDS = ("ingest", "search")


async def refuse_if_used(cluster: Cluster, model_id: str) -> None:
    """Raise Conflict, as ML Commons does, if a pipeline or an agent of the cluster calls the model."""
    for kind in _PIPELINE_KINDS:
        pipelines = await cluster.pipelines(kind)
        if using := [name for name, pipeline in pipelines.items() if _names_model(pipeline, model_id)]:
            raise _still_used(using, f"{kind} pipelines", "the pipelines first:")
    if agents := await cluster.agents_using(model_id):
        raise _still_used(agents, "agents", "the agents first, all visible agents are:")


def _still_used(users: Iterable[str], kind: str, first: str) -> Conflict:
    names = sorted(users)
    return Conflict(
        f"{len(names)} {kind} are still using this model, please delete or update {first} [{', '.join(names)}]"
    )


def _names_model(configuration: Any, model_id: str) -> bool:
    """Whether a `model_id`, at any depth, is that of the model."""
    waiting = [configuration]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            if part.get("model_id") == model_id:
                return True
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    return False
