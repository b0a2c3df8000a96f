"""The main function of a process that an extension runs beside the workers."""

import asyncio
import signal
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Protocol

from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.extension import ServerProcess, load
from opensearch_ml_stream.plugin.server.processes import ProcessContext
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.rest_handlers.base_path import Paths


class Running(Protocol):
    """The object that such a process runs, as an extension opens it."""

    async def drain(self, seconds: float) -> None:
        """Wait for calls in flight, at most so many seconds."""
        ...

    def kill(self) -> None:
        """End at once everything that it has started."""
        ...


def run_side_process(process: ServerProcess, settings: Settings, paths: Paths, context: ProcessContext) -> None:
    """Run until a signal, or until the parent process has ended."""
    background = BackgroundTasks(context.failures, context.number)
    tasks = (background,) if process.has_tasks else ()
    running = load(process.run)(settings, context.folder, paths, *tasks)
    asyncio.run(_run(running, settings.shutdown_grace_seconds, background, context))


async def _run(
    opening: AbstractAsyncContextManager[Running], grace: float, background: BackgroundTasks, context: ProcessContext
) -> None:
    loop, parent = asyncio.get_running_loop(), context.parent
    loop.set_exception_handler(background.loop_failed)
    signals, orphaned = asyncio.Event(), asyncio.Event()

    def be_orphaned() -> None:
        loop.remove_reader(parent)
        orphaned.set()
        signals.set()

    loop.add_reader(parent, be_orphaned)
    async with background.running("heartbeat", partial(context.heartbeats.beat, context.number)), opening as running:

        def stop() -> None:
            if signals.is_set():
                running.kill()
            signals.set()

        loop.add_signal_handler(signal.SIGTERM, stop)
        context.heartbeats.set_ready(context.number)
        await signals.wait()
        if orphaned.is_set():  # else the workers have ended before, and no call is in flight
            await running.drain(grace)
