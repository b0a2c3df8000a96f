"""`serve`: runs one worker in this process, or a supervisor of several worker processes."""

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import uvloop

from opensearch_ml_stream.plugin.metrics import MULTIPROC_DIR
from opensearch_ml_stream.plugin.server.listener import BACKLOG, announce, bind
from opensearch_ml_stream.plugin.server.supervisor import Supervisor
from opensearch_ml_stream.plugin.server.worker import configure_logging, run_worker
from opensearch_ml_stream.plugin.settings import Settings
from opensearch_ml_stream.plugin.store.open_store import check_store_url


def serve(settings: Settings) -> int:
    """Serve until a signal; return the exit code.

    OSError if the port cannot be bound, InvalidRequest if no store can have that URL.
    """
    configure_logging()
    check_store_url(settings.store)  # here, as a worker that cannot start is started again
    with tempfile.TemporaryDirectory(prefix="mlstream-") as runtime:
        with bind(settings.host, settings.port) as listener:
            bound = replace(settings, port=listener.getsockname()[1])
            if settings.workers <= 1:
                listener.listen(BACKLOG)
                announce(bound)
                uvloop.run(run_worker(bound, listener, Path(runtime)))
                return 0
        # Bound for itself first, so that a port in use is an error; then held, not listened on, for the workers.
        with bind(bound.host, bound.port, shared=True):
            os.environ[MULTIPROC_DIR] = runtime
            announce(bound)
            return Supervisor(bound, Path(runtime)).run()
