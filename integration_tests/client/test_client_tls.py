"""The client for opensearch-py users trusts the authorities that the user's client trusts, wherever the sidecar is."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tests.client.streaming_clients import CONNECTIONS, Streaming
from integration_tests.support.background_provider import background_provider
from integration_tests.support.certificates import Certificate, new_authority
from integration_tests.support.fake_provider import LAST_CHUNK, FakeProvider, chunk, head

from opensearch_ml_stream.client import ConnectionFailed
from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.wire_format import NDJSON

SCRIPT = [
    head(content_type="application/x-ndjson", transfer_encoding="chunked"),
    chunk(NDJSON.ending(Ending(), {})),
    LAST_CHUNK,
]


@pytest.fixture(params=CONNECTIONS, ids=lambda connection_class: connection_class.__name__)
def streaming(request: pytest.FixtureRequest) -> Streaming:
    return Streaming(request.param)


@pytest.fixture(scope="module")
def authority() -> Certificate:
    return new_authority()


@pytest.fixture
def server(authority: Certificate, tmp_path: Path) -> Iterator[FakeProvider]:
    with background_provider(SCRIPT, authority.issue("localhost").server_context(tmp_path)) as running:
        yield running


@pytest.fixture
def ca_certs(authority: Certificate, tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    path.write_text(authority.certificate_pem)
    return str(path)


async def test_the_clients_authority_is_trusted(streaming: Streaming, server: FakeProvider, ca_certs: str) -> None:
    assert len(await streaming.collect(server.url, ca_certs=ca_certs)) == 1


async def test_it_is_trusted_for_the_sidecars_own_url_too(
    streaming: Streaming, server: FakeProvider, ca_certs: str
) -> None:
    host = "https://localhost:1"
    assert len(await streaming.collect(host, url=server.url, ca_certs=ca_certs)) == 1


@pytest.mark.parametrize("by_url", [False, True])
async def test_an_unknown_authority_is_refused(streaming: Streaming, server: FakeProvider, by_url: bool) -> None:
    with pytest.raises(ConnectionFailed):
        await (streaming.collect("https://localhost:1", url=server.url) if by_url else streaming.collect(server.url))
    assert server.requests == []
