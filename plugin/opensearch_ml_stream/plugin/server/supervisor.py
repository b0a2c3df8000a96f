"""Supervisor: starts several workers on one port, replaces those that die, stops them together.

Each worker binds the port for itself (SO_REUSEPORT), so that the kernel spreads connections and a worker that dies
takes only its own streams with it.
"""

import logging
import multiprocessing
import signal
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from time import monotonic, sleep

import uvloop
from prometheus_client.multiprocess import mark_process_dead

from opensearch_ml_stream.plugin.server.listener import BACKLOG, bind
from opensearch_ml_stream.plugin.server.worker import configure_logging, run_worker
from opensearch_ml_stream.plugin.settings import Settings

MIN_WORKER_LIFE_SECONDS = 1.0  # a worker that dies sooner is not replaced at once, so as not to spin

log = logging.getLogger("opensearch_ml_stream")


class Supervisor:
    """The parent process of the workers."""

    def __init__(self, settings: Settings, runtime: Path) -> None:
        self._settings = settings
        self._runtime = runtime
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[SpawnProcess, float] = {}
        self._stopping = False

    def run(self) -> int:
        """Run the workers until a signal; return the exit code."""
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
    configure_logging()
    with bind(settings.host, settings.port, shared=True) as listener:
        listener.listen(BACKLOG)
        uvloop.run(run_worker(settings, listener, runtime))
