"""RefreshingCache: values of the store, the cluster or a server that are loaded again while they are used.

A value is loaded again beside its use, shortly before it is no longer fresh, so that it stays fresh while it is used.
Who comes after a silence waits for the load, but no longer than PATIENCE_SECONDS, and not at all once the source has
let others wait that long: then the value holds until it is stale.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import Generic, TypeVar

from opensearch_ml_stream.connectors.errors import MLStreamError, Unavailable

PATIENCE_SECONDS = 0.25
AHEAD = 0.8  # of the time in which a value is fresh: then it is loaded again
RETRY_SECONDS = 1.0  # between two loads of one value, while the source does not respond

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
    """Return the weight of a value where they are counted."""
    return 1


class RefreshingCache(Generic[K, V]):
    """Values by key, which weigh at most `most` together: those that were loaded longest ago make room.

    A value is used for `fresh_seconds`, and while its source does not respond (Unavailable), for `stale_seconds`.
    """

    def __init__(self, fresh_seconds: float, stale_seconds: float, most: int, weigh: Callable[[V], int] = one) -> None:
        self._fresh_seconds = fresh_seconds
        self._stale_seconds = stale_seconds
        self._most = most
        self._weigh = weigh
        self._weight = 0
        self._entries: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._loads: dict[K, _Load[V]] = {}  # in flight
        self._responds = True  # whether the last load of all has ended in time, and not by Unavailable

    def __contains__(self, key: K) -> bool:
        """Whether a value is held, in time or not."""
        return key in self._entries

    def held(self, key: K) -> V | None:
        """Return the value, in time or not; None if there is none."""
        entry = self._entries.get(key)
        return None if entry is None else entry.value

    def fresh(self, key: K) -> V | None:
        """Return the value that `get` would return without `load`, None if there is none."""
        entry = self._entries.get(key)
        is_fresh = entry is not None and monotonic() - entry.loaded_at < self._fresh_seconds * AHEAD
        return entry.value if entry is not None and is_fresh else None

    def put(self, key: K, value: V) -> None:
        """Hold a value that was loaded just now, in place of any other."""
        self._hold(key, value, monotonic())

    def forget(self, is_over: Callable[[K, V], bool]) -> None:
        """Forget the values of which that is true."""
        for key in [key for key, entry in self._entries.items() if is_over(key, entry.value)]:
            self._drop(key)

    def close(self) -> None:
        """Cancel the loads in flight."""
        for load in tuple(self._loads.values()):
            load.task.cancel()

    async def get(self, key: K, load: Callable[[], Awaitable[V]]) -> V:
        """Return the value, from `load` if none is in time; raise what `load` raises, after which none is held.

        After Unavailable alone the value is still held.
        """
        now = monotonic()
        entry = self._entries.get(key)
        age = float("inf") if entry is None else now - entry.loaded_at
        if entry is None or age >= self._stale_seconds:
            return await asyncio.shield(self._start(key, load, now).task)  # one who leaves must not take it from others
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
        """Wait as long as is worth it; return whether the load has ended."""
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
        except MLStreamError:  # what was loaded before does not hold any more
            self._responds = True
            self._drop(key)
            raise
        self._responds = True
        self._hold(key, value, began)
        return value

    def _end(self, key: K, done: asyncio.Task[V]) -> None:
        del self._loads[key]
        if not done.cancelled():
            done.exception()  # looked at, as all who wait may have left

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
    """Keys that were added in the last `seconds`, at most `most` of them."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._added: OrderedDict[K, float] = OrderedDict()

    def add(self, key: K) -> None:
        """Add a key; the one that was added longest ago makes room."""
        self._added[key] = monotonic()
        self._added.move_to_end(key)
        if len(self._added) > self._most:
            self._added.popitem(last=False)

    def __contains__(self, key: K) -> bool:
        """Whether the key was added in time."""
        added = self._added.get(key)
        return added is not None and monotonic() - added < self._seconds
