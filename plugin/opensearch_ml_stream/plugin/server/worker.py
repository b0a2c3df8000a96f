"""One worker process: uvicorn with the sidecar's application, and a graceful stop.

After SIGTERM no new connections are accepted. Responses in flight have the grace time to end; those that are left are
ended with an error object. A second signal does that at once.
"""

import asyncio
import gc
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib import import_module
from typing import Any, cast

import uvicorn
import uvloop
from prometheus_client.multiprocess import mark_process_dead

from opensearch_ml_stream.plugin.app import Sidecar, open_sidecar
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.logs.request_log import RequestLog
from opensearch_ml_stream.plugin.metrics import MULTIPROC_DIR
from opensearch_ml_stream.plugin.server import file_descriptors
from opensearch_ml_stream.plugin.server.http1.limits import LATE_REQUEST_SECONDS, ConnectionLimits
from opensearch_ml_stream.plugin.server.http1.protocol import SharedState, StreamingProtocol
from opensearch_ml_stream.plugin.server.http1.tls_handshake import TLSHandshake
from opensearch_ml_stream.plugin.server.listener import BACKLOG
from opensearch_ml_stream.plugin.server.port_certificate import PortCertificate, ReloadingCertificate
from opensearch_ml_stream.plugin.server.processes import WorkerContext
from opensearch_ml_stream.plugin.settings import Settings

log = logging.getLogger("opensearch_ml_stream")

StopPort = Callable[[float], Coroutine[Any, Any, None]]

LAST_WRITES_SECONDS = 3  # after the grace time: for a slow reader to receive its terminal object
SWEEP_SECONDS = 1.0

# CPython's defaults (700, 10, 10) run a full collection after every few thousand streams, which takes milliseconds in
# which all streams wait.
GC_THRESHOLDS = (20_000, 20, 50)

# glibc keeps up to twice the largest block that was freed so far, 256 KiB at first, and returns more to the kernel. A
# few parallel responses of 100 kB would allocate the same pages again and again.
LARGE_BLOCK_BYTES = 4 * 1024 * 1024


def run_worker(settings: Settings, context: WorkerContext) -> None:
    """Serve until a signal, or until the parent process has ended."""
    uvloop.run(_serve(settings, context))


def remove_worker_gauges(pid: int) -> None:
    """Remove the gauges of a worker that has ended from the metrics."""
    if MULTIPROC_DIR in os.environ:
        mark_process_dead(pid)  # type: ignore[no-untyped-call]


async def _serve(settings: Settings, context: WorkerContext) -> None:
    background = BackgroundTasks(context.failures, context.number)
    asyncio.get_running_loop().set_exception_handler(background.loop_failed)
    async with (
        background.running("heartbeat", partial(context.heartbeats.beat, context.number)),
        open_sidecar(settings, context.folder, context.login_key, background=background) as sidecar,
        _port_certificate(settings, context, sidecar) as certificate,
    ):
        _freeze_start_objects()
        keep_freed_memory()
        limits = connection_limits(settings)
        ready = partial(context.heartbeats.set_ready, context.number)
        server = Server(sidecar, settings.shutdown_grace_seconds, limits, ready, certificate)
        async with _grpc_port(settings, context, sidecar, server.log, certificate) as server.stop_grpc:
            with server.stopping_with(context.parent):
                await server.serve([context.listener])


@asynccontextmanager
async def _port_certificate(
    settings: Settings, context: WorkerContext, sidecar: Sidecar
) -> AsyncIterator[ReloadingCertificate | None]:
    """Reload the port's certificate while the block runs; yield None without TLS."""
    if context.certificate_files is None:
        yield None
        return
    certificate = ReloadingCertificate(settings, context.certificate_files, logs=context.number == 0)

    def show(current: PortCertificate) -> None:
        sidecar.metrics.certificate_expires(current.pair.expires.timestamp())

    async with certificate.watching(show, sidecar.background):
        yield certificate


@asynccontextmanager
async def _grpc_port(
    settings: Settings,
    context: WorkerContext,
    sidecar: Sidecar,
    request_log: RequestLog,
    certificate: ReloadingCertificate | None,
) -> AsyncIterator[StopPort]:
    """Serve gRPC while the block runs, if it has a port. Its code is imported by name: grpcio may not be installed."""
    if context.grpc_address is None:
        yield _stop_nothing
        return
    grpc_server = import_module("opensearch_ml_stream.plugin.grpc_port.server")
    services = [make() for make in sidecar.services]
    port = grpc_server.Port(sidecar.gate, sidecar.in_flight, sidecar.ping, request_log, services, sidecar.background)
    current = None if certificate is None else (lambda: certificate.current)
    async with grpc_server.serving_grpc(settings, context.grpc_address, port, current) as stop:
        yield stop


async def _stop_nothing(seconds: float) -> None:
    """Do nothing: there is no gRPC port."""


def connection_limits(settings: Settings) -> ConnectionLimits:
    """Return the limits set by the settings and by this process's file descriptors."""
    return ConnectionLimits(
        request_seconds=settings.request_timeout_seconds,
        max_connections=file_descriptors.most_connections(settings.max_connections),
    )


def _freeze_start_objects() -> None:
    """Exclude all present objects from garbage collection, and collect rarely: streams make few reference cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def keep_freed_memory() -> None:
    """Free a large block, so that glibc keeps more of what is freed later, unless `MALLOC_` variables say otherwise."""
    bytes(LARGE_BLOCK_BYTES)


class Server(uvicorn.Server):
    """uvicorn's server with the protocol of this package; its shutdown waits for responses in flight.

    `grace` is in seconds. `on_ready` is called when connections are accepted. With a `certificate` they use TLS.
    """

    def __init__(
        self,
        sidecar: Sidecar,
        grace: float,
        limits: ConnectionLimits,
        on_ready: Callable[[], None] = lambda: None,
        certificate: ReloadingCertificate | None = None,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                sidecar.app,
                http=cast(Any, self._new_connection),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                backlog=BACKLOG,
                timeout_graceful_shutdown=LAST_WRITES_SECONDS,
            )
        )
        self._in_flight = sidecar.in_flight
        self._drains = sidecar.drains
        self._grace = grace
        self._on_ready = on_ready
        self._certificate = certificate
        self.log = RequestLog(lambda: sidecar.live.current.access_log)
        self.stop_grpc: StopPort = _stop_nothing
        self._shared = SharedState(
            sidecar.app, self.server_state, limits, sidecar.in_flight.bodies, log.warning, self.log
        )
        self._background = sidecar.background
        self._sweeper: asyncio.Task[None] | None = None
        self._drain: asyncio.Task[None] | None = None
        self._draining: list[asyncio.Task[None]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections (called by uvicorn)."""
        await super().startup(sockets)
        self._sweeper = self._background.start("connections", self._sweep)
        self._on_ready()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let SIGTERM stop the server (called by uvicorn); for SIGINT the supervisor sends one."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self.stop)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGTERM)

    @contextmanager
    def stopping_with(self, parent: int) -> Iterator[None]:
        """Stop when the parent process ends, which makes this descriptor readable."""
        loop = asyncio.get_running_loop()

        def stop() -> None:
            loop.remove_reader(parent)
            self.stop()

        loop.add_reader(parent, stop)
        try:
            yield
        finally:
            loop.remove_reader(parent)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for responses in flight, then close (called by uvicorn)."""
        for server in self.servers:
            server.close()
        connections: list[Any] = list(self.server_state.connections)
        # Idle ones close now, others after their response. Those that have just connected may still send a request.
        awaits_requests = any([connection.shutdown() for connection in connections])
        stopping_grpc = asyncio.create_task(self.stop_grpc(self._grace + LAST_WRITES_SECONDS))
        self._drain = asyncio.create_task(
            self._in_flight.drain(self._grace, LATE_REQUEST_SECONDS if awaits_requests else 0.0)
        )
        self._draining = [asyncio.ensure_future(drain(self._grace)) for drain in self._drains]
        if self._draining:
            await asyncio.wait(self._draining)
        await self._drain
        await super().shutdown(sockets)
        await stopping_grpc
        if self._sweeper is not None:
            self._sweeper.cancel()

    def stop(self) -> None:
        """Begin to stop; the second time, end responses in flight at once."""
        if self.should_exit:
            self._in_flight.interrupt_all()
            for draining in self._draining:
                draining.cancel()
        self.should_exit = True

    def _new_connection(self, **_: object) -> asyncio.Protocol:
        loop = asyncio.get_running_loop()
        if self._certificate is None:
            return StreamingProtocol(self._shared, loop)
        return TLSHandshake(self._shared, loop, self._certificate.current.context)

    async def _sweep(self) -> float:
        """Check the deadlines of all connections with one timer."""
        now = asyncio.get_running_loop().time()
        connections: set[Any] = self.server_state.connections
        for connection in tuple(connections):
            connection.check_deadlines(now)
        self._shared.heads.expire(now)
        if file_descriptors.are_exhausted():
            log.warning(
                "no file descriptor is left of %d (ulimit -n); new connections are closed", file_descriptors.limit()
            )
        return SWEEP_SECONDS
