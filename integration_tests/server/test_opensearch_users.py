"""Users of the store's OpenSearch call a sidecar of two workers: who is let in, and what the cluster is asked.

The cluster is scripted: its responses are those of OpenSearch 3.4.0 with its security plugin.
"""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.fake_provider import FakeProvider, Request, Script, head, json_response
from integration_tests.support.sidecars import Sidecar, running_sidecar

BASE = "/_plugins/_ml"
SECURITY = "/_plugins/_security"
SERVICE = ("service", "s3rvice")
ROLES = {
    "ml_full_access": {"cluster_permissions": ["cluster:admin/opensearch/ml/*", "cluster_monitor"]},
    "streamer": {"cluster_permissions": ["streaming"]},
}
GROUPS = {
    "streaming": {"allowed_actions": ["cluster:admin/opensearch/ml/predict/stream"]},
    "cluster_monitor": {"allowed_actions": ["cluster:monitor/*"]},
}
USERS: dict[str, list[str]] = {"ann": ["ml_full_access"], "sam": ["streamer"], "eve": ["streamer"], "nobody": []}


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def as_opensearch(request: Request) -> Script:
    """What a cluster without any index responds, whose users have their names as passwords."""
    path = request.path.partition("?")[0]
    responses: dict[str, Any] = {
        "/": {"version": {"number": "3.4.0"}},
        "/_cluster/settings": {"persistent": {}, "transient": {}},
        f"{SECURITY}/health": {"message": None, "mode": "strict", "status": "UP", "settings": {}},
        f"{SECURITY}/api/roles": ROLES,
        f"{SECURITY}/api/actiongroups": GROUPS,
    }
    if path == f"{SECURITY}/authinfo":
        for name, roles in USERS.items():
            if request.headers.get("authorization") == basic(name, name):
                return json_response({"user_name": name, "backend_roles": ["team"], "roles": roles})
        return [head(401, content_type="text/plain; charset=UTF-8", content_length="12") + b"Unauthorized"]
    if path in responses:
        return json_response(responses[path])
    if path.endswith("/_search"):
        return json_response({"hits": {"total": {"value": 0, "relation": "eq"}, "max_score": None, "hits": []}})
    return json_response({"error": {"type": "index_not_found_exception", "reason": "no such index"}}, 404)


@dataclass(frozen=True)
class Secured:
    """A sidecar of two workers over a scripted cluster."""

    sidecar: Sidecar
    cluster: FakeProvider

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request over a connection of its own, which any of the workers may have."""
        headers = {"Connection": "close", **options.pop("headers", {})}
        return self.sidecar.client.request(method, path, headers=headers, **options)

    def asked(self, path: str) -> list[str | None]:
        """The `Authorization` of each request to a path of the cluster."""
        return [
            request.headers.get("authorization")
            for request in self.cluster.requests
            if request.path.partition("?")[0] == path
        ]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("opensearch-users")
    with background_provider(as_opensearch) as cluster:
        store = cluster.url.replace("://", "://{}:{}@".format(*SERVICE))
        with running_sidecar(folder, store, arguments=("--workers", "2")) as sidecar:
            yield Secured(sidecar, cluster)


@pytest.mark.parametrize(
    ("method", "path", "statuses"),
    [
        ("GET", f"{BASE}/models/_search", {"ann": 200, "sam": 403, "nobody": 403}),
        ("POST", f"{BASE}/models/m/_predict", {"ann": 404, "sam": 403, "nobody": 403}),
        ("POST", f"{BASE}/models/m/_predict/stream", {"ann": 404, "sam": 404, "nobody": 403}),
        ("GET", f"{BASE}/_settings", {"ann": 200, "sam": 403, "nobody": 403}),
        ("PUT", f"{BASE}/_settings", {"ann": 403, "sam": 403, "nobody": 403}),
        ("GET", "/", {"ann": 200, "sam": 200, "nobody": 200}),
    ],
)
def test_a_users_roles_say_which_routes_are_theirs(
    secured: Secured, method: str, path: str, statuses: dict[str, int]
) -> None:
    body: dict[str, Any] | None = None if method == "GET" else {"parameters": {}}
    found = {name: secured.ask(method, path, auth=(name, name), json=body).status_code for name in statuses}
    assert found == statuses
    for authorization in ("", basic("ann", "wrong"), "Bearer x", "ApiKey x"):
        refused = secured.ask(method, path, headers={"Authorization": authorization}, json=body)
        assert refused.status_code == 401


@pytest.mark.parametrize("path", [f"{BASE}/models/m/_predict", f"{BASE}/models/m/_predict/stream"])
def test_refusals_have_the_error_body_of_opensearch(secured: Secured, path: str) -> None:
    body: dict[str, Any] = {"parameters": {}}
    unknown = secured.ask("POST", path, json=body)
    assert (unknown.status_code, unknown.json()) == (401, _security_exception("Unauthorized", 401))
    assert unknown.headers["www-authenticate"] == 'Basic realm="OpenSearch Security"'
    action = "cluster:admin/opensearch/ml/" + path.partition("_")[2].rpartition("/m/_")[2]
    reason = f"no permissions for [{action}] and User [name=nobody, backend_roles=[team], requestedTenant=null]"
    refused = secured.ask("POST", path, auth=("nobody", "nobody"), json=body)
    assert refused.json() == _security_exception(reason, 403)


def _security_exception(reason: str, status: int) -> Mapping[str, Any]:
    cause = {"type": "security_exception", "reason": reason}
    return {"error": {"root_cause": [cause], **cause}, "status": status}


def test_health_needs_no_login(secured: Secured) -> None:
    assert [secured.ask("GET", f"/_health/{which}").status_code for which in ("live", "ready")] == [200, 200]


def test_each_worker_asks_once_with_the_callers_own_login_and_for_roles_with_the_stores(secured: Secured) -> None:
    before = len(secured.asked(f"{SECURITY}/authinfo"))
    statuses = {secured.ask("GET", "/", auth=("eve", "eve")).status_code for _ in range(30)}
    assert statuses == {200}
    asked = secured.asked(f"{SECURITY}/authinfo")
    assert 1 <= len(asked) - before <= 2
    assert set(asked[before:]) == {basic("eve", "eve")}
    assert basic(*SERVICE) not in asked
    assert set(secured.asked(f"{SECURITY}/api/roles")) == {basic(*SERVICE)}
