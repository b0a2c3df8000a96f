"""The `_sidecar` settings of models, in an index of our own: ML Commons' documents have no field for them.

A model without settings has no document there.
"""

from typing import Any

from opensearch_ml_stream.connectors.documents import read_connector
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.model_options import ModelOptions, read_sidecar_settings
from opensearch_ml_stream.connectors.predict.merged_calls import find_merging
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.registry.stored_documents import Json, object_of
from opensearch_ml_stream.plugin.store import Index, Store

MEMBER = "_sidecar"


async def changed_settings(
    store: Store, model_id: str | None, body: Json, options: ModelOptions
) -> dict[str, Any] | None:
    """Return the settings of a model after a request, None if its body has no `_sidecar`; `model_id` None if it is new.

    Each member of `_sidecar` replaces the stored one, null removes it; a `_sidecar` that is null removes all.
    InvalidRequest names what is wrong.
    """
    if MEMBER not in body:
        return None
    changes = object_of(body, MEMBER)
    stored = {} if model_id is None or changes is None else await stored_settings(store, model_id)
    settings = {name: value for name, value in {**stored, **(changes or {})}.items() if value is not None}
    if model_id in read_sidecar_settings(settings, options).fallback_model_ids:
        raise InvalidRequest("A model cannot be in its own _sidecar.fallback_model_ids")
    return settings


def unused_setting_warnings(settings: Json | None, connector: Json) -> list[str]:
    """Return warnings about settings that have no effect with the model's connector."""
    if not settings or "batching" not in settings:
        return []
    try:
        read = read_connector(connector)
        if find_merging(read, read.action(), {}) is not None:
            return []
    except InvalidRequest:  # of which its calls say what is wrong
        return []
    return [
        f"[{MEMBER}.batching] has no effect: the connector's predictions do not send a list of texts for embeddings"
    ]


async def stored_settings(store: Store, model_id: str) -> Json:
    """Return the settings of a model as they were given, {} without any."""
    document = await store.get(Index.MODEL_SETTINGS, model_id)
    return {} if document is None else document.source["settings"]


async def put_settings(store: Store, clock: Clock, model_id: str, settings: Json | None) -> None:
    """Store what `changed_settings` returned; None changes nothing."""
    if settings:
        source = {"settings": settings, "last_updated_time": clock()}
        await store.put(Index.MODEL_SETTINGS, model_id, source)
    elif settings is not None:
        await store.delete(Index.MODEL_SETTINGS, model_id)
