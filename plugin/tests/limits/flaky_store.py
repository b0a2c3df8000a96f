"""A host's way to a store that several hosts share, which can be cut."""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.plugin.store import Index, Written
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore


class FlakyStore(SQLiteStore):
    """Raises Unavailable while it is down, for writes or for searches alone."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.down_for_writes = self.down_for_searches = False
        self.refused = 0

    def set_down(self, down: bool) -> None:
        self.down_for_writes = self.down_for_searches = down

    async def put(self, index: Index, id: str, source: Mapping[str, Any], **conditions: Any) -> Written:
        if self.down_for_writes:
            self.refused += 1
            raise Unavailable("down")
        return await super().put(index, id, source, **conditions)

    async def search(self, index: Index, body: Mapping[str, Any]) -> dict[str, Any]:
        if self.down_for_searches:
            raise Unavailable("down")
        return await super().search(index, body)
