"""The server: one worker in this process, or several on one port, each a process of its own.

Each worker binds the port for itself (SO_REUSEPORT), so that the kernel spreads connections and a worker that dies
takes only its own streams with it; it is replaced. A stop (SIGTERM, SIGINT) takes no new requests, lets the running
streams end within the grace time, then ends each with an error object; a second signal does that at once.
"""

import asyncio
import gc
import logging
import multiprocessing
import os
import signal
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from time import monotonic, sleep

import uvicorn
import uvloop
from prometheus_client.multiprocess import mark_process_dead

from opensearch_ml_stream.plugin.app import open_sidecar
from opensearch_ml_stream.plugin.metrics import MULTIPROC_DIR
from opensearch_ml_stream.plugin.server.protocol import StreamingProtocol
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.store.open_store import check_store_url
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses

BACKLOG = 4096
# Longer than the pools of clients and proxies keep an idle connection (nginx: 60 s), so that they close it, and none
# sends a request on one that is being closed here.
KEEP_ALIVE_SECONDS = 75
LAST_WRITES_SECONDS = 5  # after the grace time: what a slow reader gets to take its terminal object
MIN_WORKER_LIFE_SECONDS = 1.0  # a worker that dies sooner is not replaced at once, so as not to spin

# CPython's defaults (700, 10, 10) run a full collection every few thousand streams' objects: milliseconds each time,
# while every stream waits.
GC_THRESHOLDS = (20_000, 20, 50)

log = logging.getLogger("opensearch_ml_stream")


def serve(settings: Settings) -> int:
    """Serves until a signal; returns the exit code.

    OSError if the port cannot be had, InvalidRequest if the store's URL is none.
    """
    _configure_logging()
    check_store_url(settings.store)  # here, as a worker that cannot start is started again
    with tempfile.TemporaryDirectory(prefix="mlstream-") as runtime:
        with _bind(settings.host, settings.port) as listener:
            bound = replace(settings, port=listener.getsockname()[1])
            if settings.workers <= 1:
                listener.listen(BACKLOG)
                _announce(bound)
                uvloop.run(run_worker(bound, listener, Path(runtime)))
                return 0
        # Bound for itself first, so that a port in use is an error; then held, not listened on, for the workers.
        with _bind(bound.host, bound.port, shared=True):
            os.environ[MULTIPROC_DIR] = runtime
            _announce(bound)
            return _Supervisor(bound, Path(runtime)).run()


async def run_worker(settings: Settings, listener: socket.socket, runtime: Path) -> None:
    """One worker, until a signal."""
    async with open_sidecar(settings, runtime) as sidecar:
        _spare_the_collector()
        config = uvicorn.Config(
            sidecar.app,
            http=StreamingProtocol,
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
        await _Server(config, sidecar.answers, settings.shutdown_grace_seconds).serve(sockets=[listener])


def _spare_the_collector() -> None:
    """What is there now stays, so the collector need not look at it; streams make little garbage in cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


class _Server(uvicorn.Server):
    """uvicorn's server, with a stop that lets streams end well."""

    def __init__(self, config: uvicorn.Config, answers: InFlightResponses, grace: float) -> None:
        super().__init__(config)
        self._answers = answers
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
            connection.shutdown()  # idle ones close; the others will after their answer
        self._drain = asyncio.create_task(self._answers.drain(self._grace))
        await self._drain
        await super().shutdown(sockets)

    def _stop(self) -> None:
        if self.should_exit:
            self._answers.interrupt_all()
        self.should_exit = True

    def _stop_with_parent(self, sentinel: int) -> None:
        asyncio.get_running_loop().remove_reader(sentinel)
        self._stop()


class _Supervisor:
    """Starts the workers, replaces those that die, stops them all."""

    def __init__(self, settings: Settings, runtime: Path) -> None:
        self._settings = settings
        self._runtime = runtime
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[SpawnProcess, float] = {}
        self._stopping = False

    def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self._stop())
        for _ in range(self._settings.workers):
            self._start_worker()
        while self._workers:
            for sentinel in wait([worker.sentinel for worker in self._workers], timeout=0.5):
                self._replace(next(worker for worker in self._workers if worker.sentinel == sentinel))
        return 0

    def _start_worker(self) -> None:
        worker = self._context.Process(target=_worker_process, args=(self._settings, self._runtime))
        worker.start()
        self._workers[worker] = monotonic()

    def _replace(self, worker: SpawnProcess) -> None:
        worker.join()
        lived = monotonic() - self._workers.pop(worker)
        mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]
        if self._stopping:
            return
        log.error("worker %s ended with exit code %s; it is replaced", worker.pid, worker.exitcode)
        if lived < MIN_WORKER_LIFE_SECONDS:
            sleep(MIN_WORKER_LIFE_SECONDS - lived)
        if not self._stopping:
            self._start_worker()

    def _stop(self) -> None:
        self._stopping = True
        for worker in self._workers:
            worker.terminate()


def _worker_process(settings: Settings, runtime: Path) -> None:
    _configure_logging()
    with _bind(settings.host, settings.port, shared=True) as listener:
        listener.listen(BACKLOG)
        uvloop.run(run_worker(settings, listener, runtime))


def _configure_logging() -> None:
    """One line an event on standard error, in every process of the server."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # the server announces itself
    logging.getLogger("opensearch").setLevel(logging.ERROR)  # what fails is told to the one who asked


def _bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A bound socket that does not listen yet; `shared` with others that say so (SO_REUSEPORT)."""
    address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(address[0], socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(address[4])
    return listener


def _announce(settings: Settings) -> None:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    workers = "" if settings.workers <= 1 else f" ({settings.workers} workers)"
    log.info("listening on http://%s:%s%s", host, settings.port, workers)
