"""What a keeper that was killed has left: processes of models that do not end by themselves, and sockets."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

from opensearch_ml_stream.extensions.runtimes.service.status import STATUS_FILE, read_status

END_SECONDS = 5.0  # for a process that sees its keeper gone to end by itself
POLL_SECONDS = 0.1


def next_number(folder: Path) -> int:
    """Return a number of a load that no socket in the folder has."""
    numbers = [path.name.partition(".")[0] for path in folder.glob("*.sock")]
    numbers += [
        Path(process.socket).name.partition(".")[0]
        for model in read_status(folder / STATUS_FILE).values()
        for process in model.processes
    ]
    return max((int(number) for number in numbers if number.isdecimal()), default=0) + 1


async def end(folder: Path) -> None:
    """Wait for the processes of the keeper before this one to end, and kill those that do not."""
    models = read_status(folder / STATUS_FILE).values()
    pids = [process.pid for model in models for process in model.processes if process.pid]
    left = [pid for pid in pids if _is_ours(pid)]
    for _ in range(round(END_SECONDS / POLL_SECONDS)):
        if not left:
            return
        await asyncio.sleep(POLL_SECONDS)
        left = [pid for pid in left if _is_ours(pid)]
    for pid in left:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def _is_ours(pid: int) -> bool:
    """Return whether the process is still one of a model, and no other that got its number since."""
    try:
        return b"runtimes/__main__.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
