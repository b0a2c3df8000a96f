"""The listening socket of the server."""

import logging
import socket
from importlib.metadata import version

from opensearch_ml_stream.plugin.logs.line_format import FIELDS
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.store.open_store import shown_store

BACKLOG = 4096

log = logging.getLogger("opensearch_ml_stream")


def bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Return a bound socket that does not listen yet.

    With `shared` other sockets that are shared too can be bound to the same port (SO_REUSEPORT). OSError if the port
    cannot be bound.
    """
    address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listener = socket.socket(address[0], socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listener.bind(address[4])
    except OSError:
        listener.close()
        raise
    return listener


def announce(settings: Settings) -> None:
    """Log the URL of the server, its version and its store."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    workers = "" if settings.workers <= 1 else f" ({settings.workers} workers)"
    scheme = "https" if settings.tls_certificate else "http"
    fields = {"version": version("opensearch-ml-stream"), "store": shown_store(settings.store)}
    log.info("listening on %s://%s:%s%s", scheme, host, settings.port, workers, extra={FIELDS: fields})
