"""The port's certificate is replaced in its files: new connections get the new one on every worker."""

import json
import socket
import ssl
from pathlib import Path

import httpx
import pytest
from integration_tests.server.tls.https_sidecars import HTTPSSidecar, running_https_sidecar, write_certificate
from integration_tests.support import connector_bodies
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.fake_provider import Gate, openai_stream

CONNECTIONS = 12  # of two workers, all would meet the same one in one of 2,048 tries


def presented(https: HTTPSSidecar) -> bytes:
    """The certificate that a new connection gets, in DER."""
    with (
        socket.create_connection(("127.0.0.1", https.port), timeout=10) as connection,
        https.context().wrap_socket(connection, server_hostname="localhost") as client,
    ):
        return client.getpeercert(binary_form=True) or b""


def test_a_new_certificate_is_in_force_on_all_workers_and_a_running_stream_goes_on(tmp_path: Path) -> None:
    gate = Gate()
    script = openai_stream(["a", "b"])
    with (
        background_provider([*script[:3], gate, *script[3:]]) as provider,
        running_https_sidecar(tmp_path, arguments=("--workers", "2")) as https,
    ):
        model_id = https.sidecar.create_model(connector_bodies.openai(provider.url))
        question = {"parameters": {"inputs": "x"}}
        path = f"/_plugins/_ml/models/{model_id}/_predict/stream"
        with (
            httpx.Client(base_url=https.sidecar.url, verify=https.context()) as client,
            client.stream("POST", path, json=question) as response,
        ):
            received = response.iter_bytes()
            text = next(received)
            old = presented(https)
            new = https.replace_certificate()
            assert old != new
            eventually(lambda: {presented(https) for _ in range(CONNECTIONS)} == {new})

            (tmp_path / "key.pem").write_text("not a key")
            log = https.sidecar.log
            eventually(lambda: "the port's new certificate is not used" in log.read_text())
            assert presented(https) == new
            gate.open()
            text += b"".join(received)
        lines = [json.loads(line) for line in text.splitlines() if line]
        assert lines[-1]["inference_results"][0]["output"][0]["dataAsMap"]["is_last"]
        logged = log.read_text()
        assert logged.count("the port has a new certificate: CN=localhost") == 1
        assert logged.count("the port's new certificate is not used, the old one stays in force") == 1
        assert f"{tmp_path / 'key.pem'}: it holds no private key in PEM" in logged

        restored = write_certificate(tmp_path, https.authority.issue("localhost"))
        eventually(lambda: presented(https) == restored)
        expiry = ssl.cert_time_to_seconds(_not_after(https))
        eventually(lambda: _shown_expiry(https) == pytest.approx(expiry))


def _not_after(https: HTTPSSidecar) -> str:
    with (
        socket.create_connection(("127.0.0.1", https.port), timeout=10) as connection,
        https.context().wrap_socket(connection, server_hostname="localhost") as client,
    ):
        certificate = client.getpeercert()
        assert certificate is not None
        return str(certificate["notAfter"])


def _shown_expiry(https: HTTPSSidecar) -> float:
    lines = https.sidecar.client.get("/metrics").text.splitlines()
    return float(next(line for line in lines if line.startswith("mlstream_tls_certificate_expiry")).split()[-1])
