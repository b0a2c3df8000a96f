"""Where connectors, models, groups, tasks and settings live: one protocol, two implementations.

Index names are logical (`Index.MODEL`, ...); an implementation adds the prefix. Documents are in the shape of
ML Commons' indices (ml-commons contract, section 2).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class Index(StrEnum):
    """The names that ML Commons uses, and one of our own."""

    MODEL = ".plugins-ml-model"
    CONNECTOR = ".plugins-ml-connector"
    TASK = ".plugins-ml-task"
    MODEL_GROUP = ".plugins-ml-model-group"
    CONFIG = ".plugins-ml-config"
    DEPLOYMENT = ".plugins-ml-stream-deployment"  # deployed states, where a real ML Commons owns those in MODEL


@dataclass(frozen=True, slots=True)
class Document:
    """A stored document. `seq_no` and `primary_term` change with every write; pass them back to write safely."""

    id: str
    source: Mapping[str, Any]
    version: int
    seq_no: int
    primary_term: int


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome of a write as OpenSearch answers it, e.g. `{"_index", "_id", "_version", "result", ...}`."""

    id: str
    seq_no: int
    primary_term: int
    response: Mapping[str, Any]


class Store(Protocol):
    """Every method raises Unavailable (503) when the store does not answer, and waits until a write can be searched.

    `put` and `delete` with `if_seq_no`/`if_primary_term` raise Conflict (409) when the document has changed since.
    """

    async def get(self, index: Index, id: str) -> Document | None:
        """The document as of its last write (realtime), or None."""
        ...

    async def changed(self, index: Index, id: str, seq_no: int, primary_term: int) -> bool:
        """Whether the document is no longer the one of that write: changed or gone. Cheap: no source is sent."""
        ...

    async def create(self, index: Index, source: Mapping[str, Any], id: str | None = None) -> Written:
        """A new document, under an id that the store makes if none is given; Conflict if the id is taken."""
        ...

    async def put(
        self,
        index: Index,
        id: str,
        source: Mapping[str, Any],
        *,
        if_seq_no: int | None = None,
        if_primary_term: int | None = None,
    ) -> Written:
        """Replaces the whole document. `response["result"]` is "updated" (or "created")."""
        ...

    async def delete(self, index: Index, id: str) -> Written:
        """`response["result"]` is "deleted", or "not_found"."""
        ...

    async def search(self, index: Index, body: Mapping[str, Any]) -> dict[str, Any]:
        """OpenSearch's search response, hits with `_version`, `_seq_no`, `_primary_term`; empty if no such index."""
        ...

    async def ping(self) -> None:
        """Raises Unavailable if the store does not answer."""
        ...

    async def run_painless(self, source: str, params: Mapping[str, Any]) -> str | None:
        """The result of a Painless script as text; InvalidRequest where the store cannot run one."""
        ...

    async def percolate(self, index_name: str, document: Mapping[str, Any]) -> bool:
        """Whether a query that a user's index holds in its field `query` matches the document.

        InvalidRequest where the store cannot look, or the index is not one of queries; Unavailable if it is not there.
        """
        ...

    async def has_ml_commons(self) -> bool:
        """Whether a real ML Commons runs on this cluster (its sync-up job then owns the deployed states)."""
        ...

    async def close(self) -> None: ...
