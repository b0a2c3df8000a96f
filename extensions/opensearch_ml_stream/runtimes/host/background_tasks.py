"""Background tasks of a model's process: a turn that fails is logged, reported to the keeper, and retried."""

import asyncio
from collections.abc import Awaitable, Callable

from opensearch_ml_stream.runtimes.host.failures import FailureLog
from opensearch_ml_stream.runtimes.host.keeper_socket import Keeper

FIRST_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 4.0  # the server reports a failure for 5 s

Turn = Callable[[], Awaitable[float | None]]
"""One turn of a task; it returns the seconds until the next turn, or None if there is none."""


def start_watched(name: str, turn: Turn, log: FailureLog, keeper: Keeper) -> "asyncio.Task[None]":
    """Run turns until one returns None, or the task is cancelled; failures are reported to the keeper."""
    return asyncio.get_running_loop().create_task(_run(name, turn, log, keeper))


async def _run(name: str, turn: Turn, log: FailureLog, keeper: Keeper) -> None:
    pause = FIRST_PAUSE_SECONDS
    seconds: float | None = 0.0
    while seconds is not None:
        await asyncio.sleep(seconds)
        try:
            seconds = await turn()
        except (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, the process goes on
            log.raised(f"the task {name}", error)
            keeper.tell("task_failed", error=type(error).__name__)
            seconds, pause = pause, min(2 * pause, MAX_PAUSE_SECONDS)
        else:
            pause = FIRST_PAUSE_SECONDS
