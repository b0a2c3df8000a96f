"""Spending of all servers on one store: each writes its own to a document every second, and reads the others'.

There is one document for each counter and window. A server's entry in it holds all that it has spent in the window, so
that a write may be repeated. Calls do not wait for these writes, and wait for a read only of a counter that this server
has not used for some seconds. While the store does not respond, the last known spending of others holds. Only the sums
in a document are indexed, for operators. An operator who deletes a document resets its spending.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import Conflict, MLStreamError
from opensearch_ml_stream.connectors.token_spending import Amount
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.limits.spending_table import Counter, Spending, SpendingTable
from opensearch_ml_stream.plugin.store import Document, Index, Store

MAX_SERVERS = 100  # with entries of their own; more have started in one window only if they keep ending
ENDED = ""  # the entry of servers that seem to have ended: it cannot be a server's name

_ENDED_MILLIS = 3_600_000  # without a write
_MIN_KEPT_MILLIS = 3_600_000  # of a document, after its window
_MAX_USER_CHARS = 512
EXCHANGE_SECONDS = 1.0
FRESH_MILLIS = 3_000  # what is known of others for longer is read again before a call
READ_TIMEOUT_SECONDS = 0.8
_OTHER_WORKER_MILLIS = 700  # since which another worker of this server has exchanged the counter
_USED_MILLIS = 10_000  # since which a counter was used that is exchanged every second
_SILENT_MILLIS = 5_000  # for which a store that did not respond is not asked again before a call
_AT_ONCE = 8
_ATTEMPTS = 3
_LAST_EXCHANGE_SECONDS = 2.0
_SWEEP_MILLIS = 600_000
_SWEPT_AT_ONCE = 1_000
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entry:
    """What a server has spent in the window, and when it was written (milliseconds since 1970)."""

    amount: Amount
    written_at: int


def document_id(counter: Counter, window_end: int) -> str:
    """Return the id of the document."""
    return f"{counter.key}-{window_end - 1000 * counter.window_seconds}"


def read_entries(document: Document | None) -> dict[str, Entry]:
    """Return the entries by server; none without a document."""
    servers: Mapping[str, Mapping[str, Any]] = {} if document is None else document.source.get("servers", {})
    return {
        name: Entry(Amount(float(entry["tokens"]), float(entry["cost"])), int(entry["written_at"]))
        for name, entry in servers.items()
    }


def document_source(counter: Counter, window_end: int, entries: Mapping[str, Entry], now: int) -> dict[str, Any]:
    """Return the document with these entries; if there are more than MAX_SERVERS, ended servers share one entry."""
    if len(entries) > MAX_SERVERS:
        entries = _with_ended_as_one(entries, now)
    total = sum_of(entries.values())
    length = 1000 * counter.window_seconds
    return {
        "model_id": counter.model_id,
        **({} if counter.user is None else {"user": counter.user[:_MAX_USER_CHARS]}),
        "window_seconds": counter.window_seconds,
        "window_start": window_end - length,
        "window_end": window_end,
        "delete_after": window_end + max(length, _MIN_KEPT_MILLIS),
        "tokens": total.tokens,
        "cost": total.cost,
        "servers": {
            name: {"tokens": entry.amount.tokens, "cost": entry.amount.cost, "written_at": entry.written_at}
            for name, entry in entries.items()
        },
    }


def _with_ended_as_one(entries: Mapping[str, Entry], now: int) -> dict[str, Entry]:
    kept = {name: entry for name, entry in entries.items() if name != ENDED and now - entry.written_at < _ENDED_MILLIS}
    ended = sum_of(entry for name, entry in entries.items() if name not in kept)
    return {**kept, ENDED: Entry(ended, now)}


def sum_of(entries: Iterable[Entry]) -> Amount:
    """Return the spending of all these servers."""
    return sum((entry.amount for entry in entries), Amount())


class SharedSpending:
    """Spending in a table, exchanged through the store. `server` is the name of this server's entries."""

    def __init__(self, table: SpendingTable, store: Store, clock: Clock, server: str) -> None:
        self._table = table
        self._store = store
        self._clock = clock
        self._server = server
        self._used: dict[bytes, tuple[Counter, int]] = {}  # by digest; when this worker used it last
        self._silent_until = 0
        self._sweep_at = clock() + _SWEEP_MILLIS
        self._has_complained = False

    def add(self, counters: Sequence[Counter], amount: Amount) -> list[Spending]:
        """Add to the spending before a call, and return it. OSError if it cannot be counted; then nothing is added."""
        now = self._clock()
        for counter in counters:
            self._used[counter.digest] = counter, now
        return self._table.add(counters, now, amount)

    def stale(self, spendings: Sequence[Spending]) -> Iterator[int]:
        """Yield the positions of spendings whose share of other servers is older than FRESH_MILLIS.

        It stops when the store is found not to respond.
        """
        now = self._clock()
        for place, spending in enumerate(spendings):
            if now - spending.read_at > FRESH_MILLIS and now >= self._silent_until:
                yield place

    async def read(self, counter: Counter, spending: Spending) -> Spending:
        """Return the spending as the store has it now, unchanged if the store does not respond in time."""
        try:
            async with asyncio.timeout(READ_TIMEOUT_SECONDS):
                return await self._exchange(counter, writes=False)
        except (MLStreamError, TimeoutError) as error:
            self._complain(error)
            return spending

    def settle(self, counters: Sequence[Counter], before: Sequence[Spending], amount: Amount) -> Sequence[Spending]:
        """Add to the spending after a call, and return it; `before` is that before the call, returned if this fails.

        The amount is less what was reserved, so it may be negative; that is only subtracted in the window of the
        reservation.
        """
        now = self._clock()
        for counter in counters:
            self._used[counter.digest] = counter, now
        try:
            return self._table.settle(counters, now, amount, before)
        except OSError as error:
            self._complain(error)
            return before

    async def exchange(self, *, is_last: bool = False) -> None:
        """Exchange the counters that this worker has used, except those that another worker has just exchanged."""
        now = self._clock()
        counters = [counter for counter, _ in self._used.values()]
        for start in range(0, len(counters), _AT_ONCE):
            together = counters[start : start + _AT_ONCE]
            done = await asyncio.gather(*[self._exchange_used(counter, now, is_last=is_last) for counter in together])
            if not all(done):
                return

    async def sweep(self) -> None:
        """Delete documents of windows that are over."""
        now = self._clock()
        if now < self._sweep_at:
            return
        self._sweep_at = now + _SWEEP_MILLIS
        query = {"query": {"range": {"delete_after": {"lt": now}}}, "size": _SWEPT_AT_ONCE, "_source": False}
        while hits := (await self._store.search(Index.SPENDING, query))["hits"]["hits"]:
            for hit in hits:
                await self._store.delete(Index.SPENDING, hit["_id"])

    async def take_turn(self) -> float:
        """Exchange and sweep; return the seconds until the next time."""
        await self.exchange()
        try:
            await self.sweep()
        except (MLStreamError, OSError) as error:
            self._complain(error)
        return EXCHANGE_SECONDS

    async def _exchange_used(self, counter: Counter, now: int, *, is_last: bool) -> bool:
        """Exchange one counter; return whether the store has responded."""
        try:
            spending = self._table.read(counter, now)
            if spending.own == spending.stored and now - self._used[counter.digest][1] > _USED_MILLIS:
                del self._used[counter.digest]
            elif is_last or now - spending.read_at > _OTHER_WORKER_MILLIS:
                await self._exchange(counter, writes=True)
        except (MLStreamError, OSError) as error:
            self._complain(error)
            return False
        return True

    async def _exchange(self, counter: Counter, *, writes: bool) -> Spending:
        """Read the counter's document and, if asked, write this server's entry if it has changed.

        Conflict if others keep changing the document meanwhile.
        """
        for _ in range(_ATTEMPTS):
            now = self._clock()
            seen = self._table.read(counter, now)
            id = document_id(counter, seen.window_end)
            document = await self._store.get(Index.SPENDING, id)
            entries = read_entries(document)
            entry = entries.pop(self._server, None)
            others = sum_of(entries.values())
            spending = self._table.learn(counter, seen, now, others, None if entry is None else entry.amount)
            self._has_complained = False
            if not writes or spending.window_end != seen.window_end or spending.own == spending.stored:
                return spending
            entries[self._server] = Entry(spending.own, now)
            try:
                await self._write(id, document, document_source(counter, seen.window_end, entries, now))
            except Conflict:
                continue
            return self._table.learn(counter, seen, now, others, spending.own)
        raise Conflict("A document of spending is being changed by many others at once")

    async def _write(self, id: str, before: Document | None, source: Mapping[str, Any]) -> None:
        if before is None:
            await self._store.create(Index.SPENDING, source, id)
        else:
            await self._store.put(
                Index.SPENDING, id, source, if_seq_no=before.seq_no, if_primary_term=before.primary_term
            )

    def _complain(self, error: Exception) -> None:
        """Log once that the store does not respond, until it does; meanwhile calls do not wait for it."""
        self._silent_until = self._clock() + _SILENT_MILLIS
        if not self._has_complained:
            self._has_complained = True
            reason = error.reason if isinstance(error, MLStreamError) else str(error)
            log.warning("Budgets use the last known spending, as it cannot be exchanged or counted: %s", reason)


@asynccontextmanager
async def exchanging_spending(shared: SharedSpending, background: BackgroundTasks) -> AsyncIterator[None]:
    """Exchange spending while the block runs, and once more at its end."""
    try:
        async with background.running("budgets", shared.take_turn, after=EXCHANGE_SECONDS):
            yield
    finally:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_EXCHANGE_SECONDS):
                await shared.exchange(is_last=True)
