"""A change through one sidecar, or by hand in the store, is in force on another one.

After how long: `plugin/tests/predictions/test_model_cache.py`.
"""

import asyncio

from integration_tests.server.shared_sidecars import Replicas
from integration_tests.support.background_provider import background_provider
from integration_tests.support.conditions import eventually
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import openai_stream
from integration_tests.support.sidecars import Sidecar

from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.open_store import open_store

QUESTION = {"parameters": {"inputs": "x"}}


def ask(sidecar: Sidecar, model_id: str) -> int:
    """The status of a streamed prediction."""
    return sidecar.client.post(f"/_plugins/_ml/models/{model_id}/_predict/stream", json=QUESTION).status_code


def test_a_model_disabled_through_one_sidecar_is_refused_by_the_other(replicas: Replicas) -> None:
    with background_provider(openai_stream(["ok"])) as provider:
        model_id = replicas.one.create_model(openai(provider.url))
        assert ask(replicas.other, model_id) == 200
        replicas.one.client.put(f"/_plugins/_ml/models/{model_id}", json={"is_enabled": False}).raise_for_status()
        eventually(lambda: ask(replicas.other, model_id) == 403)


def test_a_model_removed_by_hand_is_refused_by_all(replicas: Replicas) -> None:
    async def remove(model_id: str) -> None:
        async with open_store(replicas.store) as store:
            await store.delete(Index.MODEL, model_id)

    both = (replicas.one, replicas.other)
    with background_provider(openai_stream(["ok"])) as provider:
        model_id = replicas.one.create_model(openai(provider.url))
        assert [ask(sidecar, model_id) for sidecar in both] == [200, 200]
        asyncio.run(remove(model_id))
        eventually(lambda: [ask(sidecar, model_id) for sidecar in both] == [404, 404])
