"""What all connections of a worker share."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp
from uvicorn.server import ServerState

from opensearch_ml_stream.plugin.logs.request_log import RequestLog
from opensearch_ml_stream.plugin.server.http1.known_heads import KnownHeads
from opensearch_ml_stream.plugin.server.http1.limits import ConnectionLimits
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory


class DefaultLines:
    """The headers that were those of every response when they were last made into `lines` of a head."""

    __slots__ = ("headers", "lines")

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.lines = b""


@dataclass(frozen=True, slots=True)
class Service:
    """The application and its limits; `state` holds the connections and the tasks, `warn` logs what clients cause."""

    app: ASGIApp
    state: ServerState
    limits: ConnectionLimits
    bodies: BodyMemory
    warn: Callable[[str], None]
    log: RequestLog = field(default_factory=RequestLog)
    heads: KnownHeads = field(default_factory=KnownHeads)
    default_lines: DefaultLines = field(default_factory=DefaultLines)

    def admit(self, connection: asyncio.Protocol, transport: asyncio.Transport) -> bool:
        """Count a new connection among the open ones; False, and it is closed, if there are too many."""
        connections: set[Any] = self.state.connections
        connections.add(connection)
        most = self.limits.max_connections
        if len(connections) <= most:
            return True
        self.warn(f"{most} clients are connected, as many as may be; new connections are closed")
        transport.abort()
        return False

    def forget(self, connection: asyncio.Protocol) -> None:
        """Count a connection no more."""
        connections: set[Any] = self.state.connections
        connections.discard(connection)
