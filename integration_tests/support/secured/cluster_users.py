"""Users, roles and mappings of the secured cluster that a test makes and changes, through the security plugin's API."""

import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml
from integration_tests.support.secured.secured_cluster import SecuredCluster

_API = "/_plugins/_security/api"
_SHIPPED = Path(__file__).parents[3] / "scripts" / "secured" / "internal_users.yml"
_PASSWORD_HASH: str = yaml.safe_load(_SHIPPED.read_text())["admin"]["hash"]


class ClusterUsers:
    """Things of the security plugin, by kind (`internalusers`, `roles`, `rolesmapping`) and name, deleted at the end.

    Each change of the plugin takes it most of a second, so that several are made at once.
    """

    def __init__(self, admin: httpx.Client) -> None:
        self._admin = admin
        self._made: dict[str, set[str]] = {}

    def add(self, names: Iterable[str], **fields: object) -> None:
        """Makes users with PASSWORD, hashed beforehand: the plugin takes half a second for a hash of its own."""
        self.put("internalusers", {name: {"hash": _PASSWORD_HASH, **fields} for name in names})

    def name(self, what: str) -> str:
        """A name that nothing else has."""
        return f"{what}-{secrets.token_hex(4)}"

    def read(self, kind: str, name: str) -> dict[str, Any]:
        thing: dict[str, Any] = self._admin.get(f"{_API}/{kind}/{name}").raise_for_status().json()[name]
        return thing

    def put(self, kind: str, things: Mapping[str, Mapping[str, Any]]) -> None:
        """Makes things, or replaces them."""
        self._patch(kind, [{"op": "add", "path": f"/{name}", "value": thing} for name, thing in things.items()])
        self._made.setdefault(kind, set()).update(things)

    def delete(self, kind: str, *names: str) -> None:
        self._patch(kind, [{"op": "remove", "path": f"/{name}"} for name in names])
        self._made[kind] -= set(names)

    def clear(self) -> None:
        for kind, names in self._made.items():
            if names:
                self.delete(kind, *names)

    def _patch(self, kind: str, operations: list[dict[str, object]]) -> None:
        response = self._admin.patch(f"{_API}/{kind}", json=operations)
        assert response.status_code == 200, response.text


@contextmanager
def cluster_users(cluster: SecuredCluster) -> Iterator[ClusterUsers]:
    with cluster.client() as admin:
        users = ClusterUsers(admin)
        try:
            yield users
        finally:
            users.clear()
