"""Clients that send or hold much: what they get, how much memory the worker takes meanwhile, and that it recovers."""

import json
import resource
import select
import socket
from collections.abc import Iterator

import pytest
from integration_tests.faults.clients.hostile_clients import (
    LIVE,
    Gauge,
    ask,
    connect,
    many,
    nothing_left,
    read_to_end,
    send_all,
)
from integration_tests.support.conditions import eventually
from integration_tests.support.sidecars import Sidecar, running_sidecar
from integration_tests.support.worker_processes import MIB, descriptors, worker_pids

from opensearch_ml_stream.plugin.logs.configuration import MAX_LINES_ALIKE

BODIES = 32  # MiB of all bodies together


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    settings = {"opensearch_ml_stream.max_total_body_size": str(BODIES * MIB)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MALLOC_MMAP_THRESHOLD_", str(128 * 1024))  # what is large and freed goes back at once
        with running_sidecar(tmp_path_factory.mktemp("sidecar"), settings=settings) as running:
            yield running


@pytest.fixture
def worker(sidecar: Sidecar) -> int:
    (pid,) = worker_pids(sidecar)
    return pid


@pytest.mark.parametrize(
    "piece", [b"x" * MIB, b"X-Header: " + b"x" * 990 + b"\r\n"], ids=["200 MiB in one header", "99 MiB of lines"]
)
def test_a_head_without_end_is_431_and_takes_no_memory(sidecar: Sidecar, worker: int, piece: bytes) -> None:
    size = 200 * MIB if len(piece) == MIB else 99 * MIB
    with nothing_left(sidecar, worker), Gauge(worker) as gauge, connect(sidecar) as client:
        client.sendall(b"GET /_health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        send_all(client, (piece * (MIB // len(piece)) for _ in range(size // MIB)))
        received = read_to_end(client)
    assert received.startswith(b"HTTP/1.1 431 ")
    assert json.loads(received.partition(b"\r\n\r\n")[2])["status"] == 431
    assert gauge.growth < 16


def responded(clients: list[socket.socket]) -> list[socket.socket]:
    """Those for whom something has come."""
    return select.select(clients, [], [], 0)[0]


def test_half_sent_bodies_take_no_more_memory_than_all_bodies_may(sidecar: Sidecar, worker: int) -> None:
    head = (
        b"POST /_plugins/_ml/models/m/_predict/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    )
    request = head + b"Content-Length: %d\r\n\r\n" % (10 * MIB - 1) + b" " * (5 * MIB)
    with nothing_left(sidecar, worker), Gauge(worker) as gauge, many(sidecar, 30) as clients:
        for client in clients:
            send_all(client, [request])
        eventually(lambda: len(responded(clients)) >= len(clients) - BODIES // 5)
        refused = [client.recv(65536) for client in responded(clients)]
        assert {one.partition(b"\r\n")[0] for one in refused} == {b"HTTP/1.1 429 Too Many Requests"}
        assert all(b"\r\nretry-after: 1\r\n" in one for one in refused)
        assert b"opensearch_ml_stream.max_total_body_size" in refused[0]
        assert ask(sidecar, LIVE, closes=True).startswith(b"HTTP/1.1 200 OK")
    assert gauge.growth < BODIES + 48


@pytest.mark.slow  # the times themselves are those of plugin/tests/server/http1/test_connection_limits.py
@pytest.mark.parametrize(
    "request_bytes", [b"", b"GET /_health", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Header: y\r\n"]
)
def test_3000_silent_clients_are_closed_in_time(impatient: Sidecar, request_bytes: bytes) -> None:
    pid = impatient.process.pid
    with nothing_left(impatient, pid), Gauge(pid) as gauge, many(impatient, 3000) as clients:
        for client in clients:
            client.sendall(request_bytes)
        answers = [read_to_end(client) for client in clients]
    expected = b"HTTP/1.1 408 " if request_bytes else b""
    assert all(answer.startswith(expected) and bool(answer) is bool(expected) for answer in answers)
    assert gauge.growth < 80


@pytest.mark.slow
def test_as_many_clients_as_descriptors_allow_are_connected_and_more_are_closed(sidecar: Sidecar, worker: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    most = min(10_000, (hard - 100) // 2)
    number = min(most + 100, hard - 200)
    with nothing_left(sidecar, worker), Gauge(worker) as gauge, many(sidecar, number) as clients:
        eventually(lambda: descriptors(worker) >= min(most, number))
        clients[0].sendall(LIVE)
        assert clients[0].recv(65536).startswith(b"HTTP/1.1 200 OK")
        if number > most:
            assert clients[-1].recv(1) == b""
            assert 1 <= sidecar.log.read_text().count("clients are connected, which is the limit") <= MAX_LINES_ALIKE
    assert gauge.growth < 150
