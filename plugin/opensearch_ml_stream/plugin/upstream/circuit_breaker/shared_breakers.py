"""The state of all circuit breakers of a server, shared by its workers.

A connector whose provider failed has a slot in one small file that every worker has mapped into its memory. One that
never failed has none: to find that out is all that a call costs. Slots are written under the file's lock.

A breaker is *closed* until so many calls in a row have failed, then *open*: for some seconds nobody calls. Then it is
*half-open*: one call of all workers goes through. If it fails too, the breaker opens for twice as long.
"""

import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from time import monotonic

from opensearch_ml_stream.plugin.locked_file import locked

MAX_PAUSE_SECONDS = 60.0
PROBE_SECONDS = 60.0  # after which another call may try: the worker of the first may have been killed

_SLOTS = 4096
_REACH = 8  # slots in which a connector may be; if all are taken by others, its failures are not counted
_SLOT = Struct("16sqddd")  # the connector; failures in a row; open until; for so many seconds; probed until (monotonic)
_FREE = bytes(16)
_SIZE = _SLOT.size * (_SLOTS + _REACH)


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
    """The breakers of a server. `directory` is shared by its workers and removed with it."""

    def __init__(self, directory: Path, now: Callable[[], float] = monotonic) -> None:
        self._path = directory / "circuit-breakers"
        self._now = now
        with locked(self._path) as file:
            if os.fstat(file).st_size < _SIZE:
                os.ftruncate(file, _SIZE)
        with self._path.open("r+b") as opened:  # not the locked descriptor: the memory would keep its lock
            self._memory = mmap.mmap(opened.fileno(), _SIZE)

    def close(self) -> None:
        """Release the mapped memory."""
        self._memory.close()

    def wait_seconds(self, key: str) -> float:
        """Return 0 if a call may be made, else in how many seconds to ask again. OSError if the file is unusable.

        Whoever gets 0 while the breaker is half-open has to report how its call ended.
        """
        offset = self._find(_digest(key))
        if offset < 0 or self._read(offset).open_until == 0.0:
            return 0.0
        with self._changing(key) as state:
            now = self._now()
            wait = max(state.open_until, state.probed_until) - now
            if wait <= 0 and state.open_until:
                state.probed_until = now + PROBE_SECONDS
            return max(wait, 0.0) if state.open_until else 0.0

    def succeed(self, key: str) -> bool:
        """Note that the provider responded; return whether this closed the breaker."""
        if self._find(_digest(key)) < 0:
            return False
        with self._changing(key) as state:
            was_open = state.open_until > 0
            state.failures = 0
            return was_open

    def fail(self, key: str, rules: BreakerRules) -> float | None:
        """Note a failure; return for how many seconds it opened the breaker, None if it did not."""
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
        if self._find(_digest(key)) >= 0:
            with self._changing(key) as state:
                state.probed_until = 0.0

    @contextmanager
    def _changing(self, key: str) -> Iterator[_State]:
        """Lock the file for the block; the state it leaves is written. One without failures has no slot."""
        digest = _digest(key)
        with locked(self._path):
            offset = self._find(digest)
            state = self._read(offset) if offset >= 0 else _State()
            yield state
            if offset < 0 and state.failures:
                offset = self._find_free(digest)
            if offset >= 0:
                if not state.failures:
                    digest, state = _FREE, _State()
                slot = (digest, state.failures, state.open_until, state.pause, state.probed_until)
                _SLOT.pack_into(self._memory, offset, *slot)

    def _read(self, offset: int) -> _State:
        _, failures, open_until, pause, probed_until = _SLOT.unpack_from(self._memory, offset)
        return _State(failures, open_until, pause, probed_until)

    def _find(self, digest: bytes) -> int:
        """Return where the connector's slot is, -1 without one."""
        start = _start(digest)
        return self._memory.find(digest, start, start + _REACH * _SLOT.size)

    def _find_free(self, digest: bytes) -> int:
        """Return where a slot for the connector is free, -1 without one."""
        start = _start(digest)
        for offset in range(start, start + _REACH * _SLOT.size, _SLOT.size):
            if self._memory[offset : offset + len(_FREE)] == _FREE:
                return offset
        return -1


def _start(digest: bytes) -> int:
    return int.from_bytes(digest[:2]) % _SLOTS * _SLOT.size


@lru_cache(1024)
def _digest(key: str) -> bytes:
    return blake2b(key.encode("utf-8", "surrogateescape"), digest_size=16).digest()
