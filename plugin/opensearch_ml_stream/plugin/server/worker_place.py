"""What a server gives to each of its workers."""

import socket
from dataclasses import dataclass
from pathlib import Path

from opensearch_ml_stream.plugin.server.heartbeats import Heartbeats
from opensearch_ml_stream.plugin.task_failures import TaskFailures
from opensearch_ml_stream.plugin.tls.files import Contents


@dataclass(frozen=True, slots=True)
class WorkerPlace:
    """The folder `runtime` is shared by all, `parent` is a descriptor that is at its end when the server has ended."""

    listener: socket.socket
    runtime: Path
    parent: int
    heartbeats: Heartbeats
    failures: TaskFailures
    number: int
    certificate_files: Contents | None = None  # what those of the port's TLS held when the server started
    grpc_address: str | None = None
    login_key: bytes | None = None  # which no file ever holds
