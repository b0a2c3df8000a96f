"""Where a server may listen without a login."""

from collections.abc import AsyncIterator

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, Unavailable
from opensearch_ml_stream.plugin.security.own_accounts import create_key
from opensearch_ml_stream.plugin.security.start_checks import check_start, is_loopback, needs_login
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from tests.registry.registry_setup import FakeCluster
from tests.security.scripted_plugin import StoreInCluster


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


@pytest.fixture
async def store_in_cluster() -> AsyncIterator[StoreInCluster]:
    store = StoreInCluster()
    yield store
    await store.close()


@pytest.mark.parametrize("security", ["auto", "opensearch"])
async def test_with_users_of_opensearch_any_address_may_be_bound(
    store_in_cluster: StoreInCluster, security: str
) -> None:
    await check_start(security, "0.0.0.0", store_in_cluster)
    store_in_cluster.plugin.down = True  # its callers are refused until it says who they are
    await check_start(security, "0.0.0.0", store_in_cluster)


async def test_without_the_plugin_the_network_needs_an_account_and_opensearchs_users_are_none(
    store_in_cluster: StoreInCluster,
) -> None:
    store_in_cluster.plugin.installed = False
    with pytest.raises(InvalidRequest, match="users add"):
        await check_start("auto", "0.0.0.0", store_in_cluster)
    await check_start("auto", "127.0.0.1", store_in_cluster)
    for host in ("0.0.0.0", "127.0.0.1"):
        with pytest.raises(InvalidRequest, match="has no security plugin"):
            await check_start("opensearch", host, store_in_cluster)


async def test_users_of_opensearch_need_a_cluster(store: Store) -> None:
    with pytest.raises(InvalidRequest, match="name a cluster with --store, or set it to own"):
        await check_start("opensearch", "127.0.0.1", store)


class StoreBesideMLCommons(SQLiteStore):
    def __init__(self, cluster: FakeCluster) -> None:
        super().__init__(":memory:")
        self._cluster = cluster

    @property
    def cluster(self) -> FakeCluster:
        return self._cluster


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("no permissions for [indices:data/read/search] and User [name=m]", "refuses a search (no permissions for"),
        ("no permissions for [cluster:admin/opensearch/ml/models/search] and User [name=m]", "is not known"),
    ],
)
async def test_a_start_beside_ml_commons_that_cannot_search_says_what_to_do(
    reason: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = StoreBesideMLCommons(FakeCluster(search_refusal=reason))
    await check_start("none", "127.0.0.1", store)
    await store.close()
    [record] = caplog.records
    assert told in record.message
    assert "administrator's client certificate (client_cert in --store" in record.message
    assert "plugins.security.system_indices.permission.enabled" in record.message


@pytest.mark.parametrize("cluster", [FakeCluster(), FakeCluster(refusal=Unavailable("down"))])
async def test_a_start_beside_ml_commons_that_searches_or_is_away_says_nothing(
    cluster: FakeCluster, caplog: pytest.LogCaptureFixture
) -> None:
    store = StoreBesideMLCommons(cluster)
    await check_start("none", "127.0.0.1", store)
    await store.close()
    assert caplog.records == []
