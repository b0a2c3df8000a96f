"""Servers that are allowed from the page: what is stored is what `endpoints allow` stores."""

import socket
from collections.abc import AsyncIterator

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.playground.service.allowed_servers import AllowedServers
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.settings.dynamic import DynamicSettings
from opensearch_ml_stream.plugin.settings.endpoint_permissions import PATTERNS, PRIVATE_ALLOWED, PRIVATE_PATTERNS
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from tests.registry.registry_setup import closing

OPENAI = r"^https://api\.openai\.com/.*$"
OWN = r"^http://10\.0\.0\.5:8000/.*$"


@pytest.fixture
async def settings() -> AsyncIterator[DynamicSettings]:
    async with closing(SQLiteStore(":memory:")) as store:
        at_start = Settings(trusted_connector_endpoints_regex=(OPENAI,))
        yield DynamicSettings(store, LiveSettings(at_start), lambda: 0)


async def test_a_private_server_is_allowed_with_its_address_alone(settings: DynamicSettings) -> None:
    servers = AllowedServers(settings)
    allowed = await servers.allow("http://10.0.0.5:8000/v1/chat")
    assert allowed == {"origin": "http://10.0.0.5:8000", "is_private": True, "is_new": True}
    kept = await settings.persistent()
    assert (kept[PATTERNS], kept[PRIVATE_PATTERNS], kept[PRIVATE_ALLOWED]) == ([OPENAI, OWN], [OWN], True)
    assert (await servers.allow("http://10.0.0.5:8000"))["is_new"] is False


async def test_a_public_server_needs_no_private_address(
    settings: DynamicSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, port: public)
    allowed = await AllowedServers(settings).allow("https://ml.example.com/v1")
    assert (allowed["is_private"], allowed["is_new"]) == (False, True)
    assert (await settings.persistent())[PRIVATE_ALLOWED] is False


async def test_what_is_allowed_already_is_not_stored(settings: DynamicSettings) -> None:
    allowed = await AllowedServers(settings).allow("http://10.0.0.5:8000")
    before = await settings.persistent()
    assert allowed["is_new"] and (await AllowedServers(settings).allow("http://10.0.0.5:8000/x"))["is_new"] is False
    assert await settings.persistent() == before


@pytest.mark.parametrize("url", ["ftp://10.0.0.5", "http://", "http://a b/"])
async def test_what_is_no_url_of_a_server_is_refused(settings: DynamicSettings, url: str) -> None:
    with pytest.raises(InvalidRequest):
        await AllowedServers(settings).allow(url)
    assert await settings.persistent() == {}
