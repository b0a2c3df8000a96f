"""What was spent, in files that all workers of a server share: one for each model, or user of a model, and window.

A file holds this window's spending of this server, exact at any time, and that of other servers as the store told it
last. When a new window begins, it begins anew. Files of windows that are over are swept, so that there are no more of
them than callers who spent something lately.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from struct import Struct

from opensearch_ml_stream.connectors.spending.token_spending import Amount
from opensearch_ml_stream.plugin.locked_file import locked

_RECORD = Struct("qq6d")  # the end of the window, when the store was read; own, stored and others' tokens and cost
_NOTHING = Amount()


@dataclass(frozen=True, slots=True)
class Counter:
    """What is counted together: the spending on a model, by all its callers or (`user`) by one, in windows of time."""

    model_id: str
    user: str | None
    window_seconds: int

    @property
    def key(self) -> str:
        """The name of its file, and of its documents in the store."""
        user = "" if self.user is None else f"={self.user}"
        name = f"{self.model_id}\n{self.window_seconds}\n{user}"
        return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def window_end(self, now: int) -> int:
        """Return when the window of that time ends; both in milliseconds since 1970."""
        length = 1000 * self.window_seconds
        return now - now % length + length


@dataclass(slots=True)
class Spending:
    """What was spent in a window. Times in milliseconds since 1970; `read_at` is 0 before the store was read.

    `stored` is the part of `own`, this server's, that the store is known to have.
    """

    window_end: int
    read_at: int = 0
    own: Amount = _NOTHING
    stored: Amount = _NOTHING
    others: Amount = _NOTHING

    @property
    def total(self) -> Amount:
        """The spending of all servers."""
        return self.own + self.others


class SpendingFiles:
    """The files, in a folder that the workers share and that is removed with the server. OSError on a full disk."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, counter: Counter, now: int) -> Spending:
        """Return the spending in the window of that time."""
        with self._opened(counter) as file:
            return _read(file, counter.window_end(now))

    def add(self, counter: Counter, now: int, amount: Amount, window_end: int | None = None) -> Spending:
        """Add to the spending; return what it is then.

        `window_end` is that of a window in which a part was counted before: less than that part is taken back only
        while it lasts.
        """
        with self._opened(counter) as file:
            spending = _read(file, counter.window_end(now))
            if window_end in (None, spending.window_end) or amount.tokens > 0:
                spending.own += amount
                _write(file, spending)
            return spending

    def learn(self, counter: Counter, seen: Spending, now: int, others: Amount, stored: Amount | None) -> Spending:
        """Note what the store told at that time, when the spending was `seen`; return the spending.

        `stored` is what it has of this server's, None if it has forgotten that: its document was deleted, and the
        spending before is forgiven.
        """
        with self._opened(counter) as file:
            if _window_end(file) > seen.window_end:  # another worker has begun a new window meanwhile
                return seen
            spending = _read(file, counter.window_end(now))
            if spending.window_end != seen.window_end:
                return spending
            if stored is not None:
                spending.stored = stored
            elif spending.stored == seen.stored:  # else another worker has written it again
                spending.own -= seen.stored
                spending.stored = _NOTHING
            spending.others = others
            spending.read_at = now
            _write(file, spending)
            return spending

    def sweep(self, now: int) -> None:
        """Delete the files of windows that are over."""
        for path in self._directory.iterdir():
            with suppress(OSError), locked(path) as file:
                if _window_end(file) <= now:
                    path.unlink()

    @contextmanager
    def _opened(self, counter: Counter) -> Iterator[int]:
        """Open the counter's file and lock it."""
        path = f"{self._directory}/{counter.key}"
        while True:
            with locked(path) as file:
                if os.fstat(file).st_nlink:  # else it was swept while this waited for the lock
                    yield file
                    return


def _window_end(file: int) -> int:
    """Return the end of the window whose spending is in the file, 0 without any."""
    stored = os.pread(file, _RECORD.size, 0)
    return int(_RECORD.unpack(stored)[0]) if len(stored) == _RECORD.size else 0


def _read(file: int, window_end: int) -> Spending:
    """Return the spending in the file, none if it is that of another window."""
    stored = os.pread(file, _RECORD.size, 0)
    if len(stored) < _RECORD.size:
        return Spending(window_end)
    end, read_at, own_tokens, own_cost, stored_tokens, stored_cost, tokens, cost = _RECORD.unpack(stored)
    if end != window_end:
        return Spending(window_end)
    own, known = Amount(own_tokens, own_cost), Amount(stored_tokens, stored_cost)
    return Spending(end, read_at, own, known, Amount(tokens, cost))


def _write(file: int, spending: Spending) -> None:
    own, stored, others = spending.own, spending.stored, spending.others
    amounts = (own.tokens, own.cost, stored.tokens, stored.cost, others.tokens, others.cost)
    os.pwrite(file, _RECORD.pack(spending.window_end, spending.read_at, *amounts), 0)
