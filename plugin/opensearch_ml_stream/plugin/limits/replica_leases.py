"""Count the servers that share the store by leases in it, so that each server takes its share of a limit.

Every server renews a document of its own every RENEW_SECONDS, and then reads all of them. It counts those that were
renewed within the last EXPIRED_AFTER reads: a renewal is seen by its sequence number, so that the clocks of hosts are
never compared. While the store cannot be read, no lease expires and the last count holds. One worker does this for its
server, the one that holds the lock of a file in the workers' folder; the others read the count from that file.
"""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from secrets import token_hex

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.shared.worker_files import append_zeros, locked, open_shared, try_to_lock
from opensearch_ml_stream.plugin.store import Index, Store

RENEW_SECONDS = 3.0
RETRY_SECONDS = 1.0  # while the store does not respond
TIMEOUT_SECONDS = 3.0  # of one renewal
READ_SECONDS = 1.0  # between two looks of the other workers at the count
FIRST_READ_SECONDS = 0.05
EXPIRED_AFTER = 4  # looks in a row that found a lease as it was
DELETED_AFTER = 40
LEAVE_SECONDS = 1.0  # for the store to delete the lease of a server that stops
_MAX_SERVERS = 1_000
_SERVED_MILLIS = 60_000  # many renewals: the clock of the server's host may be another one
_COUNT_SIZE = 4
_ID_LENGTH = 32
log = logging.getLogger(__name__)


def server_id(runtime: Path) -> str:
    """Return the id of the server whose workers share that folder; the first worker makes it.

    OSError if its file in the folder cannot be opened, locked or written.
    """
    with locked(runtime / "server-id") as file:
        id = os.pread(file, _ID_LENGTH, 0).decode()
        if len(id) != _ID_LENGTH:
            id = token_hex(_ID_LENGTH // 2)
            os.pwrite(file, id.encode(), 0)
        return id


class Replicas:
    """`count` is how many servers share the store, this one included; it is updated, and always 1 or more."""

    def __init__(self, count: int = 1) -> None:
        self.count = count


class Lease:
    """The lease of one server, by its id, and what it has read of the others."""

    def __init__(self, store: Store, now: Clock, server_id: str) -> None:
        self._store = store
        self._now = now
        self._server_id = server_id
        self._seen: dict[str, tuple[object, int]] = {}  # the last renewal of each, and how many looks found no other
        self.is_lost = False  # whether it could not be renewed last time

    async def renew(self) -> int:
        """Renew the lease, and return how many servers hold one now; an MLStreamError if the store does not respond."""
        try:
            source = {"host": socket.gethostname(), "renewed_time": self._now()}
            await self._store.put(Index.LEASE, self._server_id, source)
            await self._look()
        except BaseException:
            self._seen = {id: (renewal, 0) for id, (renewal, _) in self._seen.items()}
            raise
        for id in [id for id, (_, unchanged) in self._seen.items() if unchanged >= DELETED_AFTER]:
            await self._store.delete(Index.LEASE, id)
        return max(1, sum(unchanged < EXPIRED_AFTER for _, unchanged in self._seen.values()))

    async def leave(self) -> None:
        """Delete the lease, so that the other servers stop counting this one at once."""
        await self._store.delete(Index.LEASE, self._server_id)

    async def _look(self) -> None:
        found = await self._store.search(Index.LEASE, {"size": _MAX_SERVERS, "_source": False})
        seen: dict[str, tuple[object, int]] = {}
        for hit in found["hits"]["hits"]:
            renewal = (hit["_seq_no"], hit["_primary_term"])
            before, unchanged = self._seen.get(hit["_id"], (None, 0))
            seen[hit["_id"]] = (renewal, unchanged + 1 if renewal == before else 0)
        self._seen = seen


class SharedCount:
    """The file in which the workers of a server share the count of the one that holds the file's lock."""

    def __init__(self, runtime: Path) -> None:
        self._file = open_shared(runtime / "replicas")
        if not os.fstat(self._file).st_size:
            append_zeros(self._file, 0, _COUNT_SIZE)  # now, as a disk that is full later must not end the counting

    def acquire(self) -> bool:
        """Lock the file for as long as it is open; whether this worker holds the lock now."""
        return try_to_lock(self._file)

    def read(self) -> int:
        """Return the last count, 0 before the first one."""
        return int.from_bytes(os.pread(self._file, _COUNT_SIZE, 0))

    def write(self, count: int) -> None:
        """Write what `read` returns; only the worker that holds the lock may."""
        os.pwrite(self._file, count.to_bytes(_COUNT_SIZE), 0)

    def close(self) -> None:
        """Close the file, and let go of its lock."""
        os.close(self._file)


async def is_served(store: Store, now: int) -> bool:
    """Whether a server renewed its lease in the last minute; True if the store does not say."""
    try:
        found = await store.search(Index.LEASE, {"size": _MAX_SERVERS})
    except MLStreamError:
        return True
    times = [hit["_source"].get("renewed_time") for hit in found["hits"]["hits"]]
    return any(isinstance(time, int) and time > now - _SERVED_MILLIS for time in times)


@asynccontextmanager
async def counting_replicas(
    store: Store, runtime: Path, now: Clock, background: BackgroundTasks
) -> AsyncIterator[Replicas]:
    """Count the servers on the store while the block runs; `runtime` is the folder that the server's workers share.

    The block begins after the first count. If there is none within TIMEOUT_SECONDS, the server counts itself alone.
    """
    replicas = Replicas()
    counted = asyncio.Event()
    lease = Lease(store, now, server_id(runtime))
    holds_lock = False

    async def count() -> float:
        """Read the count of the worker that holds the lock; if none does, take the lock and count."""
        nonlocal holds_lock
        if not holds_lock:
            holds_lock = shared.acquire()
            if known := shared.read():
                replicas.count = known
            if not holds_lock:
                if known:
                    counted.set()
                return READ_SECONDS if known else FIRST_READ_SECONDS
        renewed = await _renew(lease, replicas)
        shared.write(replicas.count)
        counted.set()
        return RENEW_SECONDS if renewed else RETRY_SECONDS

    with closing(SharedCount(runtime)) as shared:
        try:
            async with background.running("replicas", count):
                with suppress(TimeoutError):
                    async with asyncio.timeout(TIMEOUT_SECONDS):
                        await counted.wait()
                yield replicas
        finally:
            if holds_lock:
                with suppress(MLStreamError, TimeoutError):
                    async with asyncio.timeout(LEAVE_SECONDS):
                        await lease.leave()


async def _renew(lease: Lease, replicas: Replicas) -> bool:
    """Renew the lease and set the count; return False, and keep the count, if the store does not respond."""
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            count = await lease.renew()
    except (MLStreamError, TimeoutError) as error:
        reason = error.reason if isinstance(error, MLStreamError) else f"no response within {TIMEOUT_SECONDS:g} s"
        if not lease.is_lost:
            log.warning(
                "The servers on this store cannot be counted; the last count, %d, stays in force: %s",
                replicas.count,
                reason,
            )
        lease.is_lost = True
        return False
    lease.is_lost = False
    if count != replicas.count:
        log.info("Servers on this store: %d; each has its part of the rate limits", count)
        replicas.count = count
    return True
