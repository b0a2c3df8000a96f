"""The process that keeps the runtimes: beside the workers, watched and replaced as they are."""

import asyncio
import os
import signal
from importlib import import_module
from pathlib import Path

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import check_models_folder
from opensearch_ml_stream.plugin.logs.loop_errors import log_loop_error
from opensearch_ml_stream.plugin.server.heartbeats import Heartbeats
from opensearch_ml_stream.plugin.settings import Settings

MAX_SOCKET_FOLDER = 90  # bytes of its path: the path of a socket may have 107


def runtimes_folder(runtime: Path) -> Path:
    """Return the folder of the runtimes' sockets and status, in the folder that all workers of a server share."""
    return runtime / "runtimes"


def make_runtimes_folder(settings: Settings, runtime: Path) -> None:
    """Make the folder, where models are given. InvalidRequest if these are not there, or its path is too long."""
    if not settings.models:
        return
    check_models_folder(Path(settings.models))
    folder = runtimes_folder(runtime)
    if len(os.fsencode(folder)) > MAX_SOCKET_FOLDER:
        raise InvalidRequest(f"The path {folder} is too long for sockets; name a shorter folder by TMPDIR")
    folder.mkdir(mode=0o700)


def run_keeper(settings: Settings, runtime: Path, parent: int, heartbeats: Heartbeats, place: int) -> None:
    """Keep the runtimes until a signal, or until the parent process has ended, whose descriptor `parent` is."""
    asyncio.run(_keep(settings, runtime, parent, heartbeats, place))


async def _keep(settings: Settings, runtime: Path, parent: int, heartbeats: Heartbeats, place: int) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(log_loop_error)
    signals, orphaned = asyncio.Event(), asyncio.Event()

    def be_orphaned() -> None:
        loop.remove_reader(parent)
        orphaned.set()
        signals.set()

    loop.add_reader(parent, be_orphaned)
    with heartbeats.beating(place):
        # By name, and here: only this process needs its code, and most servers have no such process.
        keeping = import_module("opensearch_ml_stream.extensions.runtimes.keeper.keeper")
        async with keeping.open_keeper(settings, runtimes_folder(runtime)) as keeper:

            def stop() -> None:
                if signals.is_set():
                    keeper.kill()
                signals.set()

            loop.add_signal_handler(signal.SIGTERM, stop)
            heartbeats.set_ready(place)
            await signals.wait()
            if orphaned.is_set():  # else the supervisor has waited for the workers, so that no call is in flight
                await keeper.drain(settings.shutdown_grace_seconds)
