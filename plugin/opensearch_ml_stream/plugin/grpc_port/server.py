"""The gRPC server of one worker. All workers bind the port, so that the kernel spreads the connections."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
import grpc.aio
from cryptography.hazmat.primitives import serialization

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.grpc_port.calls import CallHandlers, GrpcService
from opensearch_ml_stream.plugin.grpc_port.health_service import HEALTH_SERVICE, Health, readiness
from opensearch_ml_stream.plugin.grpc_port.reflection_service import (
    REFLECTION_SERVICE,
    reflection_handlers,
    reflection_pool,
)
from opensearch_ml_stream.plugin.logs.request_log import RequestLog
from opensearch_ml_stream.plugin.server.port_certificate import PortCertificate
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses

MAX_METADATA_BYTES = 64 * 1024  # as the head of a request on the HTTP port
MAX_STREAMS_PER_CONNECTION = 1_000
HANDSHAKE_SECONDS = 10
# A dead client is noticed within the sum of these, and its calls are ended.
KEEP_ALIVE_SECONDS, KEEP_ALIVE_TIMEOUT_SECONDS = 30, 20
MIN_PING_SECONDS = 10  # between pings of a client; if they come faster, it is disconnected
IDLE_SECONDS = 600

LOOK_SECONDS = 0.25  # between two checks that the server is listening
LAST_CALLS_SECONDS = 3600  # for calls of a server that has ended

_PEM = serialization.Encoding.PEM

COMPRESSION = {"none": None, "deflate": grpc.Compression.Deflate, "gzip": grpc.Compression.Gzip}

log = logging.getLogger("opensearch_ml_stream")

Stop = Callable[[float], Coroutine[Any, Any, None]]
"""Refuses new calls, ends those that wait for their client, and waits for the others at most so many seconds."""


@dataclass(frozen=True, slots=True)
class Port:
    """What the gRPC port is given; `ping` raises Unavailable if the store does not respond."""

    gate: Gate
    in_flight: InFlightResponses
    ping: Callable[[], Awaitable[None]]
    log: RequestLog
    services: Sequence[GrpcService]
    background: BackgroundTasks


@asynccontextmanager
async def serving_grpc(
    settings: Settings, address: str, port: Port, certificate: Callable[[], PortCertificate] | None
) -> AsyncIterator[Stop]:
    """Serve at `address`, which is HOST:PORT, while the block runs.

    `certificate` returns the port's certificate; None means no TLS. Raises InvalidRequest if the port cannot be served.
    """
    calls = CallHandlers(port.gate, port.in_flight, port.log, settings.request_timeout_seconds)
    ready = readiness(port.ping)
    own = {service.name: service.handlers(calls, ready) for service in port.services}
    health = Health(own, ready)
    shown = reflection_pool(file for service in port.services for file in service.files)
    handlers = {
        **own,
        HEALTH_SERVICE: health.handlers(calls),
        REFLECTION_SERVICE: reflection_handlers((*own, HEALTH_SERVICE, REFLECTION_SERVICE), shown, calls),
    }

    async def start() -> Any:
        server = grpc.aio.server(
            handlers=[grpc.method_handlers_generic_handler(*of_service) for of_service in handlers.items()],
            options=_options(settings),
            maximum_concurrent_rpcs=settings.max_connections,
            compression=COMPRESSION[settings.grpc_compression],
        )
        _bind(server, address, settings, certificate)
        await server.start()
        return server

    async def stop(seconds: float) -> None:
        calls.stop()
        await servers.stop(seconds)

    async with RestartingServer(start, port.background) as servers, health.looking(port.background):
        yield stop


def _bind(server: Any, address: str, settings: Settings, certificate: Callable[[], PortCertificate] | None) -> None:
    try:
        if certificate is None:
            server.add_insecure_port(address)
        else:
            requires_clients = settings.tls_client_certificates == "required"
            server.add_secure_port(address, server_credentials(certificate, requires_clients=requires_clients))
    except RuntimeError as error:
        raise InvalidRequest(f"gRPC cannot be served on {address}: {error}") from None


def _options(settings: Settings) -> list[tuple[str, int]]:
    return [
        ("grpc.so_reuseport", 1),
        ("grpc.max_receive_message_length", settings.max_body_size),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_metadata_size", MAX_METADATA_BYTES),
        ("grpc.absolute_max_metadata_size", MAX_METADATA_BYTES),
        ("grpc.max_concurrent_streams", MAX_STREAMS_PER_CONNECTION),
        ("grpc.max_allowed_incoming_connections", settings.max_connections),
        ("grpc.server_handshake_timeout_ms", HANDSHAKE_SECONDS * 1000),
        ("grpc.max_connection_idle_ms", IDLE_SECONDS * 1000),
        ("grpc.keepalive_time_ms", KEEP_ALIVE_SECONDS * 1000),
        ("grpc.keepalive_timeout_ms", KEEP_ALIVE_TIMEOUT_SECONDS * 1000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", MIN_PING_SECONDS * 1000),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", MIN_PING_SECONDS * 1000),
    ]


def server_credentials(current: Callable[[], PortCertificate], *, requires_clients: bool) -> grpc.ServerCredentials:
    """Return credentials that use the port's current certificate at each handshake, with TLS 1.2 or newer.

    gRPC asks clients for a certificate only if one is required, not if it is optional.
    """
    in_force = current()

    def configuration() -> grpc.ServerCertificateConfiguration:
        pair = in_force.pair
        key = pair.key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        chain = b"".join(certificate.public_bytes(_PEM) for certificate in pair.certificates)
        authorities = in_force.authorities if requires_clients else None
        return grpc.ssl_server_certificate_configuration([(key, chain)], authorities)

    def fetch() -> Any:  # type stubs know no None
        """Return the certificate if it is new; called by gRPC at each handshake, in a thread."""
        nonlocal in_force
        now = current()
        if now is in_force:
            return None
        in_force = now
        return configuration()

    return grpc.dynamic_ssl_server_credentials(configuration(), fetch, requires_clients)


class RestartingServer:
    """A gRPC server that is started again if it ends by itself; `start` returns a new one.

    A request whose path is not UTF-8 ends grpcio's asyncio server (1.85: `_server_main_loop` decodes the path outside
    of any `except`). It accepts no more calls then, but those in flight continue.
    """

    def __init__(self, start: Callable[[], Awaitable[Any]], background: BackgroundTasks) -> None:
        self._start = start
        self._background = background
        self._listening: Any = None
        self._servers: set[Any] = set()
        self._is_stopping = False
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "RestartingServer":
        await self._listen()
        await self._stack.enter_async_context(self._background.running("gRPC server", self._watch))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
        await self.stop(0)

    async def stop(self, seconds: float) -> None:
        """Accept no more calls, and wait until all have ended. Those left after so many seconds are cancelled."""
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
        log.error("the gRPC server of this worker has ended and is started again", exc_info=failure)
        await self._listen()
        self._background.start("ended gRPC server", partial(self._end, server))
        return 0

    async def _end(self, server: Any) -> None:
        await server.stop(LAST_CALLS_SECONDS)
        self._servers.discard(server)


async def _failure(server: Any) -> BaseException | None:
    """Wait until a server has ended; return the error, None if it was stopped."""
    try:
        while await server.wait_for_termination(LOOK_SECONDS):
            pass
    except BaseException as failure:  # after any error, the port is served again
        task = asyncio.current_task()
        if isinstance(failure, GeneratorExit) or (task is not None and task.cancelling()):
            raise
        return failure
    return None
