"""A cluster with users behind the front door: the caller's own credentials decide there, and no others.

What a caller gets, and which of the security plugin's API it may call, is as at the cluster itself.
"""

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from integration_tests.front_door.real_clusters.clients.opensearch_js import Dashboards
from integration_tests.front_door.real_clusters.compared_responses import differences, exchange, masked
from integration_tests.front_door.real_clusters.front_doors import CLUSTER_SECONDS
from integration_tests.support.secured.cluster_users import cluster_users
from integration_tests.support.secured.secured_cluster import PASSWORD, SecuredCluster
from integration_tests.support.sidecars import Sidecar, running_sidecar
from opensearchpy import OpenSearch, exceptions

pytestmark = pytest.mark.secured

SECURITY = "/_plugins/_security"
REQUESTS = [
    ("GET", "/"),
    ("GET", "/_cat/indices?h=index"),
    ("GET", f"{SECURITY}/authinfo"),
    ("GET", f"{SECURITY}/api/account"),
    ("GET", f"{SECURITY}/api/internalusers/admin"),
    ("GET", f"{SECURITY}/api/roles/stream_only"),
    ("GET", f"{SECURITY}/api/no_such_thing"),
    ("GET", f"{SECURITY}/health"),
    ("GET", f"{SECURITY}/dashboardsinfo"),
    ("GET", "/none-of-this/_search"),
    ("PUT", "/none-of-this/_doc/1?require_alias=true"),
    ("GET", "/.plugins-ml-connector/_search"),
    ("GET", "/_nodes/_local/http?filter_path=nodes.*.version"),
]
CALLERS = [("admin", PASSWORD), ("sidecar", PASSWORD), ("nobody", PASSWORD), ("admin", "wrong"), None]


@dataclass(frozen=True, slots=True)
class SecuredDoor:
    cluster: SecuredCluster
    sidecar: Sidecar

    def clients(self, auth: tuple[str, str] | None) -> tuple[httpx.Client, httpx.Client]:
        """A caller's client of the cluster, and of the front door; to be closed."""
        options: dict[str, Any] = {"auth": auth, "timeout": CLUSTER_SECONDS}
        direct = httpx.Client(base_url=self.cluster.url, verify=self.cluster.tls(), **options)
        return direct, httpx.Client(base_url=self.sidecar.url, **options)


@pytest.fixture(scope="module")
def secured_door(secured_cluster: SecuredCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredDoor]:
    folder = tmp_path_factory.mktemp("secured-door")
    settings = {"opensearch_ml_stream.security": "opensearch"}
    with running_sidecar(folder, secured_cluster.store_url, settings, ("--pass-through",)) as sidecar:
        yield SecuredDoor(secured_cluster, sidecar)


@pytest.mark.parametrize("caller", CALLERS, ids=lambda caller: caller and f"{caller[0]}-{caller[1][:5]}")
def test_each_caller_gets_what_the_cluster_gives_it(secured_door: SecuredDoor, caller: tuple[str, str] | None) -> None:
    direct, through = secured_door.clients(caller)
    with direct, through:
        responses = [
            [exchange(client, method, path, json={} if method == "PUT" else None) for method, path in REQUESTS]
            for client in (direct, through)
        ]
    assert differences(*responses) == []


def test_headers_of_a_proxy_that_the_sidecar_does_not_trust_make_nobody_an_admin(secured_door: SecuredDoor) -> None:
    claims = {"x-proxy-user": "admin", "x-proxy-roles": "admin", "x-forwarded-for": "127.0.0.1"}
    direct, through = secured_door.clients(None)
    with direct, through:
        assert direct.get(f"{SECURITY}/authinfo", headers=claims).json()["user_name"] == "admin"
        assert through.get(f"{SECURITY}/authinfo", headers=claims).status_code == 401


def test_opensearch_py_calls_the_security_api_through_the_front_door(secured_door: SecuredDoor) -> None:
    with cluster_users(secured_door.cluster) as users, _python_client(secured_door, "admin") as client:
        name = users.name("door-user")
        users.add([name])
        allowed = {"index_patterns": [f"{name}*"], "allowed_actions": ["*"]}
        client.security.create_role(
            role=name, body={"cluster_permissions": ["indices:data/write/bulk"], "index_permissions": [allowed]}
        )
        client.security.create_role_mapping(role=name, body={"users": [name]})
        assert name in client.security.get_role(role=name)
        assert client.security.get_role_mapping(role=name)[name]["users"] == [name]
        with _python_client(secured_door, name) as own:
            assert own.security.get_account_details()["user_name"] == name
            assert own.index(index=f"{name}-1", body={"n": 1}, refresh=True)["result"] == "created"
            assert own.count(index=f"{name}-1")["count"] == 1
            with pytest.raises(exceptions.AuthorizationException):
                own.search(index="other")
            with pytest.raises(exceptions.AuthorizationException):
                own.security.get_user(username=name)
        client.indices.delete(index=f"{name}-1")
        client.security.delete_role_mapping(role=name)
        client.security.delete_role(role=name)


def test_dashboards_passes_its_callers_authorization_on_to_the_cluster(secured_door: SecuredDoor) -> None:
    authorization = "Basic " + b64encode(f"nobody:{PASSWORD}".encode()).decode()
    calls = [
        ("info", {}),
        ("search", {"index": "none-of-this"}),
        ("transport.request", {"method": "GET", "path": f"{SECURITY}/authinfo"}),
    ]
    cluster, sidecar = secured_door.cluster, secured_door.sidecar
    headers = {"authorization": authorization, "securitytenant": "__user__"}
    direct = Dashboards(cluster.url, headers, ca=str(cluster.certificate)).run(calls)
    through = Dashboards(sidecar.url, headers).run(calls)
    assert masked(direct) == masked(through)
    assert through[2]["body"]["user_requested_tenant"] == "__user__"


def _python_client(door: SecuredDoor, user: str) -> OpenSearch:
    return OpenSearch(door.sidecar.url, http_auth=(user, PASSWORD), timeout=CLUSTER_SECONDS, max_retries=0)
