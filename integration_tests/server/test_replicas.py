"""A change through one sidecar, or by hand in the store, is in force on another one within 2 s."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import promptly
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import openai_stream
from integration_tests.support.sidecars import Sidecar, running_sidecar

from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.open_store import open_store

QUESTION = {"parameters": {"inputs": "x"}}


@pytest.fixture(scope="module")
def store_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("replicas") / "store.db"


@pytest.fixture(scope="module")
def replicas(store_path: Path) -> Iterator[tuple[Sidecar, Sidecar]]:
    url = f"sqlite:///{store_path}"
    with running_sidecar(store_path.parent, url) as one, running_sidecar(store_path.parent, url) as another:
        yield one, another


def ask(sidecar: Sidecar, model_id: str) -> int:
    """The status of a streamed prediction."""
    return sidecar.client.post(f"/_plugins/_ml/models/{model_id}/_predict/stream", json=QUESTION).status_code


def test_a_model_disabled_through_one_sidecar_is_refused_by_the_other(replicas: tuple[Sidecar, Sidecar]) -> None:
    one, another = replicas
    with background_provider(openai_stream(["ok"])) as provider:
        model_id = one.create_model(openai(provider.url))
        assert ask(another, model_id) == 200
        one.client.put(f"/_plugins/_ml/models/{model_id}", json={"is_enabled": False}).raise_for_status()
        promptly(lambda: ask(another, model_id) == 403, 2)


def test_a_model_removed_by_hand_is_refused_by_all(replicas: tuple[Sidecar, Sidecar], store_path: Path) -> None:
    async def remove(model_id: str) -> None:
        async with open_store(f"sqlite:///{store_path}") as store:
            await store.delete(Index.MODEL, model_id)

    with background_provider(openai_stream(["ok"])) as provider:
        model_id = replicas[0].create_model(openai(provider.url))
        assert [ask(sidecar, model_id) for sidecar in replicas] == [200, 200]
        asyncio.run(remove(model_id))
        promptly(lambda: [ask(sidecar, model_id) for sidecar in replicas] == [404, 404], 2)
