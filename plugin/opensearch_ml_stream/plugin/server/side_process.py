"""A process beside the workers, which an extension declares: watched and replaced as they are."""

import asyncio
import signal
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from opensearch_ml_stream.plugin.extension import ServerProcess, load
from opensearch_ml_stream.plugin.logs.loop_errors import log_loop_error
from opensearch_ml_stream.plugin.server.heartbeats import Heartbeats
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.rest_handlers.base_path import Paths


class Running(Protocol):
    """What such a process does while it runs."""

    async def drain(self, seconds: float) -> None:
        """Wait so long at most for what others have asked of it."""
        ...

    def kill(self) -> None:
        """End at once what it has started."""
        ...


def run_side_process(
    process: ServerProcess,
    settings: Settings,
    folder: Path,
    paths: Paths,
    *,
    parent: int,
    heartbeats: Heartbeats,
    place: int,
) -> None:
    """Run until a signal, or until the parent process has ended, whose descriptor `parent` is."""
    running = load(process.run)(settings, folder, paths)
    asyncio.run(_run(running, settings.shutdown_grace_seconds, parent, heartbeats, place))


async def _run(
    opening: AbstractAsyncContextManager[Running], grace: float, parent: int, heartbeats: Heartbeats, place: int
) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_loop_error)
    signals, orphaned = asyncio.Event(), asyncio.Event()

    def be_orphaned() -> None:
        loop.remove_reader(parent)
        orphaned.set()
        signals.set()

    loop.add_reader(parent, be_orphaned)
    with heartbeats.beating(place):
        async with opening as running:

            def stop() -> None:
                if signals.is_set():
                    running.kill()
                signals.set()

            loop.add_signal_handler(signal.SIGTERM, stop)
            heartbeats.set_ready(place)
            await signals.wait()
            if orphaned.is_set():  # else the supervisor has waited for the workers, so that no call is in flight
                await running.drain(grace)
