"""Connections to the embedded store's file, which only this user may read: it holds the key of all credentials."""

import asyncio
import errno
import logging
import os
import secrets
import sqlite3
import stat
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.plugin.store.sqlite_search_bounds import SQLITE_STEPS, SearchWork

T = TypeVar("T")

_LOCK_WAIT_SECONDS = 5
_SCHEMA = """
CREATE TABLE IF NOT EXISTS documents (
    index_name TEXT NOT NULL,
    id TEXT NOT NULL,
    source BLOB NOT NULL,
    version INTEGER NOT NULL,
    seq_no INTEGER NOT NULL,
    PRIMARY KEY (index_name, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sequences (index_name TEXT PRIMARY KEY, next_seq_no INTEGER NOT NULL) WITHOUT ROWID;
"""
OWN_FOLDER = "opensearch-ml-stream"  # the name of the default store's folder, and of no other program's
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_SUFFIXES = ("", "-wal", "-shm")  # SQLite's own files beside the store
log = logging.getLogger(__name__)


class Database:
    """The file that all connections of a store share; `:memory:` is shared as a file is."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._name = f"file:/{secrets.token_hex(16)}?vfs=memdb" if path == ":memory:" else path
        self._file: tuple[int, int] | None = None  # device and inode, once it is open

    def connect(self) -> sqlite3.Connection:
        """Open a connection; the file is for this user alone, as it holds the master key."""
        self.check()
        if self.path != ":memory:":
            make_private(Path(self.path))
        db = sqlite3.connect(self._name, timeout=_LOCK_WAIT_SECONDS, isolation_level=None, uri=self.path == ":memory:")
        try:
            _switch_to_wal(db)
            db.execute("PRAGMA synchronous = FULL")  # what was acknowledged outlasts a loss of power, too
            db.executescript(_SCHEMA)
        except sqlite3.Error:
            db.close()
            raise
        if self._file is None:
            self._file = self._found()
        return db

    def check(self) -> None:
        """Raise Unavailable if the file at the path is not the one that was opened first."""
        if self._file is not None and self._found() != self._file:
            raise Unavailable(
                f"The embedded store {self.path} was removed or replaced while it was open, and what is written now "
                f"would be lost. Stop the sidecar, put the file in its place, delete {self.path}-wal and "
                f"{self.path}-shm, and start again"
            )

    def _found(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            return None
        return status.st_dev, status.st_ino


class DatabaseThread:
    """One connection, opened at its first call, and the thread that all its calls run in, one after the other."""

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._connection: sqlite3.Connection | None = None

    async def run(self, call: Callable[[sqlite3.Connection], T]) -> T:
        """Return the call's result. Unavailable if the file cannot be read or written, or no thread can be started."""
        try:
            running = asyncio.get_running_loop().run_in_executor(self._thread, self._call, call)
        except RuntimeError as error:
            raise Unavailable(f"The embedded store {self._database.path} cannot be asked now: {error}") from error
        return await running

    def _call(self, call: Callable[[sqlite3.Connection], T]) -> T:
        try:
            if self._connection is None:
                self._connection = self._database.connect()
            self._database.check()
            return call(self._connection)
        except (sqlite3.Error, OSError) as error:
            raise Unavailable(
                f"The embedded store {self._database.path} does not respond ({error}); check that the file and its "
                "folder can be read and written and that the disk is not full"
            ) from error

    async def close(self) -> None:
        """Close the connection and end the thread, after the calls that run."""

        def close() -> None:
            if self._connection is not None:
                self._connection.close()

        await asyncio.get_running_loop().run_in_executor(self._thread, close)
        self._thread.shutdown(wait=False)


def read_within(db: sqlite3.Connection, work: SearchWork, query: str, parameters: Sequence[object]) -> list[Any]:
    """Return a query's rows. InvalidRequest if SQLite takes more steps for them than the search may."""
    db.set_progress_handler(work.spend_in_sqlite, SQLITE_STEPS)
    try:
        return db.execute(query, parameters).fetchall()
    except sqlite3.OperationalError:
        if work.is_spent:
            raise work.too_much() from None
        raise
    finally:
        db.set_progress_handler(None, SQLITE_STEPS)


def _switch_to_wal(db: sqlite3.Connection) -> None:
    """Switch to write-ahead logging, trying again while the file is locked.

    SQLite's own lock timeout does not apply to this pragma, so workers that start at the same time would fail.
    """
    for _ in range(50):
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            time.sleep(0.02)
        else:
            return
    db.execute("PRAGMA journal_mode = WAL")


def make_private(path: Path) -> None:
    """Create the store's file if it is missing, and remove other users' rights to it and its folder.

    A folder with another name than the default one may belong to others too, and is left as it is. OSError if the file
    is missing and cannot be created, or may not be read and written; modes that cannot be changed are logged.

    An existing file is not opened: closing it would release all locks of SQLite's connections in this process, and the
    next process that disconnects would take its write-ahead log away from them.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    if not os.access(path, os.R_OK | os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    for suffix in _SUFFIXES:
        _close_to_others(path.with_name(path.name + suffix), 0o600)
    if path.parent.resolve().name == OWN_FOLDER:
        _close_to_others(path.parent, 0o700)


def _close_to_others(path: Path, mode: int) -> None:
    try:
        before = stat.S_IMODE(path.stat().st_mode)
        if not before & _OTHERS:
            return
        path.chmod(mode)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("Others may read %s, and its mode cannot be changed: %s", path, error.strerror)
        return
    log.warning("Others could read %s (mode %o): changed to %o. Change the credentials if they did", path, before, mode)
