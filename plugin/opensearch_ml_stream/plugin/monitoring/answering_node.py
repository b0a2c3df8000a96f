"""The node that answers: the store's node id, and the one server of all with that id whose numbers are shown."""

from collections.abc import Sequence
from dataclasses import dataclass

from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.registry.node_id import node_id
from opensearch_ml_stream.plugin.store import Store

_ANY = frozenset({"_all", "_local"})


@dataclass(frozen=True, slots=True)
class AnsweringNode:
    """`server` names this server (`host:port`) among those that share the store and its node id."""

    store: Store
    clock: Clock
    server: str

    async def id_if_asked(self, node_ids: Sequence[str]) -> str | None:
        """Return the node's id; None if nodes are named and it is none of them."""
        node = await node_id(self.store, self.clock)
        return node if not node_ids or node in node_ids or not _ANY.isdisjoint(node_ids) else None
