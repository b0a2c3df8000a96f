"""The state of all circuit breakers of a server, shared by its workers.

A connector whose provider failed has a record in a table of one level, which every worker has mapped. While it is empty
no provider fails, and a call costs nothing more.

A breaker is *closed* until so many calls in a row have failed, then *open*: for some seconds nobody calls. Then it is
*half-open*: one call of all workers goes through. If it fails too, the breaker opens for twice as long.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from time import monotonic

from opensearch_ml_stream.plugin.shared.table import SharedTable, table_key

MAX_PAUSE_SECONDS = 60.0
PROBE_SECONDS = 60.0  # after which another call may try: the worker of the first may have been killed

_RECORD = Struct("qddd")  # failures in a row; open until; for so many seconds; probed until (monotonic)


@dataclass(frozen=True, slots=True)
class BreakerRules:
    """So many failures in a row open a breaker, for so many seconds at first; 0 failures: it never opens."""

    failures: int
    seconds: float


@dataclass(slots=True)
class _State:
    failures: int = 0
    open_until: float = 0.0  # 0 while the breaker is closed
    pause: float = 0.0
    probed_until: float = 0.0


class SharedBreakers:
    """The breakers of a server. `directory` is shared by its workers and removed with it.

    While the table `failing` is empty, no call has to wait and no success has to be noted.
    """

    def __init__(self, directory: Path, now: Callable[[], float] = monotonic) -> None:
        self.failing = SharedTable(directory / "circuit-breakers", _RECORD, max_levels=1)
        self._now = now
        with self.failing:
            self.failing.prepare()

    def close(self) -> None:
        """Let go of the file."""
        self.failing.close()

    def wait_seconds(self, key: str) -> float:
        """Return 0 if a call may be made, else in how many seconds to ask again. OSError if the file is unusable.

        Whoever gets 0 while the breaker is half-open has to report how its call ended.
        """
        place = self.failing.find(table_key(key))
        if not place or self._read(place).open_until == 0.0:
            return 0.0
        with self._changing(key) as state:
            now = self._now()
            wait = max(state.open_until, state.probed_until) - now
            if wait <= 0 and state.open_until:
                state.probed_until = now + PROBE_SECONDS
            return max(wait, 0.0) if state.open_until else 0.0

    def succeed(self, key: str) -> bool:
        """Note that the provider responded; return whether this closed the breaker."""
        if not self.failing.find(table_key(key)):
            return False
        with self._changing(key) as state:
            was_open = state.open_until > 0
            state.failures = 0
            return was_open

    def fail(self, key: str, rules: BreakerRules) -> float | None:
        """Note a failure; return for how many seconds it opened the breaker, None if it did not.

        OSError if there is no room for another breaker.
        """
        with self._changing(key) as state:
            state.failures += 1
            now = self._now()
            if not rules.failures or state.failures < rules.failures or state.open_until > now:
                return None
            state.pause = min(2 * state.pause, MAX_PAUSE_SECONDS) if state.open_until else rules.seconds
            state.open_until, state.probed_until = now + state.pause, 0.0
            return state.pause

    def give_up(self, key: str) -> None:
        """Note that a call ended without saying anything about the provider: another may try."""
        if self.failing.find(table_key(key)):
            with self._changing(key) as state:
                state.probed_until = 0.0

    @contextmanager
    def _changing(self, key: str) -> Iterator[_State]:
        """Lock the table for the block; the state it leaves is written. One without failures has no record."""
        table, digest = self.failing, table_key(key)
        with table:
            place = table.find(digest)
            state = self._read(place) if place else _State()
            yield state
            if state.failures:
                [place] = table.places([digest], _is_free)
                table.write(place, state.failures, state.open_until, state.pause, state.probed_until)
            elif place:
                table.remove(place)

    def _read(self, place: int) -> _State:
        return _State(*self.failing.read(place))


def _is_free(record: tuple[int, ...]) -> bool:
    return not record[0]
