"""What an attacker or a bad network does to the gRPC port: each fault ends its own call, and the workers serve on."""

import os
import random
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from integration_tests.server.grpc_port.ml_service.grpc_ports import Port, running_port
from integration_tests.server.grpc_port.ml_service.ml_service_client import (
    METHOD,
    Request,
    Response,
    ml_service_client,
    read,
    request,
)
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually, promptly
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import SSE_HEAD, Act, Script, chunk, openai_delta, openai_stream
from integration_tests.support.worker_processes import resident_mib, worker_pids

MIB = 2**20
StatusCode = grpc.StatusCode
INFER = "/inference.GRPCInferenceService/ModelInfer"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Port]:
    settings = {"opensearch_ml_stream.max_connections": "40"}
    with running_port(tmp_path_factory.mktemp("sidecar"), settings=settings) as running:
        yield running


@pytest.fixture
def serving(port: Port) -> Iterator[Port]:
    """The port, whose worker must be the same and serve as well after the test."""
    workers = worker_pids(port.sidecar)
    yield port
    with background_provider(openai_stream(["ok"])) as provider:
        assert port.client.predict(port.sidecar.create_model(openai(provider.url))).text == "ok"
    assert worker_pids(port.sidecar) == workers


def unary(port: Port, method: str, data: bytes, **options: Any) -> tuple[grpc.StatusCode, str]:
    """The status of a call whose message is any bytes."""
    try:
        port.client.channel.unary_unary(method, None, None)(data, timeout=30, **options)
    except grpc.RpcError as error:
        return error.code(), error.details() or ""
    return StatusCode.OK, ""


def field(number: int, content: bytes) -> bytes:
    length, encoded = len(content), bytearray([number << 3 | 2])
    while length > 0x7F:
        encoded.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*encoded, length]) + content


def test_a_message_over_the_limit_is_refused(serving: Port) -> None:
    refused = serving.client.send(field(1, b"m" * 11 * MIB))
    assert refused.status is StatusCode.RESOURCE_EXHAUSTED


def test_a_small_message_that_unpacks_to_a_large_one_is_refused(serving: Port) -> None:
    (worker,) = worker_pids(serving.sidecar)
    before = resident_mib(worker)
    call = serving.client.channel.unary_stream(METHOD, None, None)
    with pytest.raises(grpc.RpcError) as refused:
        list(call(field(1, b"m" * 400 * MIB), timeout=30, compression=grpc.Compression.Gzip))
    assert refused.value.code() is StatusCode.RESOURCE_EXHAUSTED
    assert resident_mib(worker) - before < 60


def test_random_bytes_are_refused_as_a_message(serving: Port) -> None:
    draw = random.Random(7)
    for _ in range(100):
        data = draw.randbytes(draw.randrange(1, 60))
        assert serving.client.send(data).status is StatusCode.INVALID_ARGUMENT
        assert unary(serving, INFER, data)[0] in (StatusCode.INVALID_ARGUMENT, StatusCode.NOT_FOUND)


@pytest.mark.parametrize(
    "raw", [b"\xff\xff\xff\xff", b"\xff\xff\xff\x7fabc", b"\x05\x00\x00\x00abc", b"\x01\x00\x00", b"\x01\x00\x00\x00ab"]
)
def test_raw_contents_whose_lengths_lie_are_refused(serving: Port, raw: bytes) -> None:
    with background_provider(openai_stream(["ok"])) as provider:
        model_id = serving.sidecar.create_model(openai(provider.url))
        tensor = field(1, b"text") + field(2, b"BYTES") + b"\x18\x01"
        status, reason = unary(serving, INFER, field(1, model_id.encode()) + field(5, tensor) + field(7, raw))
    assert status is StatusCode.INVALID_ARGUMENT, reason
    assert provider.requests == []


@pytest.mark.parametrize(
    "message",
    [
        field(3, field(1, b"\x0a\x00" * (2 * MIB))),  # MLService: messages
        field(5, b"") * MIB * 2,  # V2: inputs
        field(7, b"") * MIB * 2,  # raw_input_contents
        field(5, field(5, field(8, b"") * MIB * 2)),  # bytes_contents
    ],
    ids=["messages", "inputs", "raw_input_contents", "bytes_contents"],
)
def test_a_message_of_millions_of_empty_parts_takes_no_more_memory_than_ten_of_its_size(
    serving: Port, message: bytes
) -> None:
    (worker,) = worker_pids(serving.sidecar)
    before = peak_mib(worker)
    method = METHOD if message[:1] == b"\x1a" else INFER
    status, _ = unary(serving, method, field(1, b"m") + message)
    assert status in (StatusCode.INVALID_ARGUMENT, StatusCode.NOT_FOUND)
    assert peak_mib(worker) - before < 10 * len(message) / MIB


def peak_mib(pid: int) -> float:
    """The most memory that the process has had since it was last asked."""
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    return int(line.split()[1]) / 1024


@pytest.mark.parametrize(
    "metadata",
    [
        [("authorization", "Basic " + "A" * 5_000)],
        [("authorization", "Bearer a"), ("authorization", "Bearer b")],
        [("x-request-id", 'a" level=error msg="fake')],
        [("x-tenant-id", " "), ("x-tenant-id", "b")],
        [("grpc-trace-bin", bytes(range(256)))],
        [(f"x-{number}", "v" * 20) for number in range(300)],
    ],
    ids=["long", "twice", "forged log line", "tenants", "binary", "many"],
)
def test_strange_metadata_do_no_harm(serving: Port, metadata: list[tuple[str, str]]) -> None:
    with background_provider(openai_stream(["ok"])) as provider:
        model_id = serving.sidecar.create_model(openai(provider.url))
        with ml_service_client(serving.target, *metadata) as client:
            assert client.predict(model_id).text == "ok"
    assert 'level=error msg="fake' not in serving.sidecar.log.read_text()


def test_metadata_over_their_limit_are_refused(serving: Port) -> None:
    with ml_service_client(serving.target, ("x-large", "v" * 70_000)) as client:
        assert client.predict("m").status is StatusCode.RESOURCE_EXHAUSTED


def test_a_deadline_of_a_millisecond_is_kept(serving: Port) -> None:
    with background_provider(openai_stream(["ok"], pause=0.05)) as provider:
        model_id = serving.sidecar.create_model(openai(provider.url))
        statuses = {serving.client.predict(model_id, timeout=0.001).status for _ in range(50)}
    assert statuses == {StatusCode.DEADLINE_EXCEEDED}


def test_a_slow_reader_holds_up_the_provider_and_takes_no_memory(serving: Port) -> None:
    (worker,) = worker_pids(serving.sidecar)
    texts = ["x" * 1_000] * 40_000
    with background_provider(openai_stream(texts)) as provider:
        model_id = serving.sidecar.create_model(openai(provider.url))
        before = resident_mib(worker)
        calls = [serving.client.start(request(model_id), timeout=60) for _ in range(4)]
        for call in calls:
            next(call)
        time.sleep(1)
        assert resident_mib(worker) - before < 40
        streamed = read(calls[0])
        assert (len(streamed.texts), streamed.status) == (40_000, StatusCode.OK)
        for call in calls:
            call.cancel()


def test_idle_connections_are_bounded_and_let_others_in_once_they_close(serving: Port) -> None:
    host, _, number = serving.target.rpartition(":")
    idle = [socket.create_connection((host, int(number))) for _ in range(120)]
    try:
        promptly(lambda: sum(is_open(connection) for connection in idle) <= 40, 5)
    finally:
        for connection in idle:
            connection.close()
    with ml_service_client(serving.target) as client:
        promptly(lambda: client.predict("m", timeout=1).status is StatusCode.NOT_FOUND, 5)


def is_open(connection: socket.socket) -> bool:
    """Whether the server has kept a connection on which it may already have sent something."""
    connection.setblocking(False)
    try:
        while connection.recv(65_536):
            pass
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def test_a_stop_ends_streams_with_a_status_within_its_grace(tmp_path: Path) -> None:
    script: Script = [SSE_HEAD, chunk(openai_delta("first")), Act.WAIT]
    settings = {"opensearch_ml_stream.shutdown_grace_seconds": "1"}
    with running_port(tmp_path, settings=settings) as port, background_provider(script) as provider:
        call = port.client.start(request(port.sidecar.create_model(openai(provider.url))))
        next(call)
        began = time.monotonic()
        port.sidecar.process.send_signal(signal.SIGTERM)
        streamed = read(call)
        assert streamed.status is StatusCode.UNAVAILABLE
        assert "stopping" in streamed.details
        assert port.sidecar.process.wait(timeout=10) == 0
        assert time.monotonic() - began < 6


def test_a_worker_that_is_killed_takes_its_own_streams_only(tmp_path: Path) -> None:
    script: Script = [SSE_HEAD, chunk(openai_delta("first")), Act.WAIT]
    with running_port(tmp_path, arguments=("--workers", "2")) as port, background_provider(script) as provider:
        model_id = port.sidecar.create_model(openai(provider.url))
        eventually(lambda: _listeners(port) >= 2)
        channels = [grpc.insecure_channel(port.target, [("grpc.use_local_subchannel_pool", 1)]) for _ in range(16)]
        calls = [
            channel.unary_stream(METHOD, Request.SerializeToString, Response.FromString)(request(model_id), timeout=30)
            for channel in channels
        ]
        for call in calls:
            next(call)
        victim, *_ = worker_pids(port.sidecar)
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: any(not call.is_active() for call in calls))
        time.sleep(0.3)
        lost = [call for call in calls if not call.is_active()]
        assert 0 < len(lost) < len(calls)
        assert {call.code() for call in lost} == {StatusCode.UNAVAILABLE}
        eventually(lambda: len(worker_pids(port.sidecar)) == 2)
        for call in calls:
            call.cancel()
        with background_provider(openai_stream(["ok"])) as again:
            other = port.sidecar.create_model(openai(again.url))
            for _ in range(6):
                with ml_service_client(port.target) as client:
                    assert client.predict(other).text == "ok"
        for channel in channels:
            channel.close()


def _listeners(port: Port) -> int:
    """Return how many sockets listen on the port: one for each worker that has begun to serve it."""
    suffix, listens = f":{int(port.target.rpartition(':')[2]):04X}", "0A"
    sockets = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()]
    return sum(fields[1].endswith(suffix) and fields[3] == listens for fields in sockets)
