"""The node id in responses and tasks, which all workers and replicas on one store share."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import Internal
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.store import Index, Store, get_or_create

NODE_DOCUMENT = "opensearch_ml_stream_node"
_ID_BYTES = 16  # 22 characters, as OpenSearch's own node ids
_ANY = frozenset({"_all", "_local"})


async def node_id(store: Store, clock: Clock) -> str:
    """Return the store's node id, created and stored at its first use; Internal if its document has none."""

    def make() -> Mapping[str, Any]:
        new_id = secrets.token_urlsafe(_ID_BYTES)
        return {"config_type": NODE_DOCUMENT, "ml_configuration": {"node_id": new_id}, "create_time": clock()}

    document = await get_or_create(store, Index.CONFIG, NODE_DOCUMENT, make)
    stored_id = document.source.get("ml_configuration", {}).get("node_id")
    if not isinstance(stored_id, str):
        raise Internal(f"The document {NODE_DOCUMENT} in {Index.CONFIG} has no ml_configuration.node_id; delete it")
    return stored_id


@dataclass(frozen=True, slots=True)
class ServerNode:
    """The node as this server shows it; `server` (`host:port`) tells it from others with the same node id."""

    store: Store
    clock: Clock
    server: str

    async def id_if_asked(self, node_ids: Sequence[str]) -> str | None:
        """Return the node's id; None if nodes are named and it is none of them."""
        node = await node_id(self.store, self.clock)
        return node if not node_ids or node in node_ids or not _ANY.isdisjoint(node_ids) else None
