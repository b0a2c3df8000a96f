"""Clients that leave, dawdle or speak an older HTTP, at every stage of a request."""

import json
import socket
import time
from collections.abc import Iterator

import pytest
from integration_tests.faults.clients.hostile_clients import (
    LIVE,
    ask,
    connect,
    dawdle,
    impatient_worker,
    nothing_left,
    read_to_end,
)
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually, promptly
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import SSE_HEAD, Act, chunk, json_response, openai_delta, openai_stream
from integration_tests.support.raw_requests import predict_request
from integration_tests.support.sidecars import Sidecar

LIMITS = {"head_seconds": 1, "body_read_seconds": 1, "keep_alive_seconds": 60}
FIRST = [SSE_HEAD, chunk(openai_delta("first")), Act.WAIT]


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    settings = {"request_timeout_seconds": 3, "first_event_wait_seconds": 60, "heartbeat_seconds": 60}
    with impatient_worker(tmp_path_factory.mktemp("sidecar"), {**LIMITS, "request_seconds": 3}, **settings) as running:
        yield running


@pytest.fixture
def worker(sidecar: Sidecar) -> int:
    return sidecar.process.pid


def leave(client: socket.socket) -> None:
    client.shutdown(socket.SHUT_RDWR)
    client.close()


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_client_may_leave_in_the_middle_of_its_request(sidecar: Sidecar, worker: int, part: float) -> None:
    request = predict_request("m", "x" * 1000)
    with nothing_left(sidecar, worker):
        client = connect(sidecar)
        client.sendall(request[: int(len(request) * part)])
        leave(client)


@pytest.mark.parametrize("path", ["_predict/stream", "_predict"])
@pytest.mark.parametrize("script", [[Act.WAIT], FIRST], ids=["before the response", "in the middle"])
def test_the_provider_is_given_up_soon_after_a_client_that_left(
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
        promptly(lambda: provider.disconnects == 1, 4)


@pytest.mark.parametrize("wait", [0.0, 1.5])
@pytest.mark.parametrize("path", ["_predict/stream", "_predict"])
def test_a_client_that_closes_its_side_behind_its_request_gets_the_response(
    sidecar: Sidecar, worker: int, path: str, wait: float
) -> None:
    whole = json_response({"choices": [{"message": {"content": "b"}}]})
    script = [wait, *(whole if path == "_predict" else openai_stream(["a", "b"], 0.3))]
    with nothing_left(sidecar, worker), background_provider(script) as provider:
        model_id = sidecar.create_model(openai(provider.url))
        received = ask(sidecar, predict_request(model_id, "x", path), closes=True)
    assert received.count(b"HTTP/1.1 200 OK") == 1
    assert b'"b"' in received
    assert received.endswith(b"0\r\n\r\n" if path == "_predict/stream" else b"}")


@pytest.mark.parametrize("path", ["_predict/stream", "_predict"])
def test_an_http_1_0_client_gets_a_response_without_chunk_framing(sidecar: Sidecar, worker: int, path: str) -> None:
    whole = json_response({"choices": [{"message": {"content": "b"}}]})
    with (
        nothing_left(sidecar, worker),
        background_provider(whole if path == "_predict" else openai_stream(["a", "b"], 0.05)) as provider,
    ):
        model_id = sidecar.create_model(openai(provider.url))
        request = predict_request(model_id, "x", path).replace(b"HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"HTTP/1.0\r\n")
        head, _, body = ask(sidecar, request).partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head and b"\r\nconnection: close" in head
    lines = [json.loads(line) for line in body.splitlines() if line.strip()]
    assert "inference_results" in lines[-1]
    assert len(lines) == (1 if path == "_predict" else 3)


def test_a_slow_reader_gets_all_of_a_stream(sidecar: Sidecar, worker: int) -> None:
    texts = [f"{number} " + "x" * 1000 for number in range(200)]
    with nothing_left(sidecar, worker), background_provider(openai_stream(texts)) as provider:
        model_id = sidecar.create_model(openai(provider.url))
        with connect(sidecar) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
            client.sendall(predict_request(model_id, "x", close=True))
            received = b""
            while data := client.recv(4096):
                received += data
                time.sleep(0.001)
    assert received.count(b'"response":"') == 201
    assert received.endswith(b"0\r\n\r\n")


def test_a_body_may_come_a_byte_at_a_time(sidecar: Sidecar, worker: int) -> None:
    request = predict_request("no-such-model", "x", close=True)
    head, _, body = request.partition(b"\r\n\r\n")
    with nothing_left(sidecar, worker), connect(sidecar) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.sendall(head + b"\r\n\r\n")
        dawdle(client, body, 0.01)
        assert read_to_end(client).startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize(
    ("slow", "seconds"), [("head", 1), ("body", 1), ("pause", 3)], ids=["head", "no body", "a byte each half second"]
)
def test_a_client_that_takes_too_long_over_its_request_gets_408(
    sidecar: Sidecar, worker: int, slow: str, seconds: float
) -> None:
    head, _, body = predict_request("m", "x" * 100).partition(b"\r\n\r\n")
    with nothing_left(sidecar, worker), connect(sidecar) as client:
        began = time.monotonic()
        if slow == "head":
            dawdle(client, head, 0.3)
        else:
            client.sendall(head + b"\r\n\r\n")
        if slow == "pause":
            dawdle(client, body, 0.5)
        received = read_to_end(client)
    assert seconds <= time.monotonic() - began < 15
    assert received.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("bad", [b" / HTTP/1.1\r\n", b" /\r\n", b"\0", b" / HTTP/1.1\r\nHost: a\r\nHost: a\r\n"])
def test_a_refused_request_disturbs_no_other_connection(sidecar: Sidecar, worker: int, bad: bytes) -> None:
    with nothing_left(sidecar, worker), connect(sidecar) as good:
        assert ask(sidecar, b"GET" + bad + b"\r\n").startswith(b"HTTP/1.1 400 ")
        good.sendall(LIVE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert read_to_end(good).startswith(b"HTTP/1.1 200 ")
