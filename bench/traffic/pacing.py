"""One timer for all streams, finer than the event loop's millisecond, which would send them in bursts."""

import asyncio
import ctypes
import heapq
import os
from collections.abc import Callable
from time import monotonic_ns

TICK_NS = 250_000

_CLOCK_MONOTONIC = 1
_TFD_NONBLOCK = os.O_NONBLOCK


class _IntervalSpec(ctypes.Structure):
    """struct itimerspec: how often, then when first."""

    _fields_ = (
        ("interval_seconds", ctypes.c_long),
        ("interval_ns", ctypes.c_long),
        ("first_seconds", ctypes.c_long),
        ("first_ns", ctypes.c_long),
    )


class Pacer:
    """Calls back when due, in order. Runs no timer while nothing is due."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd: int = self._libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_NONBLOCK)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed; the benchmark needs Linux")
        self._due: list[tuple[int, int, Callable[[int], None]]] = []
        self._number = 0  # settles ties
        self._running = False
        self._loop = loop
        loop.add_reader(self._fd, self._tick)

    def call_at(self, due_ns: int, callback: Callable[[int], None]) -> None:
        """Calls `callback(due_ns)` at that time of CLOCK_MONOTONIC, or up to a tick later."""
        self._number += 1
        heapq.heappush(self._due, (due_ns, self._number, callback))
        if not self._running:
            self._run(True)

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _tick(self) -> None:
        os.read(self._fd, 8)
        due = self._due
        now = monotonic_ns()
        while due and due[0][0] <= now:
            at, _, callback = heapq.heappop(due)
            callback(at)
        if not due:
            self._run(False)

    def _run(self, running: bool) -> None:
        self._running = running
        ns = TICK_NS if running else 0
        self._libc.timerfd_settime(self._fd, 0, ctypes.byref(_IntervalSpec(0, ns, 0, ns)), None)
