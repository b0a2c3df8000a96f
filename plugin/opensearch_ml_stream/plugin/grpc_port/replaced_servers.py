"""Replaces a gRPC server that has ended by itself.

One request whose path is not UTF-8 ends grpcio's asyncio server (1.85: `_server_main_loop` decodes the path outside of
any `except`). It takes no new calls then; those in flight go on to their end.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks

LOOK_SECONDS = 0.25
LAST_CALLS_SECONDS = 3600  # for the calls of a server that was replaced

log = logging.getLogger("opensearch_ml_stream")


class ReplacedServers:
    """The server that listens, made by `start`, and those before it whose calls go on; held with `async with`."""

    def __init__(self, start: Callable[[], Awaitable[Any]], background: BackgroundTasks) -> None:
        self._start = start
        self._background = background
        self._listening: Any = None
        self._servers: set[Any] = set()
        self._is_stopping = False
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "ReplacedServers":
        await self._listen()
        await self._stack.enter_async_context(self._background.running("gRPC server", self._watch))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        await self.stop(0)

    async def stop(self, seconds: float) -> None:
        """Take no new calls; return when all have ended. Those that have not after the seconds are cancelled."""
        self._is_stopping = True
        await asyncio.gather(*[server.stop(seconds) for server in self._servers])

    async def _listen(self) -> None:
        self._listening = await self._start()
        self._servers.add(self._listening)

    async def _watch(self) -> float | None:
        server = self._listening
        failure = await _failure(server)
        if self._is_stopping:
            return None
        log.error("the gRPC server of this worker has ended, and is replaced", exc_info=failure)
        await self._listen()
        self._background.start("ended gRPC server", partial(self._end, server))
        return 0

    async def _end(self, server: Any) -> None:
        await server.stop(LAST_CALLS_SECONDS)
        self._servers.discard(server)


async def _failure(server: Any) -> Exception | None:
    """Wait until a server has ended; return why, None if it was stopped."""
    try:
        while await server.wait_for_termination(LOOK_SECONDS):
            pass
    except Exception as failure:  # noqa: BLE001 - whatever it was, the port is served again
        return failure
    return None
