"""Servers on one store in virtual time, each with a folder of its own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opensearch_ml_stream.connectors.errors import Conflict, Unavailable
from opensearch_ml_stream.plugin.limits.shared_spending import SharedSpending
from opensearch_ml_stream.plugin.limits.spending_table import SpendingTable
from opensearch_ml_stream.plugin.store import Document, Index, Store, Written
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore

NOW = 1_000_000_040_000  # 20 s behind the full minute
END = 1_000_000_080_000


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


class FaultyStore(SQLiteStore):
    """A store that can be down, or in which others are quicker; it counts its reads and writes."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.is_down = False
        self.loses_responses = False
        self.conflicts = 0
        self.reads = 0
        self.writes = 0

    async def get(self, index: Index, id: str) -> Document | None:
        self.reads += 1
        self._respond()
        return await super().get(index, id)

    async def create(self, index: Index, source: Mapping[str, Any], id: str | None = None) -> Written:
        self._write_once()
        written = await super().create(index, source, id)
        if self.loses_responses:
            raise Unavailable("the connection broke")
        return written

    async def put(
        self,
        index: Index,
        id: str,
        source: Mapping[str, Any],
        *,
        if_seq_no: int | None = None,
        if_primary_term: int | None = None,
    ) -> Written:
        self._write_once()
        return await super().put(index, id, source, if_seq_no=if_seq_no, if_primary_term=if_primary_term)

    def _write_once(self) -> None:
        self.writes += 1
        self._respond()
        if self.conflicts:
            self.conflicts -= 1
            raise Conflict("another one was quicker")

    def _respond(self) -> None:
        if self.is_down:
            raise Unavailable("the store is down")


def server(folder: Path, store: Store, clock: Clock, name: str) -> SharedSpending:
    """One worker of the server of that name."""
    directory = folder / name
    directory.mkdir(exist_ok=True)
    return SharedSpending(SpendingTable(directory / "spending"), store, clock, name)
