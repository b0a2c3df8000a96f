"""Documents of the models that run here, in the embedded store and in a cluster."""

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.runtimes.keeper.model_folders import ModelFolder
from opensearch_ml_stream.extensions.runtimes.keeper.runtime_documents import RuntimeDocuments
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.registry.registry_setup import StoreInCluster, closing, registry_on


@pytest.fixture(params=[SQLiteStore, StoreInCluster])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    async with closing(request.param(":memory:")) as opened:
        yield opened


@pytest.fixture
def documents(store: Store) -> RuntimeDocuments:
    ticks = count(1)
    return RuntimeDocuments(store, LiveSettings(Settings()), lambda: next(ticks), Cipher(store))


def model(name: str = "m", version: str | None = None, implementation: str = "a.B", **extra: Any) -> ModelFolder:
    parameters = {"version": version, "extra": extra}
    return ModelFolder(Path("/models"), {"name": name, "implementation": implementation, "parameters": parameters})


async def shown(store: Store, id: str = "runtime-m") -> dict[str, Any]:
    return dict(await registry_on(store).models.get(ANYONE, id))


async def test_a_document_is_one_of_a_remote_model_that_leads_to_the_runtime(
    store: Store, documents: RuntimeDocuments
) -> None:
    await documents.put("a b/2", model("a b", "v2"), "DEPLOYED")
    document = await shown(store, "runtime-a%20b-v2")
    assert document["model_state"] == "DEPLOYED"
    assert (document["name"], document["algorithm"], document["model_version"]) == ("a b", "REMOTE", "2")
    assert document["connector"]["actions"][0]["url"] == "runtime://a%20b%2F2"
    group = await store.get(Index.MODEL_GROUP, document["model_group_id"])
    assert group is not None
    assert (group.source["name"], group.source["latest_version"]) == ("a b", 2)


async def test_versions_of_a_model_are_in_one_group(store: Store, documents: RuntimeDocuments) -> None:
    await documents.put("m", model(version="1"), "DEPLOYED")
    await documents.put("m/2", model(version="2"), "DEPLOYED")
    groups = {(await shown(store, f"runtime-m-{version}"))["model_group_id"] for version in (1, 2)}
    assert len(groups) == 1


async def test_what_users_changed_stays_but_for_the_name_and_what_leads_to_the_runtime(
    store: Store, documents: RuntimeDocuments
) -> None:
    await documents.put("m", model(), "DEPLOYED")
    changes: dict[str, Any] = {"name": "n", "description": "d", "is_enabled": False}
    document = await store.get(Index.MODEL, "runtime-m")
    assert document is not None
    connector = {**document.source["connector"], "parameters": {"top": "1"}, "actions": []}
    await store.put(Index.MODEL, "runtime-m", {**document.source, **changes, "connector": connector})
    await documents.put("m", model(), "DEPLOYED")
    after = await shown(store)
    assert (after["name"], after["description"], after["is_enabled"]) == ("m", "d", False)
    assert after["connector"]["parameters"] == {"top": "1"}
    assert after["connector"]["actions"][0]["url"] == "runtime://m"


async def test_a_document_shows_how_the_runtime_is(store: Store, documents: RuntimeDocuments) -> None:
    await documents.put("m", model(), "DEPLOYING")
    states = [(await shown(store))["model_state"]]
    for state in ("DEPLOYED", "DEPLOY_FAILED", "DEPLOYED", "UNDEPLOYED"):
        await documents.put("m", model(), state)
        states.append((await shown(store))["model_state"])
    deploying = "DEPLOYING" if store.cluster is None else "REGISTERED"
    assert states == [deploying, "DEPLOYED", "DEPLOY_FAILED", "DEPLOYED", "UNDEPLOYED"]


async def test_in_a_cluster_no_document_says_that_it_is_deployed_as_ml_commons_would_undo_that() -> None:
    async with closing(StoreInCluster(":memory:")) as store:
        documents = RuntimeDocuments(store, LiveSettings(Settings()), lambda: 1, Cipher(store))
        for state in ("DEPLOYING", "DEPLOYED"):
            await documents.put("m", model(), state)
            document = await store.get(Index.MODEL, "runtime-m")
            assert document is not None
            assert document.source["model_state"] == "REGISTERED"


async def test_documents_whose_folders_went_are_undeployed_and_no_others(
    store: Store, documents: RuntimeDocuments
) -> None:
    await documents.put("gone", model("gone"), "DEPLOYED")
    await documents.put("m", model(), "DEPLOYED")
    await documents.retire({"runtime-m"})
    assert (await shown(store, "runtime-gone"))["model_state"] == "UNDEPLOYED"
    assert (await shown(store))["model_state"] == "DEPLOYED"


async def test_a_providers_model_gets_its_connector_and_its_key_from_the_environment_encrypted(
    store: Store, documents: RuntimeDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    await documents.put("m", model(implementation="openai", model_id="gpt"), "DEPLOYED")
    document = await store.get(Index.MODEL, "runtime-m")
    assert document is not None
    connector = document.source["connector"]
    assert connector["actions"][0]["url"] == "https://api.openai.com/v1/chat/completions"
    assert "sk-of" not in str(connector)
    assert await Cipher(store).decrypt(connector["credential"]["api_key"]) == "sk-of-the-environment"


async def test_a_providers_model_without_its_key_is_refused(
    store: Store, documents: RuntimeDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    remote = model(implementation="openai", model_id="gpt")
    with pytest.raises(InvalidRequest, match=r"\[api_key\] names an environment variable that is not set"):
        await documents.put("m", remote, "DEPLOYED")
    await documents.put("m", remote, "DEPLOY_FAILED")
    assert await store.get(Index.MODEL, "runtime-m") is None
