"""Spending in a table that the workers of a server share: a record for each model, or user of it, and window.

A record holds this window's spending of this server, always exact, and that of other servers as last read from the
store. It starts again when a new window begins. The record of a window that is over may be replaced, so that there are
few more records than recent callers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from opensearch_ml_stream.connectors.token_spending import Amount
from opensearch_ml_stream.plugin.shared.table import SharedTable

_RECORD = Struct("qq6d")  # as Spending has it; the end of the window is 0 in a new one


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter of spending on a model, by all its callers or by one `user`, in windows of time."""

    model_id: str
    user: str | None
    window_seconds: int
    digest: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        user = "" if self.user is None else f"={self.user}"
        name = f"{self.model_id}\n{self.window_seconds}\n{user}"
        object.__setattr__(self, "digest", sha256(name.encode("utf-8", "surrogatepass")).digest()[:16])

    @property
    def key(self) -> str:
        """The name of its documents in the store."""
        return self.digest.hex()

    def window_end(self, now: int) -> int:
        """Return when the window of that time ends; both in milliseconds since 1970."""
        length = 1000 * self.window_seconds
        return now - now % length + length


class Spending(NamedTuple):
    """The spending in a window, in tokens and money: a record of the table. Times in milliseconds since 1970.

    `own` is this server's, `stored` the part of it that the store is known to have, `others` that of other servers as
    of `read_at`, which is 0 before the store was read. The numbers are separate fields because every call makes several
    of these.
    """

    window_end: int
    read_at: int = 0
    own_tokens: float = 0.0
    own_cost: float = 0.0
    stored_tokens: float = 0.0
    stored_cost: float = 0.0
    others_tokens: float = 0.0
    others_cost: float = 0.0

    @property
    def own(self) -> Amount:
        """The spending of this server."""
        return Amount(self.own_tokens, self.own_cost)

    @property
    def stored(self) -> Amount:
        """The part of `own` that the store is known to have."""
        return Amount(self.stored_tokens, self.stored_cost)

    @property
    def tokens(self) -> float:
        """The tokens of all servers."""
        return self.own_tokens + self.others_tokens

    @property
    def cost(self) -> float:
        """The money of all servers."""
        return self.own_cost + self.others_cost


class SpendingTable:
    """The table in a file that the workers share and that is removed with the server. OSError on a full disk.

    `is_shared` is whether the server has more than one.
    """

    def __init__(self, path: Path, *, is_shared: bool = True) -> None:
        self._table = SharedTable(path, _RECORD, is_shared=is_shared)

    def close(self) -> None:
        """Let go of the file."""
        self._table.close()

    def read(self, counter: Counter, now: int) -> Spending:
        """Return the spending in the window of that time."""
        with self._table:
            return self._read(self._place(counter, now), counter.window_end(now))

    def add(self, counters: Sequence[Counter], now: int, amount: Amount) -> list[Spending]:
        """Add to the spending of all these counters, or of none; return the new spendings."""
        with self._table:
            return [
                self._add(place, counter.window_end(now), amount)
                for place, counter in zip(self._places(counters, now), counters, strict=True)
            ]

    def settle(
        self, counters: Sequence[Counter], now: int, amount: Amount, before: Sequence[Spending]
    ) -> list[Spending]:
        """Add to the spending of all these counters after a call; `before` is what it was at the reservation.

        Returns the new spendings. The amount is less what was reserved, so it may be negative; that is only subtracted
        in the window of the reservation.
        """
        spendings = []
        with self._table:
            for place, counter, then in zip(self._places(counters, now), counters, before, strict=True):
                window_end = counter.window_end(now)
                if window_end == then.window_end or amount.tokens > 0:
                    spendings.append(self._add(place, window_end, amount))
                else:
                    spendings.append(self._read(place, window_end))
        return spendings

    def learn(self, counter: Counter, seen: Spending, now: int, others: Amount, stored: Amount | None) -> Spending:
        """Record what the store has, read at `now` when the spending was `seen`; return the spending.

        `stored` is the store's number for this server, None if its document was deleted: the spending before is then
        reset.
        """
        with self._table:
            place = self._place(counter, now)
            if self._table.read(place)[0] > seen.window_end:  # another worker has begun a new window meanwhile
                return seen
            spending = self._read(place, counter.window_end(now))
            if spending.window_end != seen.window_end:
                return spending
            if stored is not None:
                spending = spending._replace(stored_tokens=stored.tokens, stored_cost=stored.cost)
            elif spending.stored == seen.stored:  # else another worker has written it again
                spending = spending._replace(
                    own_tokens=spending.own_tokens - seen.stored_tokens,
                    own_cost=spending.own_cost - seen.stored_cost,
                    stored_tokens=0.0,
                    stored_cost=0.0,
                )
            others_known = spending._replace(others_tokens=others.tokens, others_cost=others.cost, read_at=now)
            return self._write(place, others_known)

    def _place(self, counter: Counter, now: int) -> int:
        [place] = self._places([counter], now)
        return place

    def _places(self, counters: Sequence[Counter], now: int) -> list[int]:
        return self._table.places([counter.digest for counter in counters], lambda record: bool(record[0] <= now))

    def _read(self, place: int, window_end: int) -> Spending:
        """Return the spending at that place, none if it is that of another window."""
        record = self._table.read(place)
        return Spending._make(record) if record[0] == window_end else Spending(window_end)

    def _add(self, place: int, window_end: int, amount: Amount) -> Spending:
        then, read_at, tokens, cost, *rest = self._table.read(place)
        if then == window_end:
            spending = Spending(window_end, read_at, tokens + amount.tokens, cost + amount.cost, *rest)
        else:
            spending = Spending(window_end, own_tokens=amount.tokens, own_cost=amount.cost)
        return self._write(place, spending)

    def _write(self, place: int, spending: Spending) -> Spending:
        self._table.write(place, *spending)
        return spending
