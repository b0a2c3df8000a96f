"""Rate limits over HTTP: of users on every worker of a server, and of servers that share a store."""

import asyncio
from collections import Counter
from pathlib import Path

import httpx
from integration_tests.support import connector_bodies
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually, promptly
from integration_tests.support.fake_provider import openai_stream
from integration_tests.support.sidecars import Sidecar, running_sidecar

from opensearch_ml_stream.plugin.security.own_accounts import create_key
from opensearch_ml_stream.plugin.store.open_store import open_store

BASE = "/_plugins/_ml"
QUESTION = {"parameters": {"inputs": "x"}}
BY_USER = "Request is throttled at user level. If you think there's an issue, please contact your cluster admin."


async def new_keys(store_url: str, **roles: str) -> dict[str, str]:
    """Keys of these names and roles in the store."""
    async with open_store(store_url) as store:
        return {name: (await create_key(store, name, role, 1)).value for name, role in roles.items()}


def ask(sidecar: Sidecar, model_id: str, key: str = "") -> httpx.Response:
    """A prediction over a connection of its own, so that the kernel spreads them over the workers."""
    headers = {"Connection": "close"} | ({"x-api-key": key} if key else {})
    return sidecar.client.post(f"{BASE}/models/{model_id}/_predict/stream", json=QUESTION, headers=headers)


def knows_of(sidecar: Sidecar, servers: int) -> bool:
    lines = [line for line in sidecar.log.read_text().splitlines() if "Servers on this store: " in line]
    return bool(lines) and f"Servers on this store: {servers};" in lines[-1]


def test_a_users_limit_is_exact_over_all_workers_and_a_change_in_force_within_two_seconds(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    keys = asyncio.run(new_keys(store, ops="ml_full_access", ann="ml_predict_access", bob="ml_predict_access"))
    with (
        background_provider(openai_stream(["ok"])) as provider,
        running_sidecar(tmp_path, store, arguments=("--workers", "2")) as sidecar,
    ):
        sidecar.client.headers["x-api-key"] = keys["ops"]
        model_id = sidecar.create_model(connector_bodies.openai(provider.url))
        controller = f"{BASE}/controllers/{model_id}"
        limits = {"user_rate_limiter": {"ann": {"limit": "12", "unit": "DAYS"}}}
        sidecar.client.post(controller, json=limits).raise_for_status()
        refused = [ask(sidecar, model_id, keys["ann"]) for _ in range(20)][12:]
        assert {response.status_code for response in refused} == {429}
        assert len(provider.requests) == 12
        assert refused[0].json()["error"]["reason"] == BY_USER
        assert 7000 < int(refused[0].headers["retry-after"]) <= 7200
        assert ask(sidecar, model_id, keys["bob"]).status_code == 200
        counted = sidecar.client.get("/metrics").text
        assert f'mlstream_refused_total{{limit="user_rate",model_id="{model_id}"}} 8.0' in counted

        limits = {"user_rate_limiter": {"bob": {"limit": "0", "unit": "DAYS"}}}
        sidecar.client.put(controller, json=limits).raise_for_status()
        promptly(lambda: {ask(sidecar, model_id, keys["bob"]).status_code for _ in range(6)} == {429}, 2)
        off = {"persistent": {"plugins.ml_commons.controller_enabled": False}}
        sidecar.client.put(f"{BASE}/_settings", json=off).raise_for_status()
        promptly(lambda: {ask(sidecar, model_id, keys["bob"]).status_code for _ in range(6)} == {200}, 2)


def test_servers_that_share_a_store_share_the_limit(tmp_path: Path, store_url: str, index_prefix: str) -> None:
    """The second has counted before it serves; the first knows of it with its next look."""
    settings = {"opensearch_ml_stream.index_prefix": index_prefix}
    limiter = {"limit": "10", "unit": "DAYS"}
    (tmp_path / "two").mkdir()
    with (
        background_provider(openai_stream(["ok"])) as provider,
        running_sidecar(tmp_path, store_url, settings) as one,
    ):
        with running_sidecar(tmp_path / "two", store_url, settings) as two:
            assert knows_of(two, 2)
            eventually(lambda: knows_of(one, 2))
            model_id = one.create_model(connector_bodies.openai(provider.url), rate_limiter=limiter)
            for sidecar in (one, two):
                statuses = Counter(ask(sidecar, model_id).status_code for _ in range(10))
                assert statuses == {200: 5, 429: 5}
            assert two.stop() == 0
        eventually(lambda: knows_of(one, 1))  # without waiting for a lease to expire
        assert ask(one, model_id).status_code == 429  # what the other had is not handed out again
        assert len(provider.requests) == 10
