"""Clients that misbehave, on plain sockets, and what a worker holds while they do."""

import logging
import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import orjson
from integration_tests.support.conditions import PATIENCE_SECONDS, eventually
from integration_tests.support.sidecars import Sidecar, running_command
from integration_tests.support.worker_processes import resident_mib, sockets

IMPATIENT_WORKER = Path(__file__).parent / "impatient_worker.py"
log = logging.getLogger(__name__)
LIVE = b"GET /_health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Gauge:
    """The most memory that a process has, from its resident set each few milliseconds."""

    def __init__(self, pid: int) -> None:
        self.before = self.most = resident_mib(pid)
        self._pid = pid
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "Gauge":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        log.info("most memory: %.0f MiB, %.0f MiB more than before", self.most, self.growth)

    @property
    def growth(self) -> float:
        """MiB more than at the beginning."""
        return self.most - self.before

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            self.most = max(self.most, resident_mib(self._pid))


@contextmanager
def impatient_worker(folder: Path, limits: dict[str, Any], **settings: Any) -> Iterator[Sidecar]:
    """One worker without a supervisor; `limits` are those of its connections."""
    settings = {
        "store": f"sqlite:///{folder}/store.db",
        "trusted_connector_endpoints_regex": ["^http://127\\.0\\.0\\.1:.*$"],
        "private_ip_enabled": True,
        **settings,
    }
    arguments = [str(folder), orjson.dumps(settings).decode(), orjson.dumps(limits).decode()]
    with running_command([sys.executable, str(IMPATIENT_WORKER), *arguments], folder) as sidecar:
        yield sidecar


def address(sidecar: Sidecar) -> tuple[str, int]:
    return "127.0.0.1", int(sidecar.url.rpartition(":")[2])


def connect(sidecar: Sidecar) -> socket.socket:
    return socket.create_connection(address(sidecar), timeout=PATIENCE_SECONDS)


@contextmanager
def many(sidecar: Sidecar, number: int) -> Iterator[list[socket.socket]]:
    """So many connections, all closed at the end."""
    with ExitStack() as stack:
        yield [stack.enter_context(connect(sidecar)) for _ in range(number)]


def read_to_end(client: socket.socket) -> bytes:
    """What comes until the server closes; a reset ends it, too."""
    received = b""
    try:
        while data := client.recv(65536):
            received += data
    except ConnectionResetError:
        pass
    return received


def send_all(client: socket.socket, pieces: Iterable[bytes]) -> None:
    """Send all of it, unless the server has closed before."""
    try:
        for piece in pieces:
            client.sendall(piece)
    except (BrokenPipeError, ConnectionResetError):
        return


def ask(sidecar: Sidecar, request: bytes, closes: bool = False) -> bytes:
    """All that comes back for a request; with `closes` the client closes its side behind it."""
    with connect(sidecar) as client:
        client.sendall(request)
        if closes:
            client.shutdown(socket.SHUT_WR)
        return read_to_end(client)


@contextmanager
def nothing_left(sidecar: Sidecar, pid: int) -> Iterator[None]:
    """The worker has as many sockets afterwards as before, and serves the next request."""
    sidecar.client.get("/_health/live").raise_for_status()
    before = sockets(pid)
    yield
    eventually(lambda: sockets(pid) <= before)
    sidecar.client.get("/_health/live").raise_for_status()
