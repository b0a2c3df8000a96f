"""The node id in responses and tasks: one for all workers and replicas on the same store."""

import secrets
from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import Internal
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.plugin.store.made_once import made_once

NODE_DOCUMENT = "opensearch_ml_stream_node"
_ID_BYTES = 16  # 22 characters, as OpenSearch's own node ids


async def node_id(store: Store, clock: Clock) -> str:
    """Return the store's node id, made and stored by whoever needs it first; Internal if its document has none."""

    def make() -> Mapping[str, Any]:
        new_id = secrets.token_urlsafe(_ID_BYTES)
        return {"config_type": NODE_DOCUMENT, "ml_configuration": {"node_id": new_id}, "create_time": clock()}

    document = await made_once(store, Index.CONFIG, NODE_DOCUMENT, make)
    stored_id = document.source.get("ml_configuration", {}).get("node_id")
    if not isinstance(stored_id, str):
        raise Internal(f"The document {NODE_DOCUMENT} in {Index.CONFIG} has no ml_configuration.node_id; delete it")
    return stored_id
