"""Providers whose certificate is not to be trusted: nothing is sent to them, and the error says what is wrong."""

import asyncio
from pathlib import Path

import httpx
import pytest
from integration_tests.faults.providers.faulty_calls import Outcome, outcome_of
from integration_tests.support.certificates import Certificate, new_authority
from integration_tests.support.conditions import eventually_async
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import FakeProvider, openai_stream
from integration_tests.support.sidecars import Sidecar

QUESTION = {"parameters": {"inputs": "x"}}


@pytest.fixture(scope="module")
def authority() -> Certificate:
    return new_authority()


async def stream(sidecar: Sidecar, url: str, authority: Certificate) -> Outcome:
    """The outcome with a connector that trusts the authority."""
    client = authority.issue("sidecar")
    connector = openai(url, client_config={"mutual_tls_enabled": True, "connection_timeout": 1})
    connector["credential"] |= {
        "client_cert_pem": client.certificate_pem,
        "client_key_pem": client.key_pem,
        "ca_cert_pem": authority.certificate_pem,
    }
    model_id = await asyncio.to_thread(sidecar.create_model, connector)
    async with httpx.AsyncClient(base_url=sidecar.url, timeout=20, verify=False) as opened:
        return outcome_of(await opened.post(f"/_plugins/_ml/models/{model_id}/_predict/stream", json=QUESTION))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("wrong name", "Hostname mismatch, certificate is not valid for 'localhost'"),
        ("expired", "certificate has expired"),
        ("self-signed", "self-signed certificate"),
        ("of another authority", "certificate signature failure"),
    ],
)
async def test_a_provider_that_is_not_trusted_gets_no_prompt(
    sidecar: Sidecar, authority: Certificate, tmp_path: Path, kind: str, words: str
) -> None:
    certificates = {
        "wrong name": authority.issue("elsewhere"),
        "expired": authority.issue("localhost", valid_days=-1),
        "self-signed": new_authority("localhost"),
        "of another authority": new_authority().issue("localhost"),
    }
    async with FakeProvider(openai_stream(["a"]), certificates[kind].server_context(tmp_path)) as provider:
        outcome = await stream(sidecar, provider.url, authority)
        assert provider.requests == []
    assert outcome.status == 424
    assert f"TLS certificate of localhost:{provider.port} is not trusted: {words}" in outcome.reason


async def test_a_provider_that_is_trusted_gets_it(sidecar: Sidecar, authority: Certificate, tmp_path: Path) -> None:
    """So the tests above can fail."""
    async with FakeProvider(openai_stream(["a"]), authority.issue("localhost").server_context(tmp_path)) as provider:
        assert await stream(sidecar, provider.url, authority) == Outcome(200, "a", "")


async def test_a_handshake_without_an_end_is_given_up(sidecar: Sidecar, authority: Certificate) -> None:
    async with FakeProvider(openai_stream(["a"])) as provider:  # it waits for a request, and gets a handshake
        outcome = await stream(sidecar, provider.url.replace("http://", "https://"), authority)
        await eventually_async(lambda: provider.open_connections == 0)
    assert outcome.status == 424
    assert f"no connection to 127.0.0.1:{provider.port} within 1 s" in outcome.reason
