"""A stop ends all processes within the grace time and 5 s, whatever they do and whenever it comes."""

import os
import resource
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from integration_tests.cli.commands import COMMAND, environment
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import (
    SSE_HEAD,
    Act,
    FakeProvider,
    Gate,
    Step,
    chunk,
    openai_delta,
    openai_stream,
)
from integration_tests.support.raw_requests import predict_request
from integration_tests.support.sidecars import Sidecar, running_sidecar
from integration_tests.support.worker_processes import descriptors, runs, worker_pids

GRACE = "opensearch_ml_stream.shutdown_grace_seconds"
ENDLESS: list[Step] = [SSE_HEAD, chunk(openai_delta("first")), Act.WAIT]


def connect(sidecar: Sidecar) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(sidecar.url.rpartition(":")[2])), timeout=30)


def has_closed_its_port(sidecar: Sidecar) -> bool:
    """Whether all its processes have been told to stop."""
    try:
        connect(sidecar).close()
    except ConnectionError:
        return True
    return False


def streaming(sidecar: Sidecar, provider: FakeProvider) -> socket.socket:
    """A client whose stream has begun."""
    model_id = sidecar.create_model(openai(provider.url))
    client = connect(sidecar)
    client.sendall(predict_request(model_id, "x"))
    received = b""
    while b"first" not in received:
        received += client.recv(65536)
    return client


def read_all(client: socket.socket) -> bytes:
    received = b""
    while data := client.recv(65536):
        received += data
    return received


@pytest.mark.slow  # the same with a clock that the test moves: plugin/tests/server/test_supervisor.py
def test_a_worker_that_does_not_stop_under_load_is_killed_after_the_grace_time(tmp_path: Path) -> None:
    with running_sidecar(tmp_path, settings={GRACE: "1"}) as sidecar, background_provider(ENDLESS) as provider:
        clients = [streaming(sidecar, provider) for _ in range(5)]
        (worker,) = worker_pids(sidecar)
        os.kill(worker, signal.SIGSTOP)
        began = time.monotonic()
        assert sidecar.stop() == 1
        assert time.monotonic() - began > 4  # the grace time, and five seconds for the rest
        assert not runs(worker)
        for client in clients:
            client.close()
    assert f"worker {worker} did not stop in time; it is killed" in sidecar.log.read_text()


def test_streams_get_their_grace_time_after_ctrl_c_and_nothing_is_traced(tmp_path: Path) -> None:
    gate = Gate()
    script: list[Step] = [SSE_HEAD, chunk(openai_delta("first")), gate, *openai_stream(["second"])[1:]]
    with running_sidecar(tmp_path, settings={GRACE: "60"}) as sidecar, background_provider(script) as provider:
        client = streaming(sidecar, provider)
        (worker,) = worker_pids(sidecar)
        for pid in (worker, sidecar.process.pid):  # a terminal sends it to all
            os.kill(pid, signal.SIGINT)
        eventually(lambda: has_closed_its_port(sidecar))
        gate.open()
        assert b"second" in read_all(client)
        client.close()
        assert sidecar.process.wait(30) == 0
    assert "Traceback" not in sidecar.log.read_text()
    assert not runs(worker)


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with running_sidecar(tmp_path, settings={GRACE: "60"}) as sidecar, background_provider(ENDLESS) as provider:
        client = streaming(sidecar, provider)
        (worker,) = worker_pids(sidecar)
        sidecar.process.send_signal(signal.SIGTERM)
        eventually(lambda: has_closed_its_port(sidecar))
        assert sidecar.stop() == 0  # which waits for less than the grace time
        assert b'"error"' in read_all(client)
        client.close()
        assert not runs(worker)


@pytest.mark.parametrize(
    "delay", [0.0, pytest.param(0.05, marks=pytest.mark.slow), pytest.param(0.3, marks=pytest.mark.slow)]
)
def test_a_stop_while_it_starts_ends_all_processes_without_an_error(tmp_path: Path, delay: float) -> None:
    log = tmp_path / "log"
    command = [*COMMAND, "serve", "--port", "0", "--workers", "3", "--store", f"sqlite:///{tmp_path}/store.db"]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment(), start_new_session=True)
    eventually(lambda: b"listening" in log.read_bytes())
    time.sleep(delay)
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    assert all(" INFO " in line for line in log.read_text().splitlines()), log.read_text()


def test_without_descriptors_streams_go_on_and_clients_are_accepted_again_when_there_are_some(
    tmp_path: Path,
) -> None:
    gate = Gate()
    script: list[Step] = [SSE_HEAD, chunk(openai_delta("first")), gate, *openai_stream(["second"])[1:]]
    with (
        background_provider(script) as provider,
        running_sidecar(tmp_path) as sidecar,  # on one that others use, a connection that ends leaves a descriptor
        streaming(sidecar, provider) as client,
    ):
        (worker,) = worker_pids(sidecar)
        limits = resource.prlimit(worker, resource.RLIMIT_NOFILE)
        resource.prlimit(worker, resource.RLIMIT_NOFILE, (descriptors(worker), limits[1]))
        try:
            with connect(sidecar):
                eventually(lambda: "no file descriptor is left" in sidecar.log.read_text())
        finally:
            resource.prlimit(worker, resource.RLIMIT_NOFILE, limits)
        assert httpx.get(f"{sidecar.url}/_health/live", timeout=30).status_code == 200
        gate.open()
        received = b""
        while b'"is_last":true' not in received:
            received += client.recv(65536)
        assert b"second" in received
