"""Users of OpenSearch at a sidecar: streams, changes of their rights, and what the service account needs for it."""

import base64
import hmac
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from integration_tests.server.security.conftest import WORKERS
from integration_tests.server.security.needs import BASE
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import openai_stream
from integration_tests.support.secured.cluster_users import cluster_users
from integration_tests.support.secured.secured_cluster import PASSWORD, SERVICE_ACCOUNT, SecuredCluster
from integration_tests.support.sidecars import Sidecar, running_sidecar

from opensearch_ml_stream.plugin.security.permissions import OPENSEARCH_ROLES

pytestmark = pytest.mark.secured

QUESTION = {"parameters": {"messages": [{"role": "user", "content": "hi"}]}}
CHANGED_SECONDS = 45  # waited at most for a change of a user in the cluster; promised are 30
OTHER_PASSWORD = "Battery-Staple-2"
ROLE = "for_changes"  # may search models
TOKEN_KEY = b"The key of the tests signs tokens for no other cluster"  # as in scripts/secured/config.yml
API = "/_plugins/_security/api"
READ_ONLY = ("roles", "actiongroups")
CLOSED = ("internalusers", "rolesmapping", "tenants", "audit", "allowlist", "securityconfig", "cache")


@pytest.fixture(scope="module")
def sidecar(secured_cluster: SecuredCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    folder = tmp_path_factory.mktemp("users")
    with running_sidecar(folder, secured_cluster.store_url, arguments=WORKERS) as running:
        yield running


def test_the_service_account_may_do_what_it_needs_from_a_connector_to_a_stream_and_back(sidecar: Sidecar) -> None:
    """For a user who may stream only, and one who may do everything; the provider sees the credentials of neither."""
    with background_provider(openai_stream(["For", "ty"])) as provider:
        connector = _ask(sidecar, "POST", "/connectors/_create", openai(provider.url))["connector_id"]
        model = {"name": "m", "function_name": "remote", "connector_id": connector}
        model_id = _ask(sidecar, "POST", "/models/_register", model)["model_id"]
        path = f"{BASE}/models/{model_id}/_predict/stream"
        streamed = sidecar.client.post(path, json=QUESTION, auth=("streamer", PASSWORD))
        assert (streamed.status_code, '"is_last":true' in streamed.text) == (200, True), streamed.text
        sent = json.dumps([dict(request.headers) for request in provider.requests])
        assert "Basic" not in sent
    _ask(sidecar, "PUT", f"/models/{model_id}", {"description": "d"})
    _ask(sidecar, "POST", f"/models/{model_id}/_undeploy")
    _ask(sidecar, "DELETE", f"/models/{model_id}")
    _ask(sidecar, "DELETE", f"/connectors/{connector}")


def test_whom_a_caller_asks_to_be_they_are_at_the_sidecars_routes_too(sidecar: Sidecar) -> None:
    def create(login: str, other: str) -> httpx.Response:
        headers = {"opendistro_security_impersonate_as": other}
        path = f"{BASE}/connectors/_create"
        return sidecar.client.post(path, json={}, auth=(login, PASSWORD), headers=headers)

    assert create("ml_full", "").status_code == 400  # for the body alone
    as_reader, as_full = create("ml_full", "ml_read"), create("ml_read", "ml_full")
    assert (as_reader.status_code, as_full.status_code) == (403, 403)
    assert "create_connector] and User [name=ml_read," in as_reader.text
    assert "'ml_read' is not allowed to impersonate as 'ml_full'" in as_full.text


def test_the_roles_that_hold_where_none_can_be_read_are_those_that_opensearch_ships(
    secured_cluster: SecuredCluster,
) -> None:
    """But for what the sidecar has not: memories and tools."""
    with secured_cluster.client() as opensearch:
        for role, patterns in OPENSEARCH_ROLES.items():
            shipped = opensearch.get(f"{API}/roles/{role}").json()[role]["cluster_permissions"]
            assert [each for each in shipped if "/memory/" not in each and "/tools/" not in each] == [*patterns]


def test_a_user_who_is_changed_or_deleted_is_refused(sidecar: Sidecar, secured_cluster: SecuredCluster) -> None:
    """One wait for all: as long as a worker remembers a caller, 10 s (`plugin/tests/security/test_cluster_gate.py`)."""
    with cluster_users(secured_cluster) as users:
        names = changed, unmapped, deleted = [users.name(what) for what in ("changed", "unmapped", "deleted")]
        users.add(names)
        users.put("rolesmapping", {ROLE: {"users": names}})
        eventually(lambda: all(_found(sidecar, name) == {200} for name in names))

        users.put("internalusers", {changed: {"password": OTHER_PASSWORD}})
        users.put("rolesmapping", {ROLE: {"users": [changed, deleted]}})
        users.delete("internalusers", deleted)

        assert _search(sidecar, changed, OTHER_PASSWORD).status_code == 200
        expected = {changed: {401}, unmapped: {403}, deleted: {401}}
        eventually(lambda: {name: _found(sidecar, name) for name in names} == expected, CHANGED_SECONDS)


def test_the_service_account_changes_nothing_in_the_security_plugin(secured_cluster: SecuredCluster) -> None:
    with secured_cluster.client(SERVICE_ACCOUNT) as client:
        assert {client.get(f"{API}/{kind}").status_code for kind in READ_ONLY} == {200}
        refused = [client.patch(f"{API}/{kind}", json=[]) for kind in READ_ONLY]
        refused += [client.request(method, f"{API}/{kind}") for kind in CLOSED for method in ("GET", "PATCH", "DELETE")]
        assert {response.status_code for response in refused} <= {403, 405}, [response.text for response in refused]
        assert client.put(f"{API}/internalusers/x", json={"password": PASSWORD}).status_code == 403
        assert client.put(f"{API}/rolesmapping/all_access", json={"users": [SERVICE_ACCOUNT]}).status_code == 403
        assert client.get("/_cat/indices").status_code == 403
        assert client.put("/other", json={}).status_code == 403


@pytest.mark.parametrize("user", ["admin", "ml_full", "nobody"])
def test_what_the_sidecar_stores_is_for_its_own_account_alone(
    sidecar: Sidecar, secured_cluster: SecuredCluster, user: str
) -> None:
    """As long as its indices are the system's, which is so wherever ML Commons is installed."""
    _ask(sidecar, "POST", "/connectors/_create", openai("http://127.0.0.1:1"))
    with secured_cluster.client(user) as client:
        assert client.get("/.plugins-ml-connector/_search").status_code == 403
        assert client.put("/.plugins-ml-connector/_doc/x", json={}).status_code == 403


@pytest.fixture(scope="module")
def behind_proxy(secured_cluster: SecuredCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    """A sidecar behind a proxy that names the users, with an account that may not read the cluster's roles."""
    settings = {
        "opensearch_ml_stream.proxy_auth.trusted_addresses": '["127.0.0.1"]',
        "opensearch_ml_stream.proxy_auth.roles_header": "x-proxy-roles",
        "opensearch_ml_stream.role_permissions": '{"stream_only": ["cluster:admin/opensearch/ml/*/get"]}',
    }
    with cluster_users(secured_cluster) as users:
        account, role = users.name("account"), users.name("role")
        rights = users.read("roles", SERVICE_ACCOUNT)
        users.put("roles", {role: {name: rights[name] for name in ("cluster_permissions", "index_permissions")}})
        users.add([account], opendistro_security_roles=[role])
        store_url = secured_cluster.store_url.replace(SERVICE_ACCOUNT, account)
        with running_sidecar(tmp_path_factory.mktemp("behind"), store_url, settings) as running:
            yield running


def test_the_settings_say_what_roles_allow_where_the_service_account_may_not_read_them(behind_proxy: Sidecar) -> None:
    """The roles that OpenSearch ships need no setting."""
    got = {name: _statuses(behind_proxy, name) for name in ("admin", "ml_full", "ml_read", "streamer", "nobody")}
    assert got == {
        "admin": (200, 404, 400),
        "ml_full": (200, 404, 403),
        "ml_read": (200, 404, 403),
        "streamer": (403, 404, 403),
        "nobody": (403, 403, 403),
    }


def test_a_user_whom_a_trusted_proxy_names_has_the_roles_that_opensearch_says(
    behind_proxy: Sidecar, sidecar: Sidecar
) -> None:
    """OpenSearch maps the backend role `ml-readers`; a sidecar without the setting takes no user from a header."""
    named = {"x-proxy-user": "carla", "x-proxy-roles": "ml-readers"}
    assert behind_proxy.client.get(f"{BASE}/models/_search", headers=named).status_code == 200
    refused = behind_proxy.client.delete(f"{BASE}/models/none-such", headers=named)
    assert (refused.status_code, "User [name=carla, backend_roles=[ml-readers]" in refused.text) == (403, True)
    unmapped = {"x-proxy-user": "carla"}
    assert behind_proxy.client.get(f"{BASE}/models/_search", headers=unmapped).status_code == 403
    assert sidecar.client.get(f"{BASE}/models/_search", headers=named).status_code == 401


def test_a_bearer_token_is_whom_opensearch_takes_it_for(sidecar: Sidecar) -> None:
    def status(method: str, token: str) -> int:
        path, headers = f"{BASE}/models/none-such", {"Authorization": f"Bearer {token}"}
        return sidecar.client.request(method, path, headers=headers).status_code

    reader = _token({"sub": "dora", "roles": "ml-readers"})
    assert (status("GET", reader), status("DELETE", reader)) == (404, 403)
    assert status("GET", _token({"sub": "dora", "roles": "ml-readers", "exp": 1})) == 401
    assert status("GET", _token({"sub": "dora", "roles": "ml-readers"}, key=b"k" * 54)) == 401


def _token(claims: dict[str, object], key: bytes = TOKEN_KEY) -> str:
    """A JSON web token: https://www.rfc-editor.org/rfc/rfc7519."""
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "typ": "JWT"}, claims)]
    signed = b".".join(_base64url(part) for part in parts)
    return b".".join((signed, _base64url(hmac.digest(key, signed, "sha256")))).decode()


def _base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _statuses(sidecar: Sidecar, user: str) -> tuple[int, ...]:
    auth = (user, PASSWORD)
    return (
        sidecar.client.get(f"{BASE}/models/_search", auth=auth).status_code,
        sidecar.client.get(f"{BASE}/models/none-such", auth=auth).status_code,
        sidecar.client.put(f"{BASE}/_settings", auth=auth, json={"transient": {}}).status_code,
    )


def _found(sidecar: Sidecar, user: str) -> set[int]:
    """The statuses that a user gets from whichever worker: each of eight connections is either's."""
    return {_search(sidecar, user, PASSWORD).status_code for _ in range(8)}


def _search(sidecar: Sidecar, user: str, password: str) -> httpx.Response:
    path = f"{BASE}/models/_search"
    return sidecar.client.get(path, auth=(user, password), headers={"Connection": "close"})


def _ask(sidecar: Sidecar, method: str, path: str, body: object = None) -> dict[str, Any]:
    response = sidecar.client.request(method, BASE + path, auth=("ml_full", PASSWORD), json=body)
    assert response.status_code == 200, response.text
    answered: dict[str, Any] = response.json()
    return answered
