"""The embedded store: one SQLite file that several worker processes share, or memory.

Calls run in three threads of the store, so that waiting for another process's lock never blocks the event loop: one for
documents, one for the sidecar's own searches, and one for callers' searches, which are counted and limited. The threads
do not wait for each other. Versions and sequence numbers count as in OpenSearch: `version` by document, `seq_no` by
index.
"""

import base64
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from typing import Any, TypeVar

import orjson

from opensearch_ml_stream.connectors.errors import Conflict, Internal, InvalidRequest, Throttled
from opensearch_ml_stream.plugin.store import ABSENT_SEQUENCE, Cluster, Document, Index, SecurityPlugin, Written
from opensearch_ml_stream.plugin.store.sqlite_connection import Database, DatabaseThread, read_within
from opensearch_ml_stream.plugin.store.sqlite_search import search
from opensearch_ml_stream.plugin.store.sqlite_search_bounds import MAX_STEPS, SearchWork

T = TypeVar("T")

_PRIMARY_TERM = 1
MAX_SEARCHES = 8  # of callers, that run or wait in one worker


class SQLiteStore:
    """A Store in one file; `path` may be `:memory:`, which lasts as long as the store is open.

    A search of a caller may take `max_search_steps`; see `sqlite_search_bounds`.
    """

    def __init__(self, path: str, index_prefix: str = "", max_search_steps: float = MAX_STEPS) -> None:
        database = Database(path)
        self._prefix = index_prefix
        self._max_search_steps = max_search_steps
        self._documents, self._searches, self._searches_of_callers = (
            DatabaseThread(database, f"sqlite-{name}") for name in ("documents", "searches", "callers")
        )
        self._open_searches = 0

    @property
    def cluster(self) -> Cluster | None:
        """Return None: no ML Commons can share a file."""
        return None

    @property
    def security(self) -> SecurityPlugin | None:
        """Return None: there is no cluster."""
        return None

    async def get(self, index: Index, id: str) -> Document | None:
        """Return the document, or None."""
        return await self._run(lambda db: _read(db, self._name(index), id))

    async def changed(self, index: Index, id: str, seq_no: int, primary_term: int) -> bool:
        """Whether the document was changed, deleted or created since that write."""
        query = "SELECT seq_no FROM documents WHERE index_name = ? AND id = ?"
        row = await self._run(lambda db: db.execute(query, (self._name(index), id)).fetchone())
        found = ABSENT_SEQUENCE if row is None else (row[0], _PRIMARY_TERM)
        return found != (seq_no, primary_term)

    async def create(self, index: Index, source: Mapping[str, Any], id: str | None = None) -> Written:
        """Store a new document; Conflict if the id is taken."""
        document_id = _new_id() if id is None else id

        def write(db: sqlite3.Connection) -> Written:
            if _read(db, self._name(index), document_id) is not None:
                raise Conflict(
                    f"[{document_id}]: version conflict, document already exists",
                    type="version_conflict_engine_exception",
                )
            return self._write(db, index, document_id, source, 0)

        return await self._run(write, writes=True)

    async def prepare(self, *indices: Index) -> None:
        """Do nothing: a file needs no indices."""

    async def put(
        self,
        index: Index,
        id: str,
        source: Mapping[str, Any],
        *,
        if_seq_no: int | None = None,
        if_primary_term: int | None = None,
    ) -> Written:
        """Store the document, replacing all of an older one; Conflict if it has changed since `if_seq_no`."""

        def write(db: sqlite3.Connection) -> Written:
            before = _read(db, self._name(index), id)
            if if_seq_no is not None:
                _check_unchanged(id, before, if_seq_no, if_primary_term)
            return self._write(db, index, id, source, before.version if before else 0)

        return await self._run(write, writes=True)

    async def delete(self, index: Index, id: str) -> Written:
        """Delete the document; the result is "not_found" if there is none."""

        def write(db: sqlite3.Connection) -> Written:
            before = _read(db, self._name(index), id)
            db.execute("DELETE FROM documents WHERE index_name = ? AND id = ?", (self._name(index), id))
            version, result = (before.version + 1, "deleted") if before else (1, "not_found")
            return self._written(index, id, version, result, _next_seq_no(db, self._name(index)))

        return await self._run(write, writes=True)

    async def search(self, index: Index, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return OpenSearch's response to a search body that `sqlite_search` supports."""
        return await self._searches.run(self._search(index, body, SearchWork()))

    async def search_for_caller(self, index: Index, body: Mapping[str, Any]) -> dict[str, Any]:
        """Search for a caller, in limited work; Throttled if MAX_SEARCHES run or wait already."""
        if self._open_searches >= MAX_SEARCHES:
            raise Throttled(
                f"{MAX_SEARCHES} searches run or wait in this worker already; send the request again later",
                type="rejected_execution_exception",
                retry_after="1",
            )
        self._open_searches += 1
        try:
            return await self._searches_of_callers.run(self._search(index, body, SearchWork(self._max_search_steps)))
        finally:
            self._open_searches -= 1

    def _search(
        self, index: Index, body: Mapping[str, Any], work: SearchWork
    ) -> Callable[[sqlite3.Connection], dict[str, Any]]:
        query = "SELECT id, source, version, seq_no FROM documents WHERE index_name = ? ORDER BY seq_no"
        name = self._name(index)

        def documents(rows: list[Any]) -> Iterator[Document]:
            work.allow_for(len(rows))
            for row in rows:
                work.spend_on_text(len(row[1]))
                yield _document(*row)

        return lambda db: search(index, name, documents(read_within(db, work, query, (name,))), body, work)

    async def ping(self) -> None:
        """Raise Unavailable if the file cannot be read."""
        await self._run(lambda db: db.execute("SELECT count(*) FROM sequences").fetchone())

    async def run_painless(self, source: str, params: Mapping[str, Any]) -> str | None:
        """Raise InvalidRequest: only OpenSearch can run scripts."""
        raise InvalidRequest(
            "Painless scripts are run by OpenSearch: the embedded store cannot. Use a built-in function "
            "(connector.pre_process.*, connector.post_process.*) or serve with --store http(s)://..."
        )

    async def percolate(self, index_name: str, document: Mapping[str, Any]) -> bool:
        """Raise InvalidRequest: only OpenSearch can percolate."""
        raise InvalidRequest(
            "Stop words are searched by OpenSearch: the embedded store cannot. Use the guardrail's regex or serve "
            "with --store http(s)://..."
        )

    async def index_statuses(self) -> None:
        """Return None: a file has no health."""

    async def close(self) -> None:
        """Close the connections and end the threads."""
        for thread in (self._documents, self._searches, self._searches_of_callers):
            await thread.close()

    def _name(self, index: Index) -> str:
        return f"{self._prefix}{index}"

    async def _run(self, call: Callable[[sqlite3.Connection], T], *, writes: bool = False) -> T:
        """Return the call's result; a write is one transaction."""
        return await self._documents.run(partial(_in_transaction, call) if writes else call)

    def _write(
        self, db: sqlite3.Connection, index: Index, id: str, source: Mapping[str, Any], version_before: int
    ) -> Written:
        seq_no = _next_seq_no(db, self._name(index))
        db.execute(
            "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?)",
            (self._name(index), id, orjson.dumps(source, default=float), version_before + 1, seq_no),
        )
        return self._written(index, id, version_before + 1, "updated" if version_before else "created", seq_no)

    def _written(self, index: Index, id: str, version: int, result: str, seq_no: int) -> Written:
        response = {
            "_index": self._name(index),
            "_id": id,
            "_version": version,
            "result": result,
            "forced_refresh": True,
            "_shards": {"total": 1, "successful": 1, "failed": 0},
            "_seq_no": seq_no,
            "_primary_term": _PRIMARY_TERM,
        }
        return Written(id, seq_no, _PRIMARY_TERM, response)


def _in_transaction(call: Callable[[sqlite3.Connection], T], db: sqlite3.Connection) -> T:
    """Run the call as one transaction, with the write lock acquired before anything is read."""
    db.execute("BEGIN IMMEDIATE")
    try:
        result = call(db)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # on some errors, of a full disk among them, SQLite has rolled back by itself
            db.execute("ROLLBACK")
        raise
    return result


def _read(db: sqlite3.Connection, name: str, id: str) -> Document | None:
    query = "SELECT id, source, version, seq_no FROM documents WHERE index_name = ? AND id = ?"
    with closing(db.execute(query, (name, id))) as rows:
        row = rows.fetchone()
    return None if row is None else _document(*row)


def _document(id: str, source: bytes, version: int, seq_no: int) -> Document:
    try:
        return Document(id, orjson.loads(source), version, seq_no, _PRIMARY_TERM)
    except orjson.JSONDecodeError:
        raise Internal(f"The document {id} in the embedded store is damaged; delete it, or restore a backup") from None


def _next_seq_no(db: sqlite3.Connection, name: str) -> int:
    query = (
        "INSERT INTO sequences VALUES (?, 1) "
        "ON CONFLICT (index_name) DO UPDATE SET next_seq_no = next_seq_no + 1 RETURNING next_seq_no - 1"
    )
    seq_no: int = db.execute(query, (name,)).fetchone()[0]
    return seq_no


def _check_unchanged(id: str, before: Document | None, seq_no: int, primary_term: int | None) -> None:
    if before is None or (before.seq_no, before.primary_term) != (seq_no, primary_term):
        raise Conflict(
            f"[{id}]: version conflict, the document has changed since it was read",
            type="version_conflict_engine_exception",
        )


def _new_id() -> str:
    """Return 20 characters of URL-safe base64, as OpenSearch's ids; they sort roughly by time of creation."""
    return base64.urlsafe_b64encode(int(time.time() * 1000).to_bytes(6, "big") + os.urandom(9)).decode("ascii")
