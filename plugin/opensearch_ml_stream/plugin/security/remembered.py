"""Remembered values: loaded once for all who ask at the same time, and again when they are no longer fresh."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Generic, TypeVar

from opensearch_ml_stream.connectors.errors import Unavailable

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

    async def get(self, key: K, load: Callable[[], Awaitable[V]]) -> V:
        """Return the value, from `load` if it is not fresh; raise what `load` raises."""
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
        value = await load()
        self._values[key] = (began, value)
        self._values.move_to_end(key)
        if len(self._values) > self._most:
            self._values.popitem(last=False)
        return value

    def _forget_task(self, key: K, done: asyncio.Task[V]) -> None:
        del self._loading[key]
        if not done.cancelled():
            done.exception()  # looked at, as all who wait may have left
