"""`serve`: open the ports, and run the supervisor of the worker processes."""

import gc
import os
import secrets
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from time import monotonic

from opensearch_ml_stream.plugin.extension import Extension, ServerProcess, load
from opensearch_ml_stream.plugin.installed_extensions import declared_extensions, enabled, paths_of
from opensearch_ml_stream.plugin.logs.configuration import configure_logging
from opensearch_ml_stream.plugin.security.start_checks import check_start
from opensearch_ml_stream.plugin.server import file_descriptors
from opensearch_ml_stream.plugin.server.listener import Listeners, announce, announce_grpc, reserving_grpc_port
from opensearch_ml_stream.plugin.server.port_certificate import (
    create_certificate,
    read_certificate_files,
    warn_of_dates,
)
from opensearch_ml_stream.plugin.server.processes import Heartbeats, ProcessContext, Processes, WorkerContext
from opensearch_ml_stream.plugin.server.side_process import run_side_process
from opensearch_ml_stream.plugin.server.supervisor import Supervisor
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.store.open_store import check_store_url, open_store
from opensearch_ml_stream.plugin.task_failures import TaskFailures


def serve(settings: Settings) -> int:
    """Serve until a signal; return the exit code: 0, or 1 if no worker could serve or one had to be killed.

    Raises OSError if the HTTP port cannot be bound, InvalidRequest if the settings of the store, the certificate, the
    gRPC port or an extension are wrong.
    """
    file_descriptors.open_standard_streams()
    configure_logging(settings.log_level, settings.log_format)
    check_store_url(settings.store)
    extensions = enabled(declared_extensions(settings), settings)
    _check_extensions(extensions, settings)
    certificate_files = read_certificate_files(settings)
    if certificate_files is not None:
        warn_of_dates(create_certificate(settings, certificate_files))
    file_descriptors.raise_limit()
    machine = Processes()
    with (
        machine.handling_signals(),
        tempfile.TemporaryDirectory(prefix="mlstream-") as runtime,
        Listeners(settings.host, settings.port, settings.workers) as listeners,
        reserving_grpc_port(settings, extensions) as grpc_address,
    ):
        bound = replace(settings, port=listeners.port)
        sides = _side_processes(extensions, bound, Path(runtime))
        if bound.workers > 1:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = runtime
        announce(bound)
        if grpc_address is not None:
            announce_grpc(settings, grpc_address)
        # After that line, as prometheus_client reads the variable when it is imported; before the workers are forked.
        worker = import_module("opensearch_ml_stream.plugin.server.worker")
        _load_extensions(extensions)
        gc.freeze()  # else collections would copy memory that workers share with this process, and delay its end
        places = bound.workers + len(sides)
        heartbeats, failures = Heartbeats(places), TaskFailures(places + 1)
        login_key = secrets.token_bytes(32)

        def work(place: int, parent: int) -> None:
            given = (Path(runtime), parent, heartbeats, failures, place)
            if place >= bound.workers:
                listeners.close()
                side = sides[place - bound.workers]
                run_side_process(side, bound, paths_of(extensions), ProcessContext(*given))
                return
            own = WorkerContext(*given, listeners.own_socket(place), certificate_files, grpc_address, login_key)
            worker.run_worker(bound, own)

        titles = [side.title for side in sides]
        supervisor = Supervisor(
            bound,
            machine,
            heartbeats,
            listeners,
            work,
            worker.remove_worker_gauges,
            monotonic,
            failures.of(places),
            titles,
        )
        return supervisor.run()


async def check_callers(settings: Settings) -> None:
    """Raise InvalidRequest if clients on other machines need an account and there is none."""
    configure_logging(settings.log_level, settings.log_format)
    async with open_store(settings.store, settings.index_prefix) as store:
        await check_start(settings.security, settings.host, store)


def _check_extensions(extensions: Sequence[Extension], settings: Settings) -> None:
    for extension in extensions:
        if extension.check:
            load(extension.check)(settings)


def _load_extensions(extensions: Sequence[Extension]) -> None:
    for extension in extensions:
        for reference in (extension.open, *extension.providers):
            if reference:
                load(reference)


def _side_processes(extensions: Sequence[Extension], settings: Settings, folder: Path) -> list[ServerProcess]:
    """Return the processes that extensions run beside the workers."""
    declared = [process for extension in extensions for process in extension.processes]
    return [process for process in declared if load(process.prepare)(settings, folder)]
