"""An OpenSearch behind the front door that shows what it is sent, with a security plugin or without.

Paths below `/echo` are answered with the request; the store finds nothing else in it. Users have their names as
passwords.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from integration_tests.support.background_provider import background_provider
from integration_tests.support.fake_provider import FakeProvider, Request, Script, head, json_response
from integration_tests.support.sidecars import Sidecar, running_sidecar

from opensearch_ml_stream.plugin.store import Index

SERVICE = ("service", "s3rvice")
_SECURITY = "/_plugins/_security"
_ROLES = {"all_access": {"cluster_permissions": ["*"]}}
_HEALTH: dict[str, Any] = {"message": None, "mode": "strict", "status": "UP", "settings": {}}


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def opensearch(
    users: tuple[str, ...] = (), accounts: Mapping[str, Mapping[str, Any]] | None = None
) -> Callable[[Request], Script]:
    """An OpenSearch that has the security plugin if it has users; in its index are the sidecar's own `accounts`."""
    found: dict[str, Any] = {"/": {"version": {"number": "3.4.0"}}, "/_cluster/settings": {"persistent": {}}}
    for id, source in (accounts or {}).items():
        hit = {"_id": id, "_version": 1, "_seq_no": 1, "_primary_term": 1, "found": True, "_source": source}
        found[f"/{Index.ACCOUNT}/_doc/{quote(id, safe='')}"] = hit
        found[f"/{Index.ACCOUNT}/_search"] = {"hits": {"total": {"value": 1, "relation": "eq"}, "hits": [hit]}}
    if users:
        found |= {
            f"{_SECURITY}/health": _HEALTH,
            f"{_SECURITY}/api/roles": _ROLES,
            f"{_SECURITY}/api/actiongroups": {},
        }
    logins = {basic(*SERVICE), *(basic(name, name) for name in users)}

    def respond(request: Request) -> Script:
        path = request.path.partition("?")[0]
        if users and path != f"{_SECURITY}/health" and request.headers.get("authorization") not in logins:
            return [head(401, content_type="text/plain; charset=UTF-8", content_length="12") + b"Unauthorized"]
        if users and path == f"{_SECURITY}/authinfo":
            return json_response({"user_name": "ann", "backend_roles": [], "roles": ["all_access"]})
        if path in found:
            return json_response(found[path])
        if path.startswith("/echo"):
            return json_response({"method": request.method, "path": request.path, "headers": request.headers})
        if path.startswith(("/_plugins/_security", "/_plugins/_ml")):
            return json_response({"error": f"no handler found for uri [{path}] and method [{request.method}]"}, 400)
        if path.endswith("/_search"):
            return json_response({"hits": {"total": {"value": 0, "relation": "eq"}, "max_score": None, "hits": []}})
        return json_response({"error": {"type": "index_not_found_exception", "reason": "no such index"}}, 404)

    return respond


@dataclass(frozen=True)
class OpenedDoor:
    """A sidecar whose front door is open, and the cluster behind it."""

    sidecar: Sidecar
    cluster: FakeProvider

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        return httpx.request(method, self.sidecar.url + path, verify=False, **options)

    def echoed(self, path: str = "/echo", **options: Any) -> dict[str, str]:
        """The headers of a request as they have come to the cluster."""
        response = self.ask("GET", path, **options)
        assert response.status_code == 200, response.text
        headers: dict[str, str] = response.json()["headers"]
        return headers


@contextmanager
def opened_door(script: Callable[[Request], Script], folder: Path) -> Iterator[OpenedDoor]:
    with background_provider(script) as cluster:
        store = cluster.url.replace("://", "://{}:{}@".format(*SERVICE))
        with running_sidecar(folder, store, arguments=("--pass-through",)) as sidecar:
            yield OpenedDoor(sidecar, cluster)
