"""Rate limits over HTTP: of users on every worker of a server, and of servers that share a store."""

from collections import Counter
from pathlib import Path

import httpx
from integration_tests.server.guarded_sidecars import BASE, Guarded
from integration_tests.support import connector_bodies
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.fake_provider import openai_stream
from integration_tests.support.sidecars import Sidecar, running_sidecar

QUESTION = {"parameters": {"inputs": "x"}}
BY_USER = "Request is throttled at user level. If you think there's an issue, please contact your cluster admin."


def ask(sidecar: Sidecar, model_id: str) -> httpx.Response:
    return sidecar.client.post(f"{BASE}/models/{model_id}/_predict/stream", json=QUESTION)


def knows_of(sidecar: Sidecar, servers: int) -> bool:
    lines = [line for line in sidecar.log.read_text().splitlines() if "Servers on this store: " in line]
    return bool(lines) and f"Servers on this store: {servers};" in lines[-1]


def test_a_users_limit_is_exact_over_all_workers_and_a_change_in_force_on_each(guarded: Guarded) -> None:
    """After a second, and switched off: `plugin/tests/predictions/test_user_limits.py`."""
    full = guarded.keys["ml_full_access"]
    ann, bob = (guarded.new_key(name, "ml_predict_access") for name in ("limited-ann", "limited-bob"))
    with background_provider(openai_stream(["ok"])) as provider:
        model_id = guarded.create_model(connector_bodies.openai(provider.url), access_mode="public")
        stream, controller = f"{BASE}/models/{model_id}/_predict/stream", f"{BASE}/controllers/{model_id}"
        limits = {"user_rate_limiter": {"limited-ann": {"limit": "12", "unit": "DAYS"}}}
        guarded.ask("POST", controller, full, json=limits).raise_for_status()
        refused = [guarded.ask("POST", stream, ann, json=QUESTION) for _ in range(20)][12:]
        assert {response.status_code for response in refused} == {429}
        assert len(provider.requests) == 12
        assert refused[0].json()["error"]["reason"] == BY_USER
        assert 7000 < int(refused[0].headers["retry-after"]) <= 7200
        assert guarded.ask("POST", stream, bob, json=QUESTION).status_code == 200
        counted = guarded.ask("GET", "/metrics", full).text
        assert f'mlstream_refused_total{{limit="user_rate",model_id="{model_id}"}} 8.0' in counted

        limits = {"user_rate_limiter": {"limited-bob": {"limit": "0", "unit": "DAYS"}}}
        guarded.ask("PUT", controller, full, json=limits).raise_for_status()
        eventually(lambda: guarded.statuses("POST", stream, bob, json=QUESTION) == {429})


def test_servers_that_share_a_store_share_the_limit(tmp_path: Path, store_url: str, index_prefix: str) -> None:
    """The second has counted before it serves; the first knows of it with its next look.

    What a server had is not handed out again: `plugin/tests/limits/test_limits_over_replicas.py`.
    """
    settings = {"opensearch_ml_stream.index_prefix": index_prefix}
    limiter = {"limit": "10", "unit": "DAYS"}
    (tmp_path / "two").mkdir()
    with (
        background_provider(openai_stream(["ok"])) as provider,
        running_sidecar(tmp_path, store_url, settings) as one,
        running_sidecar(tmp_path / "two", store_url, settings) as two,
    ):
        assert knows_of(two, 2)
        eventually(lambda: knows_of(one, 2))
        model_id = one.create_model(connector_bodies.openai(provider.url), rate_limiter=limiter)
        for sidecar in (one, two):
            statuses = Counter(ask(sidecar, model_id).status_code for _ in range(10))
            assert statuses == {200: 5, 429: 5}
        assert len(provider.requests) == 10
