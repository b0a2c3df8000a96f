"""The node id under which a sidecar installation appears: one for all workers and replicas on the same store."""

import secrets

from opensearch_ml_stream.connectors.errors import Conflict, Internal
from opensearch_ml_stream.plugin.registry.stored_documents import Clock
from opensearch_ml_stream.plugin.store import Index, Store

NODE_DOCUMENT = "opensearch_ml_stream_node"
_ID_BYTES = 16  # 22 characters, as OpenSearch's own node ids


async def node_id(store: Store, clock: Clock) -> str:
    """The id, made by whoever needs it first."""
    document = await store.get(Index.CONFIG, NODE_DOCUMENT)
    if document is None:
        made = secrets.token_urlsafe(_ID_BYTES)
        source = {
            "config_type": NODE_DOCUMENT,
            "ml_configuration": {"node_id": made},
            "create_time": clock(),
        }
        try:
            await store.create(Index.CONFIG, source, NODE_DOCUMENT)
        except Conflict:
            return await node_id(store, clock)
        return made
    found = document.source.get("ml_configuration", {}).get("node_id")
    if not isinstance(found, str):
        raise Internal(f"The document {NODE_DOCUMENT} in {Index.CONFIG} has no ml_configuration.node_id; delete it")
    return found
