"""What an attacker or a bad network does to the gRPC port: each fault ends its own call, and the workers serve on."""

import random
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from integration_tests.server.grpc_port.ml_service.grpc_ports import Port, running_port
from integration_tests.server.grpc_port.ml_service.ml_service_client import (
    METHOD,
    ml_service_client,
    read,
    request,
)
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import Act, openai_stream
from integration_tests.support.worker_processes import resident_mib, worker_pids

MIB = 2**20
MAX_BODY_MIB = 5
StatusCode = grpc.StatusCode
INFER = "/inference.GRPCInferenceService/ModelInfer"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Port]:
    settings = {
        "opensearch_ml_stream.max_connections": "40",
        "opensearch_ml_stream.max_body_size": str(MAX_BODY_MIB * MIB),
    }
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
    refused = serving.client.send(field(1, b"m" * (MAX_BODY_MIB + 1) * MIB))
    assert refused.status is StatusCode.RESOURCE_EXHAUSTED


def test_a_small_message_that_unpacks_to_a_large_one_is_refused(serving: Port) -> None:
    (worker,) = worker_pids(serving.sidecar)
    before = resident_mib(worker)
    call = serving.client.channel.unary_stream(METHOD, None, None)
    with pytest.raises(grpc.RpcError) as refused:
        list(call(field(1, b"m" * 200 * MIB), timeout=30, compression=grpc.Compression.Gzip))
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
    with background_provider([Act.WAIT]) as provider:
        model_id = serving.sidecar.create_model(openai(provider.url))
        statuses = {serving.client.predict(model_id, timeout=0.001).status for _ in range(50)}
    assert statuses == {StatusCode.DEADLINE_EXCEEDED}


def test_a_slow_reader_holds_up_the_provider_and_takes_no_memory(serving: Port) -> None:
    """Another client reads as much meanwhile, so that a server that reads on would have read the stream to its end."""
    (worker,) = worker_pids(serving.sidecar)
    texts = ["x" * 20_000] * 1_500
    with background_provider(openai_stream(texts)) as provider, background_provider(openai_stream(texts)) as other:
        slowly_read, quickly_read = (serving.sidecar.create_model(openai(one.url)) for one in (provider, other))
        before = resident_mib(worker)
        slow = serving.client.start(request(slowly_read), timeout=60)
        next(slow)
        assert len(serving.client.predict(quickly_read).text) == 30_000_000
        assert provider.played == 0
        assert resident_mib(worker) - before < 20
        assert len(read(slow).text) == 30_000_000 - 20_000


def test_idle_connections_are_bounded_and_let_others_in_once_they_close(serving: Port) -> None:
    host, _, number = serving.target.rpartition(":")
    idle = [socket.create_connection((host, int(number))) for _ in range(120)]
    try:
        eventually(lambda: sum(is_open(connection) for connection in idle) <= 40)
    finally:
        for connection in idle:
            connection.close()
    with ml_service_client(serving.target) as client:
        eventually(lambda: client.predict("m", timeout=1).status is StatusCode.NOT_FOUND)


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
