"""A server whose first worker hangs in `hang_here` soon after it serves: `python hanging_server.py MARKER`.

Its supervisor waits a second where the real one waits ten, and looks more often. The second worker, which finds the
marker, asks for a stop.
"""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.logs.configuration import configure_logging
from opensearch_ml_stream.plugin.server import supervisor as supervisor_module
from opensearch_ml_stream.plugin.server.listener import Listeners
from opensearch_ml_stream.plugin.server.processes import Heartbeats, Processes
from opensearch_ml_stream.plugin.server.supervisor import Supervisor
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.task_failures import TaskFailures

MARKER = Path(sys.argv[1])


def hang_once(prompt: str) -> None:
    if MARKER.exists():
        os.kill(os.getppid(), signal.SIGTERM)
    else:
        MARKER.touch()
        hang_here(prompt)


def hang_here(prompt: str) -> None:
    time.sleep(600)


async def work(heartbeats: Heartbeats) -> None:
    async with BackgroundTasks().running("heartbeat", lambda: heartbeats.beat(0)):
        heartbeats.set_ready(0)
        await asyncio.sleep(0.1)
        asyncio.get_running_loop().call_soon(hang_once, "a secret prompt")
        await asyncio.sleep(60)


def main() -> int:
    configure_logging("info", "text")
    supervisor_module.BLOCKED_SECONDS = 1.0
    supervisor_module.TURN_SECONDS = 0.1
    machine, heartbeats = Processes(), Heartbeats(1)
    listeners = Listeners("127.0.0.1", 0, 1)
    supervisor = Supervisor(
        Settings(shutdown_grace_seconds=0),
        machine,
        heartbeats,
        listeners,
        work=lambda place, parent: asyncio.run(work(heartbeats)),
        on_exit=lambda pid: None,
        clock=time.monotonic,
        failures=TaskFailures().of(0),
    )
    with machine.handling_signals():
        return supervisor.run()


if __name__ == "__main__":
    sys.exit(main())
