"""A model that is loaded: its processes, from their start until the last has ended."""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from opensearch_ml_stream.extensions.runtimes.keeper.host_process import HostProcess, Launch
from opensearch_ml_stream.extensions.runtimes.service.status import ProcessStatus
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks

_FIGURES_SECONDS = 1.5  # after this long what a process says of its calls is not from before


class LoadedModel:
    """The processes of one model. `sockets` are their sockets' paths; `on_change` is called when a status changes.

    `description` is what a process that has loaded the model says of it. Without a `launch` there are no processes,
    as a provider runs the model: it is loaded at once.
    """

    def __init__(
        self, launch: Launch | None, sockets: list[str], on_change: Callable[[], None], background: BackgroundTasks
    ) -> None:
        self.description: Mapping[str, Any] = {}
        self.failure = ""  # why a process could not load it, or ended, since one was ready
        self._on_change = on_change
        self._settled = asyncio.Event()
        self._hosts: list[HostProcess] = []
        if launch is None:
            self.description = {"platform": "openai"}
            self._settled.set()
        else:
            told = partial(background.count, "tasks of runtimes")
            self._hosts = [HostProcess(launch, path, self._be_ready, self._fail, on_change, told) for path in sockets]
        self._tasks = [background.start("runtime process", host.live) for host in self._hosts]

    @property
    def statuses(self) -> list[ProcessStatus]:
        """How each process is now."""
        return [host.status for host in self._hosts]

    @property
    def is_ready(self) -> bool:
        """Whether a process can be called."""
        return any(host.status.ready for host in self._hosts)

    @property
    def was_ready(self) -> bool:
        """Whether a process has loaded the model, once."""
        return bool(self.description)

    async def settled(self) -> bool:
        """Wait until a process has loaded the model, or could not; return whether one has."""
        await self._settled.wait()
        return self.was_ready

    def measure(self) -> None:
        """Read how much memory the processes have."""
        for host in self._hosts:
            host.measure()

    def kill(self) -> None:
        """Kill the processes, and what they have started."""
        for host in self._hosts:
            host.kill()

    async def drain(self, seconds: float) -> None:
        """Wait until no process has a call in flight, for no longer than that."""
        if not self.is_ready:
            return
        waits = min(_FIGURES_SECONDS, seconds)
        while waits > 0:
            await asyncio.sleep(waits)
            seconds -= waits
            waits = min(0.1, seconds) if any(host.status.in_flight for host in self._hosts) else 0

    async def stop(self) -> None:
        """End the processes, each once it has unloaded the model, also where somebody waits for that already."""
        for task in self._tasks:
            if not task.cancelling():  # a second time would kill the process
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
