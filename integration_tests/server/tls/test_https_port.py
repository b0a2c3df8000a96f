"""HTTPS on the sidecar's own port: with the usual clients, slow ones, broken ones, and while it stops."""

import asyncio
import json
import signal
import socket
import ssl
import subprocess
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest
from integration_tests.cli.commands import run_process
from integration_tests.server.tls.https_sidecars import HTTPSSidecar, running_https_sidecar
from integration_tests.support import connector_bodies
from integration_tests.support.background_provider import background_provider
from integration_tests.support.certificates import new_authority
from integration_tests.support.conditions import eventually, eventually_async
from integration_tests.support.fake_provider import (
    LAST_CHUNK,
    SSE_HEAD,
    Act,
    FakeProvider,
    Gate,
    chunk,
    openai_delta,
    openai_stream,
)
from integration_tests.support.sidecars import START_SECONDS
from integration_tests.support.streamed_responses import objects
from opensearchpy import OpenSearch

from opensearch_ml_stream.client import predict_stream

QUESTION = {"parameters": {"inputs": "x"}}
TURNED_AWAY = "a client does not speak TLS, and this port speaks HTTPS only; its connection is closed"


@pytest.fixture(scope="module")
def https(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HTTPSSidecar]:
    with running_https_sidecar(tmp_path_factory.mktemp("https")) as running:
        yield running


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with background_provider(openai_stream(["Deep", " sea"])) as running:
        yield running


@pytest.fixture(scope="module")
def model_id(https: HTTPSSidecar, provider: FakeProvider) -> str:
    return https.sidecar.create_model(connector_bodies.openai(provider.url))


def path_of(model_id: str) -> str:
    return f"/_plugins/_ml/models/{model_id}/_predict/stream"


def text_of(response: httpx.Response) -> str:
    chunks = objects(response)
    assert chunks[-1]["is_last"]
    return "".join(piece["response"] for piece in chunks)


@pytest.mark.programs("curl")
def test_curl_gets_a_stream(https: HTTPSSidecar, model_id: str) -> None:
    url = f"https://localhost:{https.port}{path_of(model_id)}"
    command = ["curl", "-sSN", "-m", "20", "--cacert", str(https.ca_certs), "-H", "Content-Type: application/json"]
    ended = subprocess.run([*command, "-d", json.dumps(QUESTION), url], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line)["inference_results"][0]["output"][0]["dataAsMap"] for line in ended.stdout.splitlines()]
    assert "".join(line["response"] for line in lines) == "Deep sea"


def test_opensearch_py_gets_a_stream(https: HTTPSSidecar, model_id: str) -> None:
    with OpenSearch(f"https://localhost:{https.port}", ca_certs=str(https.ca_certs)) as client:
        chunks = list(predict_stream(client, model_id, {"inputs": "x"}))
    assert "".join(one.text for one in chunks) == "Deep sea"


def test_the_command_line_trusts_the_authority_that_it_is_told(https: HTTPSSidecar, model_id: str) -> None:
    call = ("predict", model_id, "x", "--stream", "--url", https.sidecar.url)
    ended = run_process(*call, "--ca-certs", str(https.ca_certs), "--client-cert", str(https.client_certificate))
    assert (ended.returncode, ended.stdout) == (0, "Deep sea\n"), ended.stderr
    untrusting = run_process(*call)
    assert (untrusting.returncode, len(untrusting.stderr.splitlines())) == (3, 1), untrusting.stderr
    assert "name the authority that issued it with --ca-certs or MLSTREAM_CA_CERTS" in untrusting.stderr


def test_a_connection_serves_several_requests(https: HTTPSSidecar, model_id: str) -> None:
    with httpx.Client(base_url=https.sidecar.url, verify=https.context()) as client:
        for _ in range(3):
            assert text_of(client.post(path_of(model_id), json=QUESTION)) == "Deep sea"
        refused = client.post(path_of(model_id), content=b"x" * (11 * 1024 * 1024))
        assert refused.status_code == 413
        assert text_of(client.post(path_of(model_id), json=QUESTION)) == "Deep sea"


def test_a_client_that_speaks_plain_http_is_told_so_and_logged(https: HTTPSSidecar) -> None:
    response = httpx.get(f"http://127.0.0.1:{https.port}/_health/live")
    assert response.status_code == 400
    assert response.json()["error"]["reason"] == "This port speaks HTTPS only: the URL must begin with https://"
    assert TURNED_AWAY in https.sidecar.log.read_text()


def test_bytes_of_no_protocol_close_the_connection(https: HTTPSSidecar) -> None:
    with socket.create_connection(("127.0.0.1", https.port), timeout=10) as client:
        client.sendall(b"\x00\x01\x02")
        assert client.recv(1) == b""


def test_old_versions_and_unknown_certificates_are_refused(https: HTTPSSidecar) -> None:
    old = https.context()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's own, of a version so old
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    foreign = https.context()
    foreign.load_cert_chain(_self_signed(https.folder))
    foreign.maximum_version = ssl.TLSVersion.TLSv1_2  # in 1.3 the client's handshake is over before it is judged
    for context in (old, foreign):
        with pytest.raises(OSError), socket.create_connection(("127.0.0.1", https.port), timeout=10) as client:
            context.wrap_socket(client, server_hostname="localhost")
    log = https.sidecar.log
    eventually(lambda: "TLS handshake failed: UNSUPPORTED_PROTOCOL" in log.read_text())
    eventually(lambda: "TLS handshake failed: CERTIFICATE_VERIFY_FAILED" in log.read_text())


@pytest.mark.parametrize("size", [1, 65536])
def test_a_handshake_and_a_request_may_come_in_pieces_or_together(https: HTTPSSidecar, size: int) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = https.context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with socket.create_connection(("127.0.0.1", https.port), timeout=10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                _send(connection, outgoing.read(), size)
                incoming.write(connection.recv(65536))
        client.write(b"GET /_health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        _send(connection, outgoing.read(), size)  # the end of the handshake, and the request
        received = b""
        while b"live" not in received:
            try:
                received += client.read()
            except ssl.SSLWantReadError:
                incoming.write(connection.recv(65536))


def _send(connection: socket.socket, data: bytes, size: int) -> None:
    for start in range(0, len(data), size):
        connection.sendall(data[start : start + size])


async def test_a_client_that_hangs_up_ends_its_providers_stream(https: HTTPSSidecar) -> None:
    async with FakeProvider([*openai_stream(["a"])[:3], Act.WAIT]) as provider:
        model_id = await asyncio.to_thread(https.sidecar.create_model, connector_bodies.openai(provider.url))
        async with (
            httpx.AsyncClient(base_url=https.sidecar.url, verify=https.context()) as client,
            client.stream("POST", path_of(model_id), json=QUESTION) as response,
        ):
            await anext(response.aiter_bytes())
        await eventually_async(provider.disconnected.is_set)


async def test_a_slow_reader_stops_the_reading_from_its_provider_and_loses_nothing(https: HTTPSSidecar) -> None:
    """Another client reads as much meanwhile, so that a server that reads on would have read the stream to its end."""
    piece, number = "x" * 10_000, 2_000
    script = [SSE_HEAD, *[chunk(openai_delta(piece))] * number, chunk(b"data: [DONE]\n\n") + LAST_CHUNK]
    async with FakeProvider(script) as provider:
        model_id = await asyncio.to_thread(https.sidecar.create_model, connector_bodies.openai(provider.url))
        body = json.dumps(QUESTION).encode()
        head = f"POST {path_of(model_id)} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        request = head.encode() + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
        async with _connected(https) as (slow, slow_writer), _connected(https) as (quick, quick_writer):
            slow_writer.write(request)
            await slow.readuntil(b"\r\n\r\n")
            quick_writer.write(request)
            for reader, played in ((quick, 1), (slow, 2)):
                received = await reader.read()
                assert received.count(piece.encode()) == number
                assert b'"is_last":true' in received
                assert provider.played == played


@asynccontextmanager
async def _connected(https: HTTPSSidecar) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", https.port, ssl=https.context(), server_hostname="localhost", limit=4096
    )
    try:
        yield reader, writer
    finally:
        writer.close()


def test_silent_connections_count_and_a_stop_does_not_wait_for_idle_clients(tmp_path: Path) -> None:
    gate = Gate()
    script = openai_stream(["a", "b"])
    with (
        background_provider([*script[:3], gate, *script[3:]]) as provider,
        running_https_sidecar(tmp_path, "required", max_connections="4", shutdown_grace_seconds="20") as https,
        ExitStack() as silent,
    ):
        model_id = https.sidecar.create_model(connector_bodies.openai(provider.url))
        plugs = [silent.enter_context(socket.create_connection(("127.0.0.1", https.port))) for _ in range(3)]
        plugs[0].sendall(b"\x16\x03\x01")  # the beginning of a handshake
        eventually(lambda: _is_turned_away(https.port))
        assert "4 clients are connected, which is the limit" in https.sidecar.log.read_text()
        silent.close()
        with pytest.raises(httpx.TransportError):  # a certificate is required
            httpx.get(f"{https.sidecar.url}/_health/live", verify=https.context())
        idle = silent.enter_context(_idle_client(https))
        with https.sidecar.client.stream("POST", path_of(model_id), json=QUESTION) as response:
            received = response.iter_bytes()
            text = next(received)
            https.sidecar.process.send_signal(signal.SIGTERM)
            while idle.recv(4096):  # TLS's farewell, to which it gives no answer, and then the end
                pass
            gate.open()
            text += b"".join(received)
        assert b'"is_last":true' in text
        assert https.sidecar.process.wait(START_SECONDS) == 0


def _idle_client(https: HTTPSSidecar) -> socket.socket:
    """The socket of a client whose handshake is over, and that does nothing any more."""
    context = https.context()
    context.load_cert_chain(https.client_certificate)
    connection = socket.create_connection(("127.0.0.1", https.port), timeout=10)
    client = context.wrap_socket(connection, server_hostname="localhost")
    client.sendall(b"GET /_health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert client.recv(4096).startswith(b"HTTP/1.1 200")
    bare = socket.socket(fileno=client.detach())
    bare.settimeout(20)
    return bare


def _is_turned_away(port: int) -> bool:
    """Whether a connection is closed at once; one that is not goes away again."""
    with socket.create_connection(("127.0.0.1", port), timeout=0.5) as client:
        try:
            return client.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False


def _self_signed(folder: Path) -> Path:
    eve = new_authority("other").issue("eve")
    (folder / "eve.pem").write_text(eve.key_pem + eve.certificate_pem)
    return folder / "eve.pem"
