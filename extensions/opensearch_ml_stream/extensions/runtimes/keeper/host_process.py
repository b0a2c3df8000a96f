"""One process of a model: start it, read its events, restart it when it ends."""

import asyncio
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from opensearch_ml_stream.extensions.runtimes.service.status import ProcessStatus
from opensearch_ml_stream.runtimes import model_metrics

FIRST_RETRY_SECONDS = 0.5
MAX_RETRY_SECONDS = 30.0
SOUND_SECONDS = 60.0  # a process that was ready for so long resets the delay of restarts
UNLOAD_SECONDS = 3.0  # for a process to unload its model before it is killed
MAX_LINE = 16 * 1024 * 1024  # of an event of a process: its metadata may be large
_PROGRAM = Path(__file__).parents[3] / "runtimes" / "__main__.py"
_FIGURES = ("in_flight", "calls", "failures", "batches", "batched_requests")
_PAGE = os.sysconf("SC_PAGE_SIZE")

log = logging.getLogger("opensearch_ml_stream")


@dataclass(frozen=True, slots=True)
class Launch:
    """What a process of a model is started with. `introduction` is the first message to it."""

    name: str
    interpreter: str
    variables: Mapping[str, str]
    introduction: Mapping[str, Any]
    program: Path = _PROGRAM


class HostProcess:
    """Keeps one process of a model running; each `live` is one process. `status` is its state.

    `on_ready` is called with the model's description whenever a process has loaded it, `on_failure` with the reason
    when it could not, `on_change` whenever the status has changed otherwise, and `on_task_failure` with an error's name
    when a background task of the process has failed, which it logs and retries itself.
    """

    def __init__(
        self,
        launch: Launch,
        socket_path: str,
        on_ready: Callable[[Mapping[str, Any]], None],
        on_failure: Callable[[str], None],
        on_change: Callable[[], None],
        on_task_failure: Callable[[str], None],
    ) -> None:
        self.status = ProcessStatus(socket_path)
        self._launch = launch
        self._on_ready = on_ready
        self._on_failure = on_failure
        self._on_change = on_change
        self._on_task_failure = on_task_failure
        self._retry = FIRST_RETRY_SECONDS
        self._reported = ""  # the last reason that was logged
        self._ready_at = inf  # the loop's time at which this process had loaded its model
        self._failure = ""  # the reason of this process for not loading its model

    async def live(self) -> float:
        """Run a process to its end, and wait until the next may start; on cancellation let it unload its model."""
        self._ready_at = inf
        try:
            ending = await self._live()
        except Exception as error:
            self._on_failure(f"a process of it could not be kept ({type(error).__name__}); the log says where")
            raise
        finally:
            self.status.ready = False
            _remove(self.status.socket)
        if asyncio.get_running_loop().time() - self._ready_at >= SOUND_SECONDS:
            self._retry = FIRST_RETRY_SECONDS
        retry, self._retry = self._retry, min(2 * self._retry, MAX_RETRY_SECONDS)
        self._report(ending, retry)
        await self._wait(retry)
        self.status.restarts += 1
        return 0

    def measure(self) -> None:
        """Measure the memory of the process."""
        self.status.memory_bytes = _resident_bytes(self.status.pid) if self.status.pid else 0

    def kill(self) -> None:
        """Kill the process and its children."""
        if self.status.pid:
            _kill_group(self.status.pid)

    async def _wait(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while (left := end - loop.time()) > 0:
            self.status.retry_in_seconds = round(left, 1)
            self._on_change()
            await asyncio.sleep(min(left, 1.0))
        self.status.retry_in_seconds = 0.0

    def _report(self, ending: str, retry: float) -> None:
        failure, self._failure = self._failure, ""
        reason = failure or f"a process of it {ending}"
        self._on_failure(reason)
        level = logging.ERROR if reason != self._reported else logging.DEBUG
        self._reported = reason
        log.log(level, "runtime %s: %s; it is started again in %g s", self._launch.name, reason, retry)

    async def _live(self) -> str:
        """Run one process to its end; return how it ended."""
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            return f"cannot be started: {error.strerror}"
        with ours:
            with theirs:
                try:
                    process = await self._start(theirs)
                except OSError as error:
                    return f"cannot be started: {self._launch.interpreter}: {error.strerror}"
            self.status.pid = process.pid
            self._on_change()
            try:
                return await self._attend(process, ours)
            finally:
                _kill_group(process.pid)  # with its children
                await process.wait()
                self.status = ProcessStatus(self.status.socket, restarts=self.status.restarts)

    async def _start(self, theirs: socket.socket) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            self._launch.interpreter,
            str(self._launch.program),
            self._launch.name,
            str(theirs.fileno()),
            pass_fds=[theirs.fileno()],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            env=self._launch.variables,
            start_new_session=True,  # so that Ctrl-C does not reach it, and signals reach its children, too
        )

    async def _attend(self, process: asyncio.subprocess.Process, ours: socket.socket) -> str:
        reader, writer = await asyncio.open_unix_connection(sock=ours, limit=MAX_LINE)
        try:
            introduction = {**self._launch.introduction, "socket": self.status.socket}
            writer.write(json.dumps(introduction).encode() + b"\n")
            with suppress(ConnectionError):
                await self._listen(reader)
        finally:
            writer.close()
            code = await _ended(process)
        return _ending(code)

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        """Read the events of the process to its end."""
        while True:
            try:
                line = await reader.readline()
                if not line:
                    return
                event = json.loads(line)
                self._heed(event)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                self._failure = f"a process of it sent an event that cannot be read ({error})"
                return

    def _heed(self, event: Mapping[str, Any]) -> None:
        match event["event"]:
            case "ready":
                self.status.ready = True
                self._ready_at = asyncio.get_running_loop().time()
                self._reported = ""
                self._on_ready(event)
            case "failed":
                self._failure = str(event["reason"])
            case "figures":
                for name in _FIGURES:
                    setattr(self.status, name, int(event[name]))
            case "task_failed":
                self._on_task_failure(str(event["error"]))
            case _:
                pass  # an event of a newer version


async def _ended(process: asyncio.subprocess.Process) -> int:
    """Wait until the process has ended, and kill it if it takes too long; return its exit code."""
    try:
        async with asyncio.timeout(UNLOAD_SECONDS):
            return await process.wait()
    except TimeoutError:
        log.warning("process %d of a model did not end within %g s; it is killed", process.pid, UNLOAD_SECONDS)
    finally:
        if process.returncode is None:
            _kill_group(process.pid)
    return await process.wait()


def _remove(path: str) -> None:
    """Remove the socket and the metrics file of a process."""
    model_metrics.remove(path)
    with suppress(OSError):
        os.unlink(path)


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    hint = "; has memory run out?" if code == -signal.SIGKILL else ""
    return f"was killed by signal {-code} ({signal.strsignal(-code)}{hint})"


def _resident_bytes(pid: int) -> int:
    """Return the resident memory of the process and its children."""
    try:
        own = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, LookupError, ValueError):
        return 0  # it has just ended, or this is not Linux
    return own + sum(_resident_bytes(int(child)) for child in children)
