"""Limits on a client's connection. Sizes are in bytes, times in seconds."""

from dataclasses import dataclass

# nginx: 32 KiB in 4 pieces; Apache: 100 fields of 8 KiB; Netty, and so OpenSearch: 8 KiB; Tomcat: 100 fields.
MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 256

# Requests that wait for an unfinished response. Clients that pipeline send a few.
MAX_PIPELINED = 16

# Unread bytes of a body at which reading is paused.
HIGH_WATER_BYTES = 64 * 1024

# When the server stops: for the first request of a connection, which may be in transit, or for the rest of a head.
LATE_REQUEST_SECONDS = 0.5

NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits on a client: `request_seconds` for a whole request, the other times for a part of one.

    Times are checked once a second.
    """

    request_seconds: float = 300
    head_seconds: float = 10
    body_read_seconds: float = 30
    # Longer than clients and proxies keep an idle connection in their pools (nginx: 60 s). So they close it, and do not
    # send a request on a connection that is being closed here.
    keep_alive_seconds: float = 75
    unread_seconds: float = 300  # in which a client reads nothing
    linger_seconds: float = 2  # after a response that was sent before the request's end
    max_connections: int = 10_000
