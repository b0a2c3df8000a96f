"""Remembered values: loaded once for all who ask at the same time, and again when they are no longer fresh."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Generic, TypeVar

from opensearch_ml_stream.connectors.errors import MLStreamError, Unavailable

K = TypeVar("K")
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """Values by key, at most `most` of them.

    A value is used for `fresh_seconds`, and while loading it again raises Unavailable, for `stale_seconds`.
    """

    def __init__(self, fresh_seconds: float, stale_seconds: float, most: int) -> None:
        self._fresh_seconds = fresh_seconds
        self._stale_seconds = stale_seconds
        self._most = most
        self._values: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._loading: dict[K, asyncio.Task[V]] = {}

    def __contains__(self, key: K) -> bool:
        """Whether a value is held, in time or not."""
        return key in self._values

    def fresh(self, key: K) -> V | None:
        """Return the value that `get` would return without `load`, None if there is none."""
        known = self._values.get(key)
        return known[1] if known is not None and monotonic() - known[0] < self._fresh_seconds else None

    async def get(self, key: K, load: Callable[[], Awaitable[V]]) -> V:
        """Return the value, from `load` if it is not fresh; raise what `load` raises, after which none is held.

        After Unavailable alone the value is still held.
        """
        now = monotonic()
        known = self._values.get(key)
        if known is not None and now - known[0] < self._fresh_seconds:
            return known[1]
        task = self._loading.get(key)
        if task is None:
            task = self._loading[key] = asyncio.create_task(self._load(key, load))
            task.add_done_callback(lambda done: self._forget_task(key, done))
        try:
            return await asyncio.shield(task)  # one who leaves must not take the value from the others
        except Unavailable:
            if known is not None and now - known[0] < self._stale_seconds:
                return known[1]
            raise

    async def _load(self, key: K, load: Callable[[], Awaitable[V]]) -> V:
        began = monotonic()
        try:
            value = await load()
        except Unavailable:
            raise
        except MLStreamError:  # what was loaded before does not hold any more
            self._values.pop(key, None)
            raise
        self._values[key] = (began, value)
        self._values.move_to_end(key)
        if len(self._values) > self._most:
            self._values.popitem(last=False)
        return value

    def _forget_task(self, key: K, done: asyncio.Task[V]) -> None:
        del self._loading[key]
        if not done.cancelled():
            done.exception()  # looked at, as all who wait may have left


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
