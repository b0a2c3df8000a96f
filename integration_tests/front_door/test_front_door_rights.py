"""Who may call the cluster through the sidecar, and with which credentials requests arrive there."""

import asyncio
from collections.abc import Iterator

import pytest
from integration_tests.front_door.scripted_opensearch import SERVICE, OpenedDoor, basic, opened_door, opensearch

from opensearch_ml_stream.plugin.security.own_accounts import create_key
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore

BASE = "/_plugins/_ml"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenedDoor]:
    """Before a cluster with the security plugin."""
    with opened_door(opensearch(users=("ann",)), tmp_path_factory.mktemp("secured")) as door:
        yield door


@pytest.fixture(scope="module")
def unguarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenedDoor]:
    """Before a cluster without one, where nobody logs in."""
    with opened_door(opensearch(), tmp_path_factory.mktemp("unguarded")) as door:
        yield door


def test_the_cluster_decides_by_the_callers_own_login(secured: OpenedDoor) -> None:
    assert secured.echoed(auth=("ann", "ann"))["authorization"] == basic("ann", "ann")
    for path in ("/echo", "/", "/_bulk", f"{BASE}/tools"):
        refused = secured.ask("POST" if path == "/_bulk" else "GET", path)
        assert (refused.status_code, refused.text) == (401, "Unauthorized"), path
        assert secured.ask("GET", path, auth=("ann", "wrong")).status_code == 401
    arrived = [request for request in secured.cluster.requests if request.path in ("/echo", "/_bulk", f"{BASE}/tools")]
    assert len(arrived) == 7
    assert basic(*SERVICE) not in [request.headers.get("authorization") for request in arrived]


def test_a_request_brings_its_own_headers_and_nobody_elses(secured: OpenedDoor) -> None:
    headers = {"cookie": "a=b", "securitytenant": "t", "x-opaque-id": "7", "x-proxy-user": "admin"}
    arrived = secured.echoed("/echo/x?y=1", auth=("ann", "ann"), headers=headers)
    assert {name: arrived.get(name) for name in headers} == {**headers, "x-proxy-user": None}
    assert arrived["host"] == secured.cluster.url.partition("://")[2]


def test_the_sidecars_routes_ask_for_a_login_as_ever(secured: OpenedDoor) -> None:
    assert secured.ask("GET", f"{BASE}/models/_search").status_code == 401
    assert secured.ask("GET", f"{BASE}/models/_search", auth=("ann", "ann")).status_code == 200
    assert secured.ask("GET", "/_health/live").status_code == 200


def test_where_nobody_logs_in_a_request_goes_on_as_it_came(unguarded: OpenedDoor) -> None:
    assert "authorization" not in unguarded.echoed()
    headers = {"authorization": "Bearer of-somebody", "x-api-key": "k"}
    arrived = unguarded.echoed(headers=headers)
    assert {name: arrived[name] for name in headers} == headers


def test_a_browser_at_the_root_is_sent_to_the_playground_and_a_client_to_the_cluster(unguarded: OpenedDoor) -> None:
    shown = unguarded.ask("GET", "/", headers={"Accept": "text/html,*/*"})
    assert (shown.status_code, shown.headers["location"]) == (302, "_ui/")
    assert unguarded.ask("GET", "/").json() == {"version": {"number": "3.4.0"}}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "evil.example"}, 421),
    ],
)
def test_no_foreign_page_and_no_rebound_name_reaches_the_cluster(
    unguarded: OpenedDoor, headers: dict[str, str], status: int
) -> None:
    for method, path in (
        ("GET", "/"),
        ("GET", "/echo"),
        ("POST", "/_bulk"),
        ("DELETE", "/i"),
        ("POST", f"{BASE}/tools"),
    ):
        before = [
            request for request in unguarded.cluster.requests if request.path == path and request.method == method
        ]
        assert unguarded.ask(method, path, headers=headers).status_code == status
        after = [request for request in unguarded.cluster.requests if request.path == path and request.method == method]
        assert path == "/" or after == before, path


def test_a_page_of_the_sidecars_own_origin_is_told_its_security_headers(unguarded: OpenedDoor) -> None:
    response = unguarded.ask("GET", "/echo", headers={"Origin": unguarded.sidecar.url})
    assert (response.status_code, response.headers["x-content-type-options"]) == (200, "nosniff")
    assert "x-content-type-options" not in unguarded.ask("GET", "/echo").headers


async def new_keys(*roles: str) -> tuple[dict[str, str], dict[str, dict[str, object]]]:
    """A key of each role, and the documents in which they are stored, by id."""
    store = SQLiteStore(":memory:")
    keys = {role: (await create_key(store, role, role, 0)).value for role in roles}
    hits = (await store.search(Index.ACCOUNT, {"query": {"match_all": {}}}))["hits"]["hits"]
    await store.close()
    return keys, {hit["_id"]: hit["_source"] for hit in hits}


@pytest.fixture(scope="module")
def keys_and_documents() -> tuple[dict[str, str], dict[str, dict[str, object]]]:
    return asyncio.run(new_keys("ml_full_access", "pass_through_access"))


@pytest.fixture(scope="module")
def guarded(
    keys_and_documents: tuple[dict[str, str], dict[str, dict[str, object]]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OpenedDoor]:
    """Before a cluster without the plugin, where the sidecar has keys of its own."""
    script = opensearch(accounts=keys_and_documents[1])
    with opened_door(script, tmp_path_factory.mktemp("guarded")) as door:
        yield door


@pytest.fixture
def keys(keys_and_documents: tuple[dict[str, str], dict[str, dict[str, object]]]) -> dict[str, str]:
    return keys_and_documents[0]


@pytest.mark.parametrize("header", ["authorization", "x-api-key"])
def test_of_the_sidecars_own_keys_those_of_one_role_pass_and_stay_here(
    guarded: OpenedDoor, keys: dict[str, str], header: str
) -> None:
    def login(role: str) -> dict[str, str]:
        return {header: f"Bearer {keys[role]}" if header == "authorization" else keys[role], "x-opaque-id": "7"}

    arrived = guarded.echoed(headers=login("pass_through_access"))
    assert arrived["x-opaque-id"] == "7"
    assert not arrived.keys() & {"authorization", "x-api-key"}
    for path in ("/echo", "/", f"{BASE}/tools"):
        assert guarded.ask("GET", path).status_code == 401
        refused = guarded.ask("GET", path, headers=login("ml_full_access"))
        assert refused.status_code == 403
        assert "no permissions for [opensearch_ml_stream:pass_through]" in refused.text
    assert guarded.ask("GET", f"{BASE}/models/_search", headers=login("pass_through_access")).status_code == 403
    assert guarded.ask("GET", f"{BASE}/models/_search", headers=login("ml_full_access")).status_code == 200
