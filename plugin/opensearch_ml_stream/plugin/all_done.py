"""Work that is done at the same time, for what does not depend on each other."""

import asyncio
from typing import Any


async def all_done(*tasks: asyncio.Task[Any]) -> None:
    """Wait until all tasks are done, or cancel them with the caller; raise the error of the first that has one."""
    try:
        await asyncio.wait(tasks)
    finally:
        for task in tasks:
            task.cancel()
    errors = [task.exception() for task in tasks]
    for error in errors:
        if error is not None:
            raise error
