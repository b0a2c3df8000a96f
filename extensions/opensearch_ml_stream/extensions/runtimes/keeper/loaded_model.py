"""The processes of one loaded model, from their start until the last has ended."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from opensearch_ml_stream.extensions.runtimes.keeper.host_process import HostProcess, Launch
from opensearch_ml_stream.extensions.runtimes.service.status import ProcessStatus
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks

_FIGURES_SECONDS = 1.5  # by then a process has sent newer figures


class LoadedModel:
    """The processes of one model. `sockets` are their sockets' paths; `on_change` is called when a status changes.

    `description` is the model's own, from a process that has loaded it. Without a `launch` there are no processes,
    since a provider runs the model: it counts as loaded at once.
    """

    def __init__(
        self, launch: Launch | None, sockets: list[str], on_change: Callable[[], None], background: BackgroundTasks
    ) -> None:
        self.description: Mapping[str, Any] = {}
        self.failure = ""  # why a process could not load it, or ended, since the last one was ready
        self._on_change = on_change
        self._settled = asyncio.Event()
        self._hosts: list[HostProcess] = []
        if launch is None:
            self.description = {"platform": "openai"}
            self._settled.set()
        else:
            count_failure = partial(background.count, "tasks of runtimes")
            self._hosts = [
                HostProcess(launch, path, self._be_ready, self._fail, on_change, count_failure) for path in sockets
            ]
        self._tasks = [background.start("runtime process", host.live) for host in self._hosts]

    @property
    def statuses(self) -> list[ProcessStatus]:
        """The status of each process."""
        return [host.status for host in self._hosts]

    @property
    def is_ready(self) -> bool:
        """Whether a process can be called."""
        return any(host.status.ready for host in self._hosts)

    @property
    def was_ready(self) -> bool:
        """Whether a process has ever loaded the model."""
        return bool(self.description)

    async def settled(self) -> bool:
        """Wait until a process has loaded the model or failed to; return whether one has loaded it."""
        await self._settled.wait()
        return self.was_ready

    def measure(self) -> None:
        """Measure the memory of the processes."""
        for host in self._hosts:
            host.measure()

    def kill(self) -> None:
        """Kill the processes and their children."""
        for host in self._hosts:
            host.kill()

    async def drain(self, seconds: float) -> None:
        """Wait until no process has a call in flight, but not longer than that."""
        if not self.is_ready:
            return
        waits = min(_FIGURES_SECONDS, seconds)
        while waits > 0:
            await asyncio.sleep(waits)
            seconds -= waits
            waits = min(0.1, seconds) if any(host.status.in_flight for host in self._hosts) else 0

    async def stop(self) -> None:
        """End the processes, each after it has unloaded the model; may be called while another call waits."""
        for task in self._tasks:
            if not task.cancelling():  # a second cancellation would kill the process
                task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._settled.set()

    def _be_ready(self, description: Mapping[str, Any]) -> None:
        self.description = description
        self.failure = ""
        self._settled.set()
        self._on_change()

    def _fail(self, reason: str) -> None:
        self.failure = reason
        self._settled.set()
        self._on_change()
