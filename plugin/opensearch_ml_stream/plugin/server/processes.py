"""Processes of the server: how they are forked, what each is given, and how the parent knows that they are alive.

A worker is a fork of this process, so all modules are loaded and it starts in milliseconds. This is safe because this
process has one thread and no event loop.
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
from opensearch_ml_stream.plugin.key_pairs import Contents
from opensearch_ml_stream.plugin.task_failures import TaskFailures

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
DUMP_SIGNAL = signal.SIGUSR1  # a worker then writes the stacks of its threads: lines of code, no values
_HANDLED = (*STOP_SIGNALS, signal.SIGCHLD)

BEAT_SECONDS = 1.0
_CELLS = 2  # of each worker: its beats, and whether it is ready

log = logging.getLogger("opensearch_ml_stream")


class Processes:
    """The child processes of this one. `stops` counts the signals to stop."""

    def __init__(self) -> None:
        self.stops = 0
        self._wake_end, self._waker = os.pipe()
        self._parent_end, self._parent = os.pipe()  # the reading end sees the end when this process ends
        for end in (self._wake_end, self._waker):
            os.set_blocking(end, False)

    @contextmanager
    def handling_signals(self) -> Iterator[None]:
        """Count signals to stop, while the block runs, instead of ending."""
        before = {number: signal.signal(number, self._note) for number in _HANDLED}
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)

    def start(self, work: Callable[[int], None]) -> int:
        """Run `work` in a new process; return its id. OSError if none can be started now.

        `work` gets a descriptor that is readable when this process has ended. Signals are blocked until the new process
        has its own handlers.
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
        """Send a signal to a child that `ended` has not returned."""
        os.kill(pid, number)

    def wait(self, seconds: float) -> None:
        """Wait for a signal or the end of a child, or until the time has passed."""
        if select.select([self._wake_end], [], [], seconds)[0]:
            os.read(self._wake_end, 4096)

    def pause(self, seconds: float) -> None:
        """Sleep, whatever has failed."""
        sleep(seconds)

    def ended(self) -> Iterator[tuple[int, int]]:
        """Yield the children that have ended: id and exit code, or the negative number of a signal."""
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
        except BaseException as error:  # a SystemExit too: it would be an end without a reason
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
    """Heartbeats of the processes by place, in memory that they share with the parent.

    A heartbeat is a turn of the process's event loop, counted once a second.
    """

    def __init__(self, places: int) -> None:
        self._cells = memoryview(mmap.mmap(-1, 8 * _CELLS * places)).cast("Q")

    def reset(self, place: int) -> None:
        """Start over for a new process at this place."""
        self._cells[place * _CELLS] = self._cells[place * _CELLS + 1] = 0

    def count(self, place: int) -> int:
        """Return the number of heartbeats."""
        return self._cells[place * _CELLS]

    def is_ready(self, place: int) -> bool:
        """Return whether the process is ready."""
        return self._cells[place * _CELLS + 1] == 1

    def set_ready(self, place: int) -> None:
        """Mark the process as ready."""
        self._cells[place * _CELLS + 1] = 1

    async def beat(self, place: int) -> float:
        """Count a heartbeat; return the seconds until the next."""
        self._cells[place * _CELLS] += 1
        return BEAT_SECONDS


@dataclass(frozen=True, slots=True)
class ProcessContext:
    """What a process is given by its parent.

    All processes share `folder`, `heartbeats` and `failures`. `number` is this one's place. `parent` is a descriptor
    that is readable when the parent process has ended.
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
    certificate_files: Contents | None = None  # the contents of the port's TLS files when the server started
    grpc_address: str | None = None
    login_key: bytes | None = None  # it is never written to a file
