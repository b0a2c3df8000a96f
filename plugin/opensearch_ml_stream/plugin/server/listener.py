"""The sockets of the server's two ports, for HTTP and gRPC, which the parent process opens."""

import errno
import logging
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.extension import Extension, load
from opensearch_ml_stream.plugin.extras import install_command
from opensearch_ml_stream.plugin.logs.configuration import FIELDS
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.store.open_store import shown_store

BACKLOG = 4096

log = logging.getLogger("opensearch_ml_stream")


def bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Return a bound socket that does not listen yet; OSError if the port cannot be bound.

    Several `shared` sockets can be bound to the same port (SO_REUSEPORT).
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


class Listeners:
    """The listening sockets of the HTTP port, one for each worker, so that the kernel spreads the connections.

    The parent process holds them open, so that clients that connect while a worker is replaced wait for the next one.
    """

    def __init__(self, host: str, port: int, workers: int) -> None:
        self._host = host
        first = bind(host, port)
        self.port = int(first.getsockname()[1])
        self._sockets = [first]
        if workers > 1:  # bound alone first, so that a port in use is an error
            first.close()
            self._sockets = [self._bind() for _ in range(workers)]
        for listener in self._sockets:
            listener.listen(BACKLOG)
        self._suspended: set[int] = set()

    def __enter__(self) -> "Listeners":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all sockets: no more connections are accepted."""
        for listener in self._sockets:
            listener.close()

    def own_socket(self, place: int) -> socket.socket:
        """Return the socket of a worker, in that worker's process, and close the others."""
        for other in (*self._sockets[:place], *self._sockets[place + 1 :]):
            other.close()
        return self._sockets[place]

    def suspend(self, place: int) -> None:
        """Close the socket of a place that has no worker for a while, so that the other workers get the connections."""
        self._suspended.add(place)
        self._sockets[place].close()

    def resume(self, place: int) -> None:
        """Bind a socket for the next worker at a suspended place; OSError if that is not possible now.

        The worker itself begins to listen when it is ready, so that no client waits for a worker that may end before.
        """
        if place in self._suspended:
            self._sockets[place] = self._bind()
            self._suspended.discard(place)

    def _bind(self) -> socket.socket:
        return bind(self._host, self.port, shared=True)


def announce(settings: Settings) -> None:
    """Log the URL of the server, its version and its store."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    workers = "" if settings.workers <= 1 else f" ({settings.workers} workers)"
    scheme = "https" if settings.tls_certificate else "http"
    fields = {"version": version("opensearch-ml-stream"), "store": shown_store(settings.store)}
    log.info("listening on %s://%s:%s%s", scheme, host, settings.port, workers, extra={FIELDS: fields})


@contextmanager
def reserving_grpc_port(settings: Settings, extensions: Sequence[Extension]) -> Iterator[str | None]:
    """Reserve the port for gRPC while the block runs, and yield its address; None if no port is set.

    A socket is bound to it and does not listen, as gRPC opens its own in each worker. Raises InvalidRequest if the port
    cannot be bound, or if the packages for gRPC are not installed.
    """
    if settings.grpc_port is None:
        yield None
        return
    load_grpc(extensions)
    with _reserved(settings.host, settings.grpc_port) as holder:
        host, port = holder.getsockname()[:2]
        yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def load_grpc(extensions: Sequence[Extension]) -> None:
    """Import the code that serves gRPC before workers are forked; this starts no thread and no part of gRPC's core.

    Raises InvalidRequest if its packages are not installed.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # else its core writes errors of clients to standard error
    try:
        import_module("opensearch_ml_stream.plugin.grpc_port.server")
        for extension in extensions:
            for service in extension.services:
                load(service)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("opensearch_ml_stream"):
            raise
        raise InvalidRequest(
            f"Serving gRPC needs packages that are not installed ({error.name}): {install_command('grpc')}"
        ) from None


def announce_grpc(settings: Settings, address: str) -> None:
    """Log the address of the gRPC port."""
    log.info("listening for gRPC on %s%s", address, " (TLS)" if settings.tls_certificate else "")


def _reserved(host: str, port: int) -> socket.socket:
    try:
        with bind(host, port) as first:  # alone, so that a port in use is an error
            found = first.getsockname()[1]
        return bind(host, found, shared=True)
    except OSError as error:
        if isinstance(error, socket.gaierror):
            raise  # as for the HTTP port, which has the same host
        hint = ": stop the program that listens there, or choose" if error.errno == errno.EADDRINUSE else "; choose"
        problem = (
            "is in use" if error.errno == errno.EADDRINUSE else f"cannot be bound ({os.strerror(error.errno or 0)})"
        )
        raise InvalidRequest(f"{host}:{port}, for gRPC, {problem}{hint} another port with --grpc-port") from None
