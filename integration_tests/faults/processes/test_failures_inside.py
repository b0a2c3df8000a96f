"""What the operating system refuses, and defects beside the requests: the server lives, says so, and recovers."""

import json
import os
import re
import resource
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from integration_tests.cli.commands import COMMAND, environment
from integration_tests.support.conditions import eventually
from integration_tests.support.sidecars import Sidecar, running_sidecar
from integration_tests.support.worker_processes import descriptors, listeners, worker_pids

ON = {"opensearch_ml_stream.extensions.acme": "true"}
FORKS = """
import errno, os
from pathlib import Path

fork = os.fork


def fork_if_it_may():
    if (Path(__file__).parent / "no fork").exists():
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    return fork()


os.fork = fork_if_it_may
"""
EXTENSION = """
from contextlib import asynccontextmanager
from pathlib import Path

from opensearch_ml_stream.plugin.extension import Contribution, Extension, ServerProcess


def watching(name):
    async def turn():
        if (Path(__file__).parent / name).exists():
            raise KeyError("a secret prompt")
        return 0.05

    return turn


@asynccontextmanager
async def open_acme(core):
    async with core.background.running("acme", watching("worker")):
        yield Contribution()


def prepare(settings, folder):
    return True


class Running:
    async def drain(self, seconds):
        pass

    def kill(self):
        pass


@asynccontextmanager
async def run(settings, folder, paths, background):
    async with background.running("acme greeter", watching("process")):
        yield Running()


EXTENSION = Extension(
    name="acme",
    summary="Greets.",
    open="acme:open_acme",
    processes=(ServerProcess("greeter", prepare="acme:prepare", run="acme:run", has_tasks=True),),
)
"""


def problems(sidecar: Sidecar) -> list[str]:
    response = sidecar.client.get("/_health/ready")
    assert response.status_code == 200, response.text
    details: list[str] = response.json().get("details", [])
    return details


def failures(sidecar: Sidecar, task: str) -> float:
    [count] = [
        line.rpartition(" ")[2]
        for line in sidecar.client.get("/metrics").text.splitlines()
        if line.startswith(f'mlstream_background_failures_total{{task="{task}"}}')
    ]
    return float(count)


def problem(task: str, error: str) -> str:
    return f"The background task {task} has failed ({error}) and is tried again; see the log"


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which servers import."""
    folder = tmp_path / "code"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder


@pytest.mark.parametrize(("where", "task"), [("worker", "acme"), ("process", "acme greeter")])
def test_a_defect_beside_the_requests_of_any_process_is_told_by_each_worker_until_it_is_mended(
    tmp_path: Path, code: Path, where: str, task: str
) -> None:
    (metadata := code / "acme-1.0.dist-info").mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[opensearch_ml_stream.extensions]\nacme = acme:EXTENSION\n")
    (code / "acme.py").write_text(EXTENSION)
    with running_sidecar(tmp_path, settings=ON, arguments=("--workers", "2")) as sidecar:
        eventually(lambda: sidecar.log.read_text().count("serves") == 3)
        assert failures(sidecar, task) == 0
        (code / where).touch()
        eventually(lambda: failures(sidecar, task) > 2)
        assert problems(sidecar) == [problem(task, "KeyError")]
        log = sidecar.log.read_text()
        assert f"background task {task}: failed; it is tried again in 0.1 s" in log
        assert 'raise KeyError("a secret prompt")\nKeyError\n' in log
        (code / where).unlink()
        eventually(lambda: f"background task {task}: works again" in sidecar.log.read_text())
        eventually(lambda: problems(sidecar) == [])
        assert sidecar.stop() == 0


def test_a_worker_that_cannot_be_forked_is_replaced_later_while_the_other_serves(tmp_path: Path, code: Path) -> None:
    (code / "sitecustomize.py").write_text(FORKS)
    with running_sidecar(tmp_path, arguments=("--workers", "2")) as sidecar:
        eventually(lambda: sidecar.log.read_text().count("serves") == 2)
        (code / "no fork").touch()
        os.kill(worker_pids(sidecar)[0], signal.SIGKILL)
        eventually(lambda: "a worker cannot be started (Resource temporarily unavailable)" in sidecar.log.read_text())
        [_] = worker_pids(sidecar)
        for _ in range(20):  # the kernel spreads connections: none waits for the worker that is not there
            details = httpx.get(f"{sidecar.url}/_health/ready").json()["details"]
            assert details == [problem("supervisor", "BlockingIOError: Resource temporarily unavailable")]
        (code / "no fork").unlink()
        eventually(lambda: sidecar.log.read_text().count("serves") == 3)
        assert listeners(sidecar.url) == 2
        assert failures(sidecar, "supervisor") >= 1
        assert sidecar.stop() == 0


@contextmanager
def limited(pid: int, kind: int, limit: int) -> Iterator[None]:
    before = resource.prlimit(pid, kind)
    resource.prlimit(pid, kind, (limit, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, kind, before)


def test_a_worker_without_a_descriptor_goes_on_and_accepts_again_when_there_is_one(tmp_path: Path) -> None:
    with running_sidecar(tmp_path) as sidecar:
        [worker] = worker_pids(sidecar)
        address = ("127.0.0.1", int(sidecar.url.rpartition(":")[2]))
        with limited(worker, resource.RLIMIT_NOFILE, descriptors(worker)):
            with socket.create_connection(address, timeout=30) as turned_away:
                assert turned_away.recv(1) == b""
            assert sidecar.client.get("/_health/ready").json() == {"status": "ready"}
            eventually(lambda: "no file descriptor is left" in sidecar.log.read_text())
        assert httpx.get(f"{sidecar.url}/_health/ready").status_code == 200
        assert sidecar.stop() == 0


def test_a_keeper_whose_disk_is_full_goes_on_and_says_so(tmp_path: Path) -> None:
    (model := tmp_path / "models" / "m").mkdir(parents=True)
    (model / "model-settings.json").write_text(json.dumps({"name": "m", "implementation": "no.such.Module"}))
    with running_sidecar(tmp_path, arguments=("--models", str(tmp_path / "models"))) as sidecar:
        eventually(lambda: re.search(r"keeper ([0-9]+) serves", sidecar.log.read_text()))
        [keeper] = map(int, re.findall(r"keeper ([0-9]+) serves", sidecar.log.read_text()))
        with limited(keeper, resource.RLIMIT_FSIZE, 0):
            eventually(lambda: problems(sidecar) == [problem("runtime status", "OSError: File too large")])
            assert keeper in worker_pids(sidecar)
        eventually(lambda: problems(sidecar) == [])
        assert keeper in worker_pids(sidecar)
        assert sidecar.stop() == 0


@pytest.mark.parametrize("redirection", ["2>&-", "<&- >&- 2>&-", ">/dev/full 2>&1"])
def test_a_server_whose_output_is_closed_or_full_serves(tmp_path: Path, redirection: str) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    serve = [*COMMAND, "serve", "--port", str(port), "--store", f"sqlite:///{tmp_path}/store.db", "--workers", "2"]
    shell = ["sh", "-c", f'exec "$@" {redirection}', "sh", *serve]
    with subprocess.Popen(shell, env=environment(), stderr=subprocess.DEVNULL) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            eventually(lambda: is_live(url))
            assert httpx.post(f"{url}/_plugins/_ml/models/none/_predict", json={}).status_code == 404
            sidecar = Sidecar(url, process, httpx.Client(), tmp_path / "none")
            first = worker_pids(sidecar)[0]
            os.kill(first, signal.SIGKILL)
            eventually(lambda: len(pids := worker_pids(sidecar)) == 2 and first not in pids)
            eventually(lambda: is_live(url))
        finally:
            process.terminate()
        assert process.wait(timeout=50) == 0


def is_live(url: str) -> bool:
    try:
        return httpx.get(f"{url}/_health/live").status_code == 200
    except httpx.TransportError:
        return False
