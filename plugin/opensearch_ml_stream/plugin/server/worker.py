"""One worker process: uvicorn with the sidecar's application, and a graceful stop.

After SIGTERM or SIGINT no new connections are accepted. The responses in flight may end within the grace time, then
each is ended with an error object; a second signal does that at once.
"""

import asyncio
import gc
import logging
import multiprocessing
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from opensearch_ml_stream.plugin.app import open_sidecar
from opensearch_ml_stream.plugin.server.listener import BACKLOG
from opensearch_ml_stream.plugin.server.protocol import http_protocol
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses

# Longer than the pools of clients and proxies keep an idle connection (nginx: 60 s), so that they close it, and none
# sends a request on one that is being closed here.
KEEP_ALIVE_SECONDS = 75
LAST_WRITES_SECONDS = 5  # after the grace time: for a slow reader to receive its terminal object

# CPython's defaults (700, 10, 10) run a full collection every few thousand streams' objects: milliseconds each time,
# while every stream waits.
GC_THRESHOLDS = (20_000, 20, 50)


async def run_worker(settings: Settings, listener: socket.socket, runtime: Path) -> None:
    """Serve on `listener` until a signal. `runtime` is a folder that the server's workers share."""
    async with open_sidecar(settings, runtime) as sidecar:
        _freeze_start_objects()
        config = uvicorn.Config(
            sidecar.app,
            http=http_protocol(),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=LAST_WRITES_SECONDS,
        )
        await _Server(config, sidecar.in_flight, settings.shutdown_grace_seconds).serve(sockets=[listener])


def configure_logging() -> None:
    """Log one line an event on standard error, in every process of the server."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # the server announces itself
    logging.getLogger("opensearch").setLevel(logging.ERROR)  # its errors are reported to the client


def _freeze_start_objects() -> None:
    """Exempt all present objects from garbage collection, and collect rarely: streams make few reference cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


class _Server(uvicorn.Server):
    """uvicorn's server; its shutdown drains the in-flight responses."""

    def __init__(self, config: uvicorn.Config, in_flight: InFlightResponses, grace: float) -> None:
        super().__init__(config)
        self._in_flight = in_flight
        self._grace = grace
        self._drain: asyncio.Task[None] | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        parent = multiprocessing.parent_process()
        if parent is not None:
            loop.add_reader(parent.sentinel, self._stop_with_parent, parent.sentinel)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()  # idle ones close; the others will after their response
        self._drain = asyncio.create_task(self._in_flight.drain(self._grace))
        await self._drain
        await super().shutdown(sockets)

    def _stop(self) -> None:
        if self.should_exit:
            self._in_flight.interrupt_all()
        self.should_exit = True

    def _stop_with_parent(self, sentinel: int) -> None:
        asyncio.get_running_loop().remove_reader(sentinel)
        self._stop()
