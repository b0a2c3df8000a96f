"""The port itself: how a server starts with it, its TLS, what it does about requests that nobody should send."""

import asyncio
import socket
import ssl
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import grpc
import grpc.aio
import pytest
from integration_tests.cli.commands import COMMAND, environment
from integration_tests.server.grpc_port.grpc_clients import GRPC, InferenceClient, grpc_address, inference_client
from integration_tests.server.tls.https_sidecars import running_https_sidecar
from integration_tests.support.conditions import eventually_async
from integration_tests.support.sidecars import Sidecar

WITHOUT_PACKAGES = """
import sys
sys.modules["grpc"] = None
from opensearch_ml_stream.plugin.__main__ import main
main()
"""


def serve(*arguments: str, program: list[str] = COMMAND) -> tuple[int, str]:
    command = [*program, "serve", "--port", "0", "--store", "sqlite:///:memory:", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment())
    return ended.returncode, ended.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_port_in_use_is_an_error_before_anything_is_announced(workers: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        code, shown = serve("--grpc-port", port, "--workers", workers)
    assert (code, len(shown.splitlines())) == (2, 1), shown
    assert f"127.0.0.1:{port}, for gRPC, is in use" in shown and "--grpc-port" in shown


def test_without_its_packages_the_start_says_what_to_install() -> None:
    code, shown = serve(*GRPC, program=[sys.executable, "-c", WITHOUT_PACKAGES])
    assert (code, len(shown.splitlines())) == (2, 1), shown
    assert "pip install 'grpcio>=1.84' 'protobuf>=5.29.1'" in shown


def test_without_the_port_nothing_of_grpc_is_loaded() -> None:
    code = "import sys, opensearch_ml_stream.plugin.server.serve, opensearch_ml_stream.plugin.server.worker\n"
    shown = [sys.executable, "-c", code + "print('grpc' in sys.modules, 'google.protobuf' in sys.modules)"]
    assert subprocess.run(shown, capture_output=True, text=True, check=True).stdout.split() == ["False", "False"]


def test_the_port_needs_no_messages_that_another_package_has_compiled() -> None:
    """They refuse a protobuf older than their compiler, which another package of the environment may ask for."""
    code = "import sys\nsys.modules.update(grpc_health=None, grpc_reflection=None)\n"
    code += "from opensearch_ml_stream.plugin.server.listener import load_grpc\n"
    code += "from opensearch_ml_stream.plugin.installed_extensions import own_extensions\nload_grpc(own_extensions())\n"
    shown = [sys.executable, "-c", code + "print('grpc' in sys.modules)"]
    assert subprocess.run(shown, capture_output=True, text=True, check=True).stdout.split() == ["True"]


def test_the_parent_of_the_workers_starts_no_thread_of_grpc() -> None:
    code = "from opensearch_ml_stream.plugin.server.listener import load_grpc\n"
    code += "from opensearch_ml_stream.plugin.installed_extensions import own_extensions\nload_grpc(own_extensions())\n"
    shown = [sys.executable, "-c", code + "import os; print(len(os.listdir('/proc/self/task')))"]
    assert subprocess.run(shown, capture_output=True, text=True, check=True).stdout.split() == ["1"]


async def test_tls_is_that_of_the_http_port_and_a_required_certificate_is_asked_for(tmp_path: Path) -> None:
    """A new certificate in its files: `integration_tests/server/tls/test_certificate_reload.py`."""
    with running_https_sidecar(tmp_path, "required", GRPC) as running:
        port = grpc_address(running.sidecar).rpartition(":")[2]
        authority, own = running.ca_certs.read_bytes(), running.client_certificate.read_bytes()
        known = grpc.ssl_channel_credentials(authority, own, own)
        async with grpc.aio.secure_channel(f"localhost:{port}", known) as channel:
            assert (await InferenceClient(channel).call("ServerLive")).live
        unknown = grpc.aio.secure_channel(f"localhost:{port}", grpc.ssl_channel_credentials(authority))
        for refused in (unknown, grpc.aio.insecure_channel(f"localhost:{port}")):
            async with refused as channel:
                with pytest.raises(grpc.aio.AioRpcError) as failed:
                    await InferenceClient(channel).call("ServerLive", timeout=20)
                assert failed.value.code() == grpc.StatusCode.UNAVAILABLE
        old = running.context()
        old.load_cert_chain(running.client_certificate)
        with pytest.warns(DeprecationWarning):
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(OSError), socket.create_connection(("localhost", int(port))) as tcp:
            old.wrap_socket(tcp, server_hostname="localhost")


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def request_to(path: bytes) -> bytes:
    """The bytes of a call in HTTP/2, its headers without compression, as no client of gRPC would write them."""
    headers = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"x")]
    headers += [(b"te", b"trailers"), (b"content-type", b"application/grpc")]
    block = b"".join(b"\0%c%b%c%b" % (len(name), name, len(value), value) for name, value in headers)
    opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
    return opening + frame(1, 4, 1, block) + frame(0, 1, 1, b"\0\0\0\0\0")


async def test_a_path_that_is_no_text_does_not_end_the_port(sidecar: Sidecar) -> None:
    address = grpc_address(sidecar)
    host, _, port = address.rpartition(":")

    def send_bad_paths() -> None:
        for _ in range(6):  # to each of the workers
            with suppress(OSError), socket.create_connection((host, int(port))) as bad:
                bad.sendall(request_to(b"/\xff\xfe/x"))
                bad.recv(4096)

    await asyncio.to_thread(send_bad_paths)

    async def is_live() -> bool:
        async with inference_client(address) as client:
            try:
                return bool((await client.call("ServerLive", timeout=5, wait_for_ready=True)).live)
            except grpc.aio.AioRpcError:  # of the server that ends
                return False

    for _ in range(10):  # a connection each, so that the kernel spreads them
        await eventually_async(is_live)
