"""The steps of a connection: name resolution, TCP, TLS; each of a provider that is broken in one way."""

import socket
from pathlib import Path

import pytest
from integration_tests.diagnosis.diagnoses import SETTINGS, connector, diagnosed, failure, mutual_tls, steps
from integration_tests.support.certificates import Certificate, new_authority
from integration_tests.support.fake_provider import FakeProvider, openai_stream
from integration_tests.upstream.calls import RawServer

from opensearch_ml_stream.plugin.settings import Settings


async def test_an_unknown_host_fails_to_resolve() -> None:
    step = failure(await diagnosed(connector("http://no-such-host.invalid")))
    assert step.name == "resolve"
    assert "unknown host: no-such-host.invalid" in step.summary
    assert step.advice is not None


async def test_a_url_that_is_not_trusted_is_not_called() -> None:
    async with FakeProvider(openai_stream(["a"])) as provider:
        step = failure(await diagnosed(connector(provider.url), Settings(private_ip_enabled=True)))
        assert (step.name, provider.connections) == ("resolve", 0)
        assert "endpoints allow" in step.summary


async def test_a_private_address_that_is_not_allowed_is_not_called() -> None:
    async with FakeProvider(openai_stream(["a"])) as provider:
        trusted = SETTINGS.trusted_connector_endpoints_regex
        step = failure(await diagnosed(connector(provider.url), Settings(trusted_connector_endpoints_regex=trusted)))
        assert (step.name, provider.connections) == ("resolve", 0)
        assert step.advice == f"If it is to be called: opensearch-ml-stream endpoints allow {provider.url}"


async def test_a_port_where_nothing_listens_is_refused() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound, and not listened on
        step = failure(await diagnosed(connector(f"http://127.0.0.1:{free.getsockname()[1]}")))
    assert step.name == "connect"
    assert step.summary.startswith("Connection refused: 127.0.0.1:")
    assert step.advice == "Check that the provider runs, and the host and port in the url"


@pytest.fixture(scope="module")
def authority() -> Certificate:
    return new_authority()


@pytest.mark.parametrize(
    ("name", "valid_days", "is_trusted", "summary", "advice"),
    [
        ("localhost", -1, True, "The certificate has expired on ", "Renew the certificate"),
        ("elsewhere", 1, True, "The certificate is for another host name", "Check the host"),
        ("localhost", 1, False, "The certificate's authority is not known here", "intermediate certificates"),
    ],
)
async def test_a_certificate_that_is_not_good_is_explained(
    authority: Certificate, tmp_path: Path, name: str, valid_days: int, is_trusted: bool, summary: str, advice: str
) -> None:
    context = authority.issue(name, valid_days).server_context(tmp_path)
    async with FakeProvider(openai_stream(["a"]), context) as provider:
        fields = mutual_tls(authority) if is_trusted else {}
        step = failure(await diagnosed(connector(provider.url, **fields)))
        assert provider.requests == []
    assert step.name == "tls"
    assert step.summary.startswith(summary)
    assert step.advice is not None and advice in step.advice
    certificate = step.details["certificate"]
    assert certificate["subject"] == f"CN={name}"
    assert certificate["names"] == [name, "127.0.0.1"]
    assert (certificate["days_left"] < 0) == (valid_days < 0)


async def test_a_certificate_that_is_good_is_shown(authority: Certificate, tmp_path: Path) -> None:
    context = authority.issue("localhost", valid_days=100).server_context(tmp_path)
    async with FakeProvider(openai_stream(["a"]), context) as provider:
        diagnosis = await diagnosed(connector(provider.url, **mutual_tls(authority)))
    step = steps(diagnosis)["tls"]
    assert (diagnosis.report.works, step.verdict) == (True, "ok")
    assert step.details["certificate"]["issuer"] == "CN=authority of the tests"
    assert step.details["certificate"]["days_left"] == 99


async def test_a_certificate_that_is_not_checked_or_nearly_expired_is_a_warning(
    authority: Certificate, tmp_path: Path
) -> None:
    context = authority.issue("localhost", valid_days=2).server_context(tmp_path)
    async with FakeProvider(openai_stream(["a"]), context) as provider:
        unchecked = connector(provider.url, client_config={"skip_ssl_verification": True})
        for document in (unchecked, connector(provider.url, **mutual_tls(authority))):
            diagnosis = await diagnosed(document)
            assert (diagnosis.report.works, steps(diagnosis)["tls"].verdict) == (True, "warning")


async def test_a_port_that_speaks_no_tls_fails_the_handshake() -> None:
    async with RawServer(b"SSH-2.0-OpenSSH_9.6\r\n") as server:
        step = failure(await diagnosed(connector(server.url.replace("http:", "https:"))))
    assert step.name == "tls"
    assert step.advice is not None and "Check that the port speaks TLS" in step.advice
