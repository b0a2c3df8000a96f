"""A sidecar whose callers log in, with users and keys of its own."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from integration_tests.support.sidecars import Sidecar, running_sidecar

from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.security.own_accounts import create_key, key_id, remove_account
from opensearch_ml_stream.plugin.store.open_store import open_store

BASE = "/_plugins/_ml"
ROLES = ("ml_full_access", "ml_predict_access", "ml_read_access")
_SETTINGS = {
    "plugins.ml_commons.model_access_control_enabled": "true",
    "plugins.ml_commons.connector_access_control_enabled": "true",
}


@dataclass(frozen=True, slots=True)
class Guarded:
    """The sidecar, whose client has no login; `keys` are by role and named as it."""

    sidecar: Sidecar
    store: str
    keys: dict[str, str]

    def ask(self, method: str, path: str, key: str = "", **options: Any) -> httpx.Response:
        """Send a request on a connection of its own, which any worker may get."""
        headers = {"Connection": "close", **({"x-api-key": key} if key else {}), **options.pop("headers", {})}
        return self.sidecar.client.request(method, path, headers=headers, **options)

    def statuses(self, method: str, path: str, key: str, **options: Any) -> set[int]:
        """The statuses of enough requests for both workers to get some."""
        return {self.ask(method, path, key, **options).status_code for _ in range(8)}

    def create_model(self, connector: dict[str, Any], **fields: Any) -> str:
        """The id of a model over a new connector, both of the key with full access; the model has its own group."""
        connector_id = self._created("/connectors/_create", connector)["connector_id"]
        model = {"name": f"over-{connector_id}", "function_name": "remote", "connector_id": connector_id, **fields}
        return str(self._created("/models/_register", model)["model_id"])

    def new_key(self, name: str, role: str) -> str:
        return asyncio.run(_new_keys(self.store, {name: role}))[name]

    def revoke(self, key: str) -> None:
        asyncio.run(_revoke(self.store, key))

    def _created(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        response = self.ask("POST", BASE + path, self.keys["ml_full_access"], json=body)
        assert response.status_code == 200, response.text
        created: dict[str, Any] = response.json()
        return created


@contextmanager
def running_guarded(folder: Path, *arguments: str) -> Iterator[Guarded]:
    """A sidecar with access control; a model is its creator's unless it is registered with `access_mode: public`."""
    url = f"sqlite:///{folder}/store.db"

    keys = asyncio.run(_new_keys(url, {role: role for role in ROLES}))
    with running_sidecar(folder, url, _SETTINGS, arguments) as sidecar:
        yield Guarded(sidecar, url, keys)


async def _new_keys(url: str, roles: dict[str, str]) -> dict[str, str]:
    """Keys by name, for the roles by name."""
    async with open_store(url) as store:
        return {name: (await create_key(store, name, role, now_millis())).value for name, role in roles.items()}


async def _revoke(url: str, key: str) -> None:
    async with open_store(url) as store:
        await remove_account(store, key_id(key.split("_")[1]))
