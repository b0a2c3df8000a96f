"""Processes of the server: how they are forked, what each is given, and how the parent knows that they live.

A worker is a copy of this process, so it has all modules at once and starts in milliseconds. That is sound as long
as this process has one thread and no event loop.
"""

import faulthandler
import logging
import mmap
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import sleep

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.plugin.task_failures import TaskFailures
from opensearch_ml_stream.plugin.tls.files import Contents

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
DUMP_SIGNAL = signal.SIGUSR1  # a worker writes where each of its threads is; lines of code only, no values
_HANDLED = (*STOP_SIGNALS, signal.SIGCHLD)

BEAT_SECONDS = 1.0
_CELLS = 2  # of each worker: its beats, and whether it is ready

log = logging.getLogger("opensearch_ml_stream")


class Processes:
    """The child processes of this one. `stops` counts the signals that ask for a stop."""

    def __init__(self) -> None:
        self.stops = 0
        self._wake_end, self._waker = os.pipe()
        self._parent_end, self._parent = os.pipe()  # the reading end is at its end when this process is
        for end in (self._wake_end, self._waker):
            os.set_blocking(end, False)

    @contextmanager
    def handling_signals(self) -> Iterator[None]:
        """Count stop signals instead of dying of them."""
        before = {number: signal.signal(number, self._note) for number in _HANDLED}
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)

    def start(self, work: Callable[[int], None]) -> int:
        """Run `work` in a new process; return its id. `work` gets a descriptor that is at its end when this process is.

        Signals wait until the new process has handlers of its own, or is known here. OSError if there can be none now.
        """
        _flush_stdout()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
        try:
            pid = os.fork()
            if pid == 0:
                self._be_child(work, mask)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return pid

    def kill(self, pid: int, number: int) -> None:
        """Send a signal to a child that has not been collected by `ended`."""
        os.kill(pid, number)

    def wait(self, seconds: float) -> None:
        """Wait for a signal, the end of a child among them, or until the time has passed."""
        if select.select([self._wake_end], [], [], seconds)[0]:
            os.read(self._wake_end, 4096)

    def pause(self, seconds: float) -> None:
        """Do nothing for so long, whatever has failed."""
        sleep(seconds)

    def ended(self) -> Iterator[tuple[int, int]]:
        """Return the children that have ended: id and exit code, or the negative number of a signal."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            yield pid, os.waitstatus_to_exitcode(status)

    def _note(self, number: int, frame: object) -> None:
        self.stops += number in STOP_SIGNALS

    def _be_child(self, work: Callable[[int], None], mask: set[int | signal.Signals]) -> None:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent passes it on
            for end in (self._wake_end, self._waker, self._parent):
                os.close(end)
            faulthandler.register(DUMP_SIGNAL)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            work(self._parent_end)
            code = 0
        except MLStreamError as error:
            log.error("the worker cannot run: %s", error.reason)
        except Exception as error:
            # No request is being handled here, so its message is shown.
            log.exception("the worker failed: %s", error)
        finally:  # nothing of the parent's may be unwound here
            try:
                logging.shutdown()
                _flush_stdout()
            finally:
                os._exit(code)


def _flush_stdout() -> None:
    with suppress(OSError, ValueError):  # its disk may be full, or its reader gone
        sys.stdout.flush()


class Heartbeats:
    """Heartbeats of the processes, each at its place: turns of its loop, counted each second, and whether it is ready.

    They are in memory shared with the parent.
    """

    def __init__(self, places: int) -> None:
        self._cells = memoryview(mmap.mmap(-1, 8 * _CELLS * places)).cast("Q")

    def reset(self, place: int) -> None:
        """Begin anew for another worker at this place."""
        self._cells[place * _CELLS] = self._cells[place * _CELLS + 1] = 0

    def count(self, place: int) -> int:
        """Return how often the worker has turned its loop."""
        return self._cells[place * _CELLS]

    def is_ready(self, place: int) -> bool:
        """Return whether the worker serves."""
        return self._cells[place * _CELLS + 1] == 1

    def set_ready(self, place: int) -> None:
        """Note that the worker serves."""
        self._cells[place * _CELLS + 1] = 1

    async def beat(self, place: int) -> float:
        """Count a turn of this event loop; return the seconds until the next that is to be counted."""
        self._cells[place * _CELLS] += 1
        return BEAT_SECONDS


@dataclass(frozen=True, slots=True)
class ProcessContext:
    """What a process is given; `parent` is a descriptor that is at its end when the server has ended.

    The folder and the two that count are shared by all, each has its own number.
    """

    folder: Path
    parent: int
    heartbeats: Heartbeats
    failures: TaskFailures
    number: int


@dataclass(frozen=True, slots=True)
class WorkerContext(ProcessContext):
    """What a worker is given."""

    listener: socket.socket
    certificate_files: Contents | None = None  # what those of the port's TLS held when the server started
    grpc_address: str | None = None
    login_key: bytes | None = None  # which no file ever holds
