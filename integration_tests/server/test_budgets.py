"""Budgets over the workers of a server, over servers on one store, and over restarts."""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from integration_tests.server.shared_sidecars import Replicas
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import FakeProvider, openai_stream
from integration_tests.support.sidecars import Sidecar, running_sidecar

from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.open_store import open_store

QUESTION = {"parameters": {"messages": [{"role": "user", "content": "hi"}]}}
TOKENS = 7  # of each call: 5 and a chunk each
WINDOW = "300d"  # which ends in no test


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with background_provider(openai_stream(["a", "b"])) as provider:
        yield provider


def add_model(sidecar: Sidecar, provider: FakeProvider, calls: int) -> str:
    """A model whose budget is spent after so many calls."""
    budget = {"tokens": calls * TOKENS, "window": WINDOW}
    return sidecar.create_model(openai(provider.url), _sidecar={"budgets": [budget]})


def ask(sidecar: Sidecar, model_id: str) -> httpx.Response:
    """A streamed prediction on a connection of its own, so that either worker may have it."""
    path = f"/_plugins/_ml/models/{model_id}/_predict/stream"
    return sidecar.client.post(path, json=QUESTION, headers={"Connection": "close"})


def left(response: httpx.Response) -> int:
    """What the terminal object says is left."""
    assert response.status_code == 200, response.text
    data: dict[str, Any] = json.loads(response.text.splitlines()[-1])["inference_results"][0]["output"][0]["dataAsMap"]
    assert data["spent"] == {"tokens": TOKENS}
    [budget] = data["budgets"]
    return int(budget["left"])


def stored_tokens(store: str) -> float:
    """What the store says was spent."""

    async def read() -> float:
        async with open_store(store) as opened:
            hits = (await opened.search(Index.SPENDING, {}))["hits"]["hits"]
        return float(sum(hit["_source"]["tokens"] for hit in hits))

    return asyncio.run(read())


def documented_settings() -> dict[str, Any]:
    """The body of the example in docs/budgets.md."""
    text = (Path(__file__).parents[2] / "docs" / "budgets.md").read_text("utf-8")
    body: dict[str, Any] = json.loads(text.split("-d '")[1].split("}'")[0] + "}")
    return body


def test_two_workers_count_every_call_exactly(two_workers: Sidecar, provider: FakeProvider) -> None:
    many, one = add_model(two_workers, provider, 1000), add_model(two_workers, provider, 1)
    with ThreadPoolExecutor(8) as clients:
        list(clients.map(lambda _: left(ask(two_workers, many)), range(40)))
    assert left(ask(two_workers, many)) == (1000 - 41) * TOKENS
    assert left(ask(two_workers, one)) == 0
    refused = [ask(two_workers, one) for _ in range(6)]  # by either worker
    assert {(each.status_code, each.headers["retry-after"]) for each in refused} == {(429, "86400")}
    assert refused[0].json()["error"]["type"] == "budget_exceeded_exception"
    metrics = two_workers.client.get("/metrics").text
    two_workers.client.put(f"/_plugins/_ml/models/{one}", json=documented_settings()).raise_for_status()
    assert f'mlstream_refused_total{{limit="model_budget",model_id="{one}"}} 6.0' in metrics


def test_what_one_server_spends_is_refused_by_the_other(replicas: Replicas, provider: FakeProvider) -> None:
    """After how long: `plugin/tests/limits/test_shared_spending.py`."""
    model_id = add_model(replicas.one, provider, 3)
    assert left(ask(replicas.other, model_id)) == 2 * TOKENS
    assert ask(replicas.one, model_id).status_code == ask(replicas.one, model_id).status_code == 200
    eventually(lambda: ask(replicas.other, model_id).status_code == 429)


def test_a_restart_renews_no_budget(tmp_path: Path, provider: FakeProvider) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    with running_sidecar(tmp_path, store) as sidecar:
        model_id = add_model(sidecar, provider, 1)
        assert left(ask(sidecar, model_id)) == 0
        sidecar.stop()
    assert stored_tokens(store) == TOKENS
    with running_sidecar(tmp_path, store) as sidecar:
        assert ask(sidecar, model_id).status_code == 429
