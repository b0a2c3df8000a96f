"""The gRPC server of one worker. All workers bind the port, so that the kernel spreads the connections."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.grpc_port.call_handlers import CallHandlers
from opensearch_ml_stream.plugin.grpc_port.grpc_service import GrpcService
from opensearch_ml_stream.plugin.grpc_port.health_service import HEALTH_SERVICE, Health, readiness
from opensearch_ml_stream.plugin.grpc_port.reflection_service import (
    REFLECTION_SERVICE,
    reflection_handlers,
    reflection_pool,
)
from opensearch_ml_stream.plugin.grpc_port.replaced_servers import ReplacedServers
from opensearch_ml_stream.plugin.grpc_port.server_credentials import Certificate, server_credentials
from opensearch_ml_stream.plugin.logs.request_log import RequestLog
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses

MAX_METADATA_BYTES = 64 * 1024  # as the head of a request on the HTTP port
MAX_STREAMS_PER_CONNECTION = 1_000
HANDSHAKE_SECONDS = 10
# A client that is gone is noticed within their sum, and its calls are ended.
KEEP_ALIVE_SECONDS, KEEP_ALIVE_TIMEOUT_SECONDS = 30, 20
MIN_PING_SECONDS = 10  # between the pings of a client; one that sends them faster is turned away
IDLE_SECONDS = 600

COMPRESSION = {"none": None, "deflate": grpc.Compression.Deflate, "gzip": grpc.Compression.Gzip}

Stop = Callable[[float], Coroutine[Any, Any, None]]
"""Refuses new calls, and ends those that wait for their client; returns when all have ended, or after the seconds."""


@dataclass(frozen=True, slots=True)
class Port:
    """What the port shares with the HTTP port, and its services; `ping` raises Unavailable if the store is away."""

    gate: Gate
    in_flight: InFlightResponses
    ping: Callable[[], Awaitable[None]]
    log: RequestLog
    services: Sequence[GrpcService]
    background: BackgroundTasks


@asynccontextmanager
async def serving_grpc(
    settings: Settings, address: str, port: Port, certificate: Callable[[], Certificate] | None
) -> AsyncIterator[Stop]:
    """Serve at `address`, host and port, while the block runs.

    `certificate` returns that of the port, and is None without TLS. InvalidRequest if the port cannot be served.
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

    async with ReplacedServers(start, port.background) as servers, health.looking(port.background):
        yield stop


def _bind(server: Any, address: str, settings: Settings, certificate: Callable[[], Certificate] | None) -> None:
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
