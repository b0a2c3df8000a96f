"""Where a server may listen without a login."""

from collections.abc import AsyncIterator

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, Unavailable
from opensearch_ml_stream.plugin.security.own_accounts import create_key
from opensearch_ml_stream.plugin.security.start_rules import check_start, is_loopback, needs_login
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    store = SQLiteStore(":memory:")
    yield store
    await store.close()


@pytest.mark.parametrize(
    ("host", "is_own"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False),
     ("192.0.2.7", False), ("no-such-host.invalid", False), ("a..b", False)],
)  # fmt: skip
def test_loopback_is_known_by_its_addresses(host: str, is_own: bool) -> None:
    assert is_loopback(host) is is_own


@pytest.mark.parametrize(
    ("security", "host", "needed"),
    [("auto", "127.0.0.1", False), ("auto", "0.0.0.0", True), ("own", "127.0.0.1", True), ("none", "0.0.0.0", False)],
)
def test_a_login_is_needed_elsewhere_and_where_it_is_asked_for(security: str, host: str, needed: bool) -> None:
    assert needs_login(security, host) is needed


async def test_a_server_for_the_network_needs_an_account_first(store: Store) -> None:
    with pytest.raises(InvalidRequest, match=r"users add NAME --role ml_full_access.*--insecure-no-auth"):
        await check_start("auto", "0.0.0.0", store)
    for security, host in (("none", "0.0.0.0"), ("own", "0.0.0.0"), ("auto", "127.0.0.1"), ("auto", "a..b")):
        await check_start(security, host, store)
    await create_key(store, "app", "ml_predict_access", 0)
    await check_start("auto", "0.0.0.0", store)


async def test_a_store_that_does_not_respond_stops_no_start(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    async def down(index: Index, body: object) -> dict[str, object]:
        raise Unavailable("down")

    monkeypatch.setattr(store, "search", down)
    await check_start("auto", "0.0.0.0", store)
