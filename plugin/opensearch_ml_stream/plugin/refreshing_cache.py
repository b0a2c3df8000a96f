"""RefreshingCache: a cache of values from the store, the cluster or a server, which are reloaded while they are used.

A value is reloaded in the background shortly before it is no longer fresh, so that callers need not wait. A caller that
finds a value which is no longer fresh waits for the load, but at most PATIENCE_SECONDS; if the source is slower, the
old value is used until it is stale.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import Generic, TypeVar

from opensearch_ml_stream.connectors.errors import MLStreamError, Unavailable

PATIENCE_SECONDS = 0.25
AHEAD = 0.8  # the part of the fresh time after which a value is reloaded
RETRY_SECONDS = 1.0  # between two loads of a value while the source does not respond

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class _Entry(Generic[V]):
    value: V
    loaded_at: float  # monotonic, as are all times here
    failed_at: float = float("-inf")  # when the source last did not respond


@dataclass(frozen=True, slots=True)
class _Load(Generic[V]):
    began: float
    task: asyncio.Task[V]


def one(value: object) -> int:
    """Return 1, the weight of each value if values are counted."""
    return 1


class RefreshingCache(Generic[K, V]):
    """Values by key, of at most the total weight `most`. Those that were loaded longest ago are dropped first.

    A value is used for `fresh_seconds` or, while its source does not respond (Unavailable), for `stale_seconds`.
    """

    def __init__(self, fresh_seconds: float, stale_seconds: float, most: int, weigh: Callable[[V], int] = one) -> None:
        self._fresh_seconds = fresh_seconds
        self._stale_seconds = stale_seconds
        self._most = most
        self._weigh = weigh
        self._weight = 0
        self._entries: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._loads: dict[K, _Load[V]] = {}  # in flight
        self._responds = True  # whether the last load ended in time and without Unavailable

    def __contains__(self, key: K) -> bool:
        """Return whether there is a value, stale or not."""
        return key in self._entries

    def held(self, key: K) -> V | None:
        """Return the value, stale or not; None if there is none."""
        entry = self._entries.get(key)
        return None if entry is None else entry.value

    def fresh(self, key: K) -> V | None:
        """Return the value if `get` would return it without a load, else None."""
        entry = self._entries.get(key)
        is_fresh = entry is not None and monotonic() - entry.loaded_at < self._fresh_seconds * AHEAD
        return entry.value if entry is not None and is_fresh else None

    def put(self, key: K, value: V) -> None:
        """Store a value that was loaded just now."""
        self._hold(key, value, monotonic())

    def forget(self, is_over: Callable[[K, V], bool]) -> None:
        """Drop the values for which `is_over` is true."""
        for key in [key for key, entry in self._entries.items() if is_over(key, entry.value)]:
            self._drop(key)

    def close(self) -> None:
        """Cancel the loads in flight."""
        for load in tuple(self._loads.values()):
            load.task.cancel()

    async def get(self, key: K, load: Callable[[], Awaitable[V]]) -> V:
        """Return the value, from `load` if there is none or it is stale.

        An error of `load` is raised and drops the value, except Unavailable, which keeps it.
        """
        now = monotonic()
        entry = self._entries.get(key)
        age = float("inf") if entry is None else now - entry.loaded_at
        if entry is None or age >= self._stale_seconds:
            return await asyncio.shield(self._start(key, load, now).task)  # others may wait for the load, too
        if age < self._fresh_seconds * AHEAD or now - entry.failed_at < min(RETRY_SECONDS, self._fresh_seconds):
            return entry.value
        loading = self._start(key, load, now)
        if age < self._fresh_seconds:
            return entry.value
        if await self._ended(loading, now):
            try:
                return loading.task.result()
            except Unavailable:
                pass
        return entry.value

    async def _ended(self, loading: _Load[V], now: float) -> bool:
        """Wait for the load for a limited time; return whether it has ended."""
        patience = loading.began + PATIENCE_SECONDS - now
        if self._responds and patience > 0:
            await asyncio.wait([loading.task], timeout=patience)
            self._responds = loading.task.done()
        return loading.task.done()

    def _start(self, key: K, load: Callable[[], Awaitable[V]], now: float) -> _Load[V]:
        """Return the load of the value that is in flight, or a new one."""
        loading = self._loads.get(key)
        if loading is None:
            loading = self._loads[key] = _Load(now, asyncio.create_task(self._load(key, load, now)))
            loading.task.add_done_callback(lambda done: self._end(key, done))
        return loading

    async def _load(self, key: K, load: Callable[[], Awaitable[V]], began: float) -> V:
        try:
            value = await load()
        except Unavailable:
            self._responds = False
            if (entry := self._entries.get(key)) is not None:
                entry.failed_at = monotonic()
            raise
        except MLStreamError:  # the old value is wrong now
            self._responds = True
            self._drop(key)
            raise
        self._responds = True
        self._hold(key, value, began)
        return value

    def _end(self, key: K, done: asyncio.Task[V]) -> None:
        del self._loads[key]
        if not done.cancelled():
            done.exception()  # retrieved, as nobody may be waiting any more

    def _hold(self, key: K, value: V, loaded_at: float) -> None:
        self._drop(key)
        self._entries[key] = _Entry(value, loaded_at)
        self._weight += self._weigh(value)
        while self._weight > self._most and len(self._entries) > 1:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: K) -> None:
        if (entry := self._entries.pop(key, None)) is not None:
            self._weight -= self._weigh(entry.value)


class RecentKeys(Generic[K]):
    """Keys that were added in the last `seconds`, at most `most`."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._added: OrderedDict[K, float] = OrderedDict()

    def add(self, key: K) -> None:
        """Add a key; if there are too many, drop the oldest."""
        self._added[key] = monotonic()
        self._added.move_to_end(key)
        if len(self._added) > self._most:
            self._added.popitem(last=False)

    def __contains__(self, key: K) -> bool:
        """Return whether the key was added in the last `seconds`."""
        added = self._added.get(key)
        return added is not None and monotonic() - added < self._seconds
