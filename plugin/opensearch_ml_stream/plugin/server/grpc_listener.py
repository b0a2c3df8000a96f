"""The port for gRPC, where one is set: this server finds it free and keeps it, gRPC itself listens in each worker."""

import errno
import logging
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.extension import Extension, load
from opensearch_ml_stream.plugin.extras import install_command
from opensearch_ml_stream.plugin.server.listener import bind
from opensearch_ml_stream.plugin.settings import Settings

log = logging.getLogger("opensearch_ml_stream")


@contextmanager
def reserving_grpc_port(settings: Settings, extensions: Sequence[Extension]) -> Iterator[str | None]:
    """Keep the port while the block runs, and return the address for the workers; None where no port is set.

    A socket is bound there and does not listen: gRPC takes none that is open already. InvalidRequest if the port cannot
    be bound, or if the packages for gRPC are not installed.
    """
    if settings.grpc_port is None:
        yield None
        return
    load_grpc(extensions)
    with _reserved(settings.host, settings.grpc_port) as holder:
        host, port = holder.getsockname()[:2]
        yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def load_grpc(extensions: Sequence[Extension]) -> None:
    """Load what serves gRPC, so that each worker is born with it; that starts no thread and no part of gRPC's core.

    InvalidRequest if its packages are not installed.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its core writes to standard error what clients do wrong
    try:
        import_module("opensearch_ml_stream.plugin.grpc_port.server")
        for extension in extensions:
            for service in extension.services:
                load(service)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("opensearch_ml_stream"):
            raise
        raise InvalidRequest(
            f"The port for gRPC needs packages that are not installed ({error.name}): {install_command('grpc')}"
        ) from None


def announce_grpc(settings: Settings, address: str) -> None:
    """Log the address."""
    log.info("listening for gRPC on %s%s", address, " (TLS)" if settings.tls_certificate else "")


def _reserved(host: str, port: int) -> socket.socket:
    try:
        with bind(host, port) as first:  # for itself, so that a port in use is an error
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
