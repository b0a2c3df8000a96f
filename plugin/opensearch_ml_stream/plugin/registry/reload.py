"""Have ML Commons on the cluster take over a change of a model that it holds in memory."""

import asyncio
from collections.abc import Iterable

from opensearch_ml_stream.connectors.errors import MLStreamError, Unavailable
from opensearch_ml_stream.plugin.registry.deployment_state_store import is_deployed
from opensearch_ml_stream.plugin.registry.stored_documents import Json, existing_model
from opensearch_ml_stream.plugin.store import Store

DEPLOY_SECONDS = 5.0
LOOK_SECONDS = 0.05

# What ML Commons holds of a deployed model, and reads again at a PUT of its own.
_HELD = frozenset({"connector", "connector_id", "is_enabled", "guardrails", "interface", "rate_limiter"})


async def reload_in_ml_commons(store: Store, model_id: str, source: Json, written: Iterable[str]) -> None:
    """Undeploy and deploy the model in ML Commons, if it has it deployed and holds one of the fields `written`.

    `source` is the model as it was stored before. Unavailable if ML Commons does not do so: the change is stored, and
    in force in the sidecar alone.
    """
    if store.cluster is None or _HELD.isdisjoint(written) or not is_deployed(source):
        return
    try:
        if await store.cluster.undeploy(model_id) and await store.cluster.deploy(model_id):
            async with asyncio.timeout(DEPLOY_SECONDS):
                await _deployed_again(store, model_id, source)
    except (MLStreamError, TimeoutError) as error:
        why = error.reason if isinstance(error, MLStreamError) else f"It has not deployed it in {DEPLOY_SECONDS:g} s."
        raise Unavailable(
            "The model is changed here, but ML Commons on the cluster may go on with it as it was; send the same "
            f"again, or undeploy it there. {why}"
        ) from None


async def _deployed_again(store: Store, model_id: str, before: Json) -> None:
    """Wait until the document says that ML Commons has deployed the model since: it responds before it has."""
    while True:
        source = (await existing_model(store, model_id)).source
        if is_deployed(source) and source.get("last_deployed_time") != before.get("last_deployed_time"):
            return
        await asyncio.sleep(LOOK_SECONDS)
