"""The sidecar as its operator starts it: a process, a port, signals."""

import os
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from integration_tests.support.conditions import eventually

LOOPBACK = {
    "plugins.ml_commons.trusted_connector_endpoints_regex": '["^https?://(127\\\\.0\\\\.0\\\\.1|localhost)(:[0-9]+)?/.*$"]',
    "plugins.ml_commons.connector.private_ip_enabled": "true",
}
START_SECONDS = 50
_LISTENING = re.compile(r'listening on (https?://[^\s"]+)')


@dataclass(frozen=True, slots=True)
class Sidecar:
    """`client` speaks to it; `log` is what it has written so far."""

    url: str
    process: subprocess.Popen[bytes]
    client: httpx.Client
    log: Path

    def create_model(self, connector: Mapping[str, Any], **fields: Any) -> str:
        """The id of a model over a new connector."""
        connector_id = self.post("/connectors/_create", connector)["connector_id"]
        body = {"name": "m", "function_name": "remote", "connector_id": connector_id, **fields}
        return str(self.post("/models/_register", body)["model_id"])

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The response of a management call that must succeed."""
        response = self.client.post(f"/_plugins/_ml{path}", json=body)
        assert response.status_code == 200, response.text
        created: dict[str, Any] = response.json()
        return created

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Sends the signal and waits for the end; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=START_SECONDS)


@contextmanager
def running_sidecar(
    folder: Path,
    store: str = "",
    settings: Mapping[str, str] | None = None,
    arguments: tuple[str, ...] = (),
    trust: ssl.SSLContext | bool = True,
) -> Iterator[Sidecar]:
    """A sidecar on a free port over `store` (a new embedded one by default), stopped at the end.

    `trust` is the client's TLS, for one that speaks HTTPS.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MLSTREAM_")}
    for name, value in {**LOOPBACK, **(settings or {})}.items():
        environment["MLSTREAM_SETTING__" + name.upper().replace(".", "__")] = value
    command = [sys.executable, "-m", "opensearch_ml_stream.plugin", "serve", "--port", "0"]
    command += ["--store", store or f"sqlite:///{folder}/store.db", *arguments]
    with running_command(command, folder, environment, trust) as sidecar:
        yield sidecar


@contextmanager
def running_command(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    trust: ssl.SSLContext | bool = True,
) -> Iterator[Sidecar]:
    """A sidecar that this command starts, and that logs its URL; stopped at the end."""
    log = folder / f"sidecar-{time.monotonic_ns()}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        url = _wait_for_url(process, log)
        with httpx.Client(base_url=url, timeout=30, verify=trust) as client:
            _wait_until_live(client)
            yield Sidecar(url, process, client, log)
    finally:
        process.terminate()
        try:
            process.wait(timeout=START_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for_url(process: subprocess.Popen[bytes], log: Path) -> str:
    def listening() -> re.Match[str] | None:
        match = _LISTENING.search(log.read_text())
        assert match or process.poll() is None, f"the sidecar ended: {log.read_text()}"
        return match

    eventually(listening, START_SECONDS)
    match = listening()
    assert match is not None
    return match[1]


def _wait_until_live(client: httpx.Client) -> None:
    """With several workers the port is announced before the first of them listens."""

    def live() -> bool:
        try:
            client.get("/_health/live").raise_for_status()
        except httpx.TransportError:
            return False
        return True

    eventually(live, START_SECONDS)
