"""The commands `serve` and `demo`, which run until they are stopped."""

import asyncio
import errno
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import typer

from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed
from opensearch_ml_stream.plugin.cli.options import (
    Config,
    GrpcPort,
    Host,
    InsecureNoAuth,
    LogLevel,
    Port,
    StorePassword,
    StoreUrl,
    Workers,
)
from opensearch_ml_stream.plugin.cli.printing import print_note
from opensearch_ml_stream.plugin.cli.sidecar_options import CACerts, ClientCert
from opensearch_ml_stream.plugin.cli.store_password import with_store_password
from opensearch_ml_stream.plugin.installed_extensions import load_installed_settings
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.settings.sources import default_store, unknown_variables

_OWN = "opensearch_ml_stream."  # settings
_SQLITE = "sqlite:///"


def serve(
    config: Config = None,
    host: Host = None,
    port: Port = None,
    grpc_port: GrpcPort = None,
    workers: Workers = None,
    store: StoreUrl = None,
    store_password: StorePassword = None,
    log_level: LogLevel = None,
    insecure_no_auth: InsecureNoAuth = False,
    extension_options: Mapping[str, object] | None = None,
) -> None:
    """Run the sidecar until SIGTERM or Ctrl-C."""
    options: dict[str, object] = {
        _OWN + "host": host,
        _OWN + "port": port,
        _OWN + "grpc_port": grpc_port,
        _OWN + "workers": workers,
        _OWN + "store": store,
        _OWN + "log_level": log_level,
        _OWN + "security": "none" if insecure_no_auth else None,
    }
    settings = load_installed_settings(config, options={**options, **(extension_options or {})})
    for warning in unknown_variables():
        print_note(f"opensearch-ml-stream: warning: {warning}")
    settings = replace(settings, store=with_store_password(settings.store, store_password))
    make_store_folder(settings)
    # Loaded here, so that the commands which only talk to a sidecar start in half the time.
    server = import_module("opensearch_ml_stream.plugin.server.serve")
    asyncio.run(server.check_callers(settings))
    with _address_errors(settings):
        code: int = server.serve(settings)
    raise typer.Exit(code)


def demo(
    config: Config = None,
    host: Host = None,
    port: Port = None,
    store: StoreUrl = None,
    store_password: StorePassword = None,
    ca_certs: CACerts = None,
    client_cert: ClientCert = None,
) -> None:
    """Run the sidecar with a provider that needs no key, make two models, and show a first response.

    Its models are in a store of their own, unless --store names another.
    """
    own_store = store or default_store(os.environ, "demo")  # so that the user's own store is left alone
    options = {_OWN + "host": host, _OWN + "port": port, _OWN + "store": own_store}
    settings = load_installed_settings(config, options=options)
    settings = replace(settings, store=with_store_password(settings.store, store_password))
    make_store_folder(settings)
    # Loaded here, as `serve` needs none of it: the demo is a client of a server of its own.
    demonstration = import_module("opensearch_ml_stream.plugin.cli.demo_command")
    with _address_errors(settings):
        demonstration.run_demo(settings, config, ca_certs, client_cert)


def make_store_folder(settings: Settings) -> None:
    """Make the folder of an embedded store, for its owner alone: the store holds credentials and their key."""
    path = settings.store.removeprefix(_SQLITE)
    if path == settings.store or path == ":memory:":
        return
    folder = Path(path).parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise CommandFailed(
            f"Cannot make the store's folder {folder} ({error.strerror}); choose another with --store"
        ) from error


@contextmanager
def _address_errors(settings: Settings) -> Iterator[None]:
    address = f"{settings.host}:{settings.port}"
    try:
        yield
    except UnicodeError as error:  # of an invalid name, such as "a..b"
        raise CommandFailed(f"The host {settings.host} is not a host name; see --host") from error
    except OSError as error:
        if isinstance(error, socket.gaierror):
            raise CommandFailed(f"The host {settings.host} has no address ({error.strerror}); see --host") from error
        if error.errno == errno.EADDRINUSE:
            raise CommandFailed(
                f"{address} is in use: stop the program that listens there, or choose another port with --port"
            ) from error
        if error.errno in (errno.EADDRNOTAVAIL, errno.EACCES):
            raise CommandFailed(f"Cannot listen on {address}: {error.strerror}; see --host and --port") from error
        raise
