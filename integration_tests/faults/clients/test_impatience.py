"""Clients that leave, dawdle or speak an older HTTP, at every stage of a request."""

import json
import socket

import pytest
from integration_tests.faults.clients.hostile_clients import (
    LIVE,
    ask,
    connect,
    nothing_left,
    read_to_end,
)
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import (
    SSE_HEAD,
    Act,
    Gate,
    chunk,
    json_response,
    openai_delta,
    openai_stream,
)
from integration_tests.support.raw_requests import predict_request
from integration_tests.support.sidecars import Sidecar
from integration_tests.support.worker_processes import sockets

FIRST = [SSE_HEAD, chunk(openai_delta("first")), Act.WAIT]


@pytest.fixture
def sidecar(impatient: Sidecar) -> Sidecar:
    return impatient


@pytest.fixture
def worker(sidecar: Sidecar) -> int:
    return sidecar.process.pid


def leave(client: socket.socket) -> None:
    client.shutdown(socket.SHUT_RDWR)
    client.close()


def test_a_client_may_leave_in_the_middle_of_its_request(sidecar: Sidecar, worker: int) -> None:
    with nothing_left(sidecar, worker):
        client = connect(sidecar)
        client.sendall(predict_request("m", "x" * 1000)[:-100])
        leave(client)


@pytest.mark.parametrize("path", ["_predict/stream", "_predict"])
@pytest.mark.parametrize("script", [[Act.WAIT], FIRST], ids=["before the response", "in the middle"])
def test_the_provider_is_given_up_after_a_client_that_left(
    sidecar: Sidecar, worker: int, script: list[bytes | Act], path: str
) -> None:
    with nothing_left(sidecar, worker), background_provider(script) as provider:
        model_id = sidecar.create_model(openai(provider.url))
        client = connect(sidecar)
        client.sendall(predict_request(model_id, "x", path))
        eventually(lambda: provider.requests)
        if script is FIRST and path == "_predict/stream":
            assert client.recv(65536)
        leave(client)
        eventually(lambda: provider.disconnects == 1)


@pytest.mark.parametrize("path", ["_predict/stream", "_predict"])
def test_a_client_that_closes_its_side_behind_its_request_gets_the_response(
    sidecar: Sidecar, worker: int, path: str
) -> None:
    gate = Gate()
    whole = json_response({"choices": [{"message": {"content": "b"}}]})
    script = [gate, *(whole if path == "_predict" else openai_stream(["a", "b"]))]
    with nothing_left(sidecar, worker), background_provider(script) as provider:
        model_id = sidecar.create_model(openai(provider.url))
        with connect(sidecar) as client:
            client.sendall(predict_request(model_id, "x", path))
            client.shutdown(socket.SHUT_WR)
            received = client.recv(65536)  # a probe or a heartbeat, which one that has left would reset
            gate.open()
            received += read_to_end(client)
    assert received.count(b"HTTP/1.1 200 OK") == 1
    assert b'"b"' in received
    assert received.endswith(b"0\r\n\r\n" if path == "_predict/stream" else b"}")


@pytest.mark.parametrize("path", ["_predict/stream", "_predict"])
def test_an_http_1_0_client_gets_a_response_without_chunk_framing(sidecar: Sidecar, worker: int, path: str) -> None:
    whole = json_response({"choices": [{"message": {"content": "b"}}]})
    with (
        nothing_left(sidecar, worker),
        background_provider(whole if path == "_predict" else openai_stream(["a", "b"])) as provider,
    ):
        model_id = sidecar.create_model(openai(provider.url))
        request = predict_request(model_id, "x", path).replace(b"HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"HTTP/1.0\r\n")
        head, _, body = ask(sidecar, request).partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head and b"\r\nconnection: close" in head
    lines = [json.loads(line) for line in body.splitlines() if line.strip()]
    assert "inference_results" in lines[-1]
    assert len(lines) == (1 if path == "_predict" else 3)


def test_a_body_may_come_a_byte_at_a_time(sidecar: Sidecar, worker: int) -> None:
    request = predict_request("no-such-model", "x", close=True)
    head, _, body = request.partition(b"\r\n\r\n")
    with nothing_left(sidecar, worker), connect(sidecar) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.sendall(head + b"\r\n\r\n")
        for byte in body:
            client.sendall(bytes([byte]))
        assert read_to_end(client).startswith(b"HTTP/1.1 404 ")


def test_a_client_that_reads_nothing_of_a_large_response_is_given_up(sidecar: Sidecar, worker: int) -> None:
    response = json_response({"choices": [{"message": {"content": "z" * 20_000_000}}]})
    with nothing_left(sidecar, worker), background_provider(response) as provider:
        model_id = sidecar.create_model(openai(provider.url))
        before = sockets(worker)
        with connect(sidecar) as client:
            client.sendall(predict_request(model_id, "a", "_predict"))
            eventually(lambda: provider.played == 1)
            eventually(lambda: sockets(worker) <= before + 1)  # the connection to the provider may be kept
            assert len(read_to_end(client)) < 20_000_000


def test_a_refused_request_disturbs_no_other_connection(sidecar: Sidecar, worker: int) -> None:
    with nothing_left(sidecar, worker), connect(sidecar) as good:
        assert ask(sidecar, b"GET\0\r\n").startswith(b"HTTP/1.1 400 ")
        good.sendall(LIVE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert read_to_end(good).startswith(b"HTTP/1.1 200 ")
