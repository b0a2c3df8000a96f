"""The port's certificate is replaced in its files: new connections get the new one on every worker."""

import json
import socket
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from integration_tests.server.grpc_port.grpc_clients import GRPC, grpc_address
from integration_tests.server.tls.https_sidecars import HTTPSSidecar, running_https_sidecar
from integration_tests.support import connector_bodies
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.fake_provider import Gate, openai_stream

CONNECTIONS = 12  # of two workers, all would meet the same one in one of 2,048 tries


def presented(https: HTTPSSidecar, port: int, protocol: str = "http/1.1") -> bytes:
    """The certificate that a new connection to a port gets, in DER."""
    context = https.context()
    context.set_alpn_protocols([protocol])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as connection,
        context.wrap_socket(connection, server_hostname="localhost") as client,
    ):
        return client.getpeercert(binary_form=True) or b""


def test_a_new_certificate_is_in_force_on_both_ports_of_all_workers_and_a_running_stream_goes_on(
    tmp_path: Path,
) -> None:
    """A broken one, and one that is written in parts: `plugin/tests/server/test_port_certificate.py`."""
    gate = Gate()
    script = openai_stream(["a", "b"])
    with (
        background_provider([*script[:3], gate, *script[3:]]) as provider,
        running_https_sidecar(tmp_path, "none", ("--workers", "2", *GRPC), **{"tls.client_authorities": ""}) as https,
    ):
        model_id = https.sidecar.create_model(connector_bodies.openai(provider.url))
        grpc_port = int(grpc_address(https.sidecar).rpartition(":")[2])
        question = {"parameters": {"inputs": "x"}}
        path = f"/_plugins/_ml/models/{model_id}/_predict/stream"

        def all_presented() -> set[bytes]:
            return {
                certificate
                for _ in range(CONNECTIONS)
                for certificate in (presented(https, https.port), presented(https, grpc_port, "h2"))
            }

        with (
            httpx.Client(base_url=https.sidecar.url, verify=https.context()) as client,
            client.stream("POST", path, json=question) as response,
        ):
            received = response.iter_bytes()
            text = next(received)
            (old,) = all_presented()
            new = https.replace_certificate()
            assert old != new
            eventually(lambda: all_presented() == {new})
            gate.open()
            text += b"".join(received)
        lines = [json.loads(line) for line in text.splitlines() if line]
        assert lines[-1]["inference_results"][0]["output"][0]["dataAsMap"]["is_last"]
        assert https.sidecar.log.read_text().count("the port has a new certificate: CN=localhost") == 1
        expires = x509.load_der_x509_certificate(new).not_valid_after_utc.timestamp()
        assert _shown_expiry(https) == pytest.approx(expires)


def _shown_expiry(https: HTTPSSidecar) -> float:
    lines = https.sidecar.client.get("/metrics").text.splitlines()
    return float(next(line for line in lines if line.startswith("mlstream_tls_certificate_expiry")).split()[-1])
