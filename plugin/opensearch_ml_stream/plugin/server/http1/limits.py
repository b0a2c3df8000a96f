"""Limits of a client's connection. Sizes in bytes, times in seconds."""

from dataclasses import dataclass

# nginx: 32 KiB in 4 pieces; Apache: 100 fields of 8 KiB; Netty, and so OpenSearch: 8 KiB; Tomcat: 100 fields.
MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 256

# Requests that wait behind an unfinished response. Clients that pipeline at all send a few.
MAX_PIPELINED = 16

# Of a body that nobody has taken yet, before reading is paused.
HIGH_WATER_BYTES = 64 * 1024

# When the server stops: for the first request of a connection, which may be on its way, and for the rest of a head.
LATE_REQUEST_SECONDS = 0.5

NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What a client may take: `request_seconds` for a whole request, the others for a part.

    They hold to the second: a sweep over all connections looks once a second.
    """

    request_seconds: float = 300
    head_seconds: float = 10
    body_read_seconds: float = 30
    # Longer than the pools of clients and proxies keep an idle connection (nginx: 60 s), so that they close it, and
    # none sends a request on one that is being closed here.
    keep_alive_seconds: float = 75
    unread_seconds: float = 300  # a client that takes nothing of what is sent
    linger_seconds: float = 2  # after a response that came before the request's end
    max_connections: int = 10_000
