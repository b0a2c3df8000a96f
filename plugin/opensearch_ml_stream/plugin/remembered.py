"""Remembered values: whoever asks for a known one does not wait for the store, or for the cluster, to say it again.

A value is asked for again beside its use, shortly before it is no longer fresh, so that it stays fresh while it is
used. Who comes after a silence waits for the answer, but no longer than PATIENCE_SECONDS, and not at all once the
source has let others wait that long: then the value holds until it is stale.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import Generic, TypeVar

from opensearch_ml_stream.connectors.errors import MLStreamError, Unavailable

PATIENCE_SECONDS = 0.25
AHEAD = 0.8  # of the time in which a value is fresh: then it is asked for again
RETRY_SECONDS = 1.0  # between two questions for one value, while the source does not respond

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class _Value(Generic[V]):
    value: V
    loaded_at: float  # monotonic, as are all times here
    failed_at: float = float("-inf")  # when the last question for it was not answered


@dataclass(frozen=True, slots=True)
class _Question(Generic[V]):
    began: float
    task: asyncio.Task[V]


def one(value: object) -> int:
    """Return the weight of a value where they are counted."""
    return 1


class Remembered(Generic[K, V]):
    """Values by key, which weigh at most `most` together: those that were loaded longest ago make room.

    A value is used for `fresh_seconds`, and while its source does not respond (Unavailable), for `stale_seconds`.
    """

    def __init__(self, fresh_seconds: float, stale_seconds: float, most: int, weigh: Callable[[V], int] = one) -> None:
        self._fresh_seconds = fresh_seconds
        self._stale_seconds = stale_seconds
        self._most = most
        self._weigh = weigh
        self._weight = 0
        self._values: OrderedDict[K, _Value[V]] = OrderedDict()
        self._questions: dict[K, _Question[V]] = {}
        self._responds = True  # whether the last question of all was answered, and in time

    def __contains__(self, key: K) -> bool:
        """Whether a value is held, in time or not."""
        return key in self._values

    def held(self, key: K) -> V | None:
        """Return the value, in time or not; None if there is none."""
        known = self._values.get(key)
        return None if known is None else known.value

    def fresh(self, key: K) -> V | None:
        """Return the value that `get` would return without `load`, None if there is none."""
        known = self._values.get(key)
        is_fresh = known is not None and monotonic() - known.loaded_at < self._fresh_seconds * AHEAD
        return known.value if known is not None and is_fresh else None

    def forget(self, is_over: Callable[[K, V], bool]) -> None:
        """Forget the values of which that is true."""
        for key in [key for key, known in self._values.items() if is_over(key, known.value)]:
            self._drop(key)

    async def get(self, key: K, load: Callable[[], Awaitable[V]]) -> V:
        """Return the value, from `load` if none is in time; raise what `load` raises, after which none is held.

        After Unavailable alone the value is still held.
        """
        now = monotonic()
        known = self._values.get(key)
        age = float("inf") if known is None else now - known.loaded_at
        if known is None or age >= self._stale_seconds:
            return await asyncio.shield(self._ask(key, load, now).task)  # one who leaves must not take it from others
        if age < self._fresh_seconds * AHEAD or now - known.failed_at < min(RETRY_SECONDS, self._fresh_seconds):
            return known.value
        question = self._ask(key, load, now)
        if age < self._fresh_seconds:
            return known.value
        if await self._answered(question, now):
            try:
                return question.task.result()
            except Unavailable:
                pass
        return known.value

    async def _answered(self, question: _Question[V], now: float) -> bool:
        """Wait as long as is worth it; whether there is an answer."""
        patience = question.began + PATIENCE_SECONDS - now
        if self._responds and patience > 0:
            await asyncio.wait([question.task], timeout=patience)
            self._responds = question.task.done()
        return question.task.done()

    def _ask(self, key: K, load: Callable[[], Awaitable[V]], now: float) -> _Question[V]:
        """Return the question for the value that is under way, or a new one."""
        question = self._questions.get(key)
        if question is None:
            question = self._questions[key] = _Question(now, asyncio.create_task(self._load(key, load, now)))
            question.task.add_done_callback(lambda done: self._forget_question(key, done))
        return question

    async def _load(self, key: K, load: Callable[[], Awaitable[V]], began: float) -> V:
        try:
            value = await load()
        except Unavailable:
            self._responds = False
            if (known := self._values.get(key)) is not None:
                known.failed_at = monotonic()
            raise
        except MLStreamError:  # what was loaded before does not hold any more
            self._responds = True
            self._drop(key)
            raise
        self._responds = True
        self._drop(key)
        self._values[key] = _Value(value, began)
        self._weight += self._weigh(value)
        while self._weight > self._most and len(self._values) > 1:
            self._drop(next(iter(self._values)))
        return value

    def _drop(self, key: K) -> None:
        if (known := self._values.pop(key, None)) is not None:
            self._weight -= self._weigh(known.value)

    def _forget_question(self, key: K, done: asyncio.Task[V]) -> None:
        del self._questions[key]
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
