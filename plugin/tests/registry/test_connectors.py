"""Connectors over SQLite: credentials are encrypted on the way in and never come out."""

from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.errors import Conflict, InvalidRequest, NotFound
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.registry.connectors import DRY_RUN_ID
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.registry.registry_setup import (
    FIRST_TICK,
    SECRET,
    add_connector,
    add_model,
    connector_body,
    registry_on,
    stored,
)

ACTION = connector_body()["actions"][0]


async def credential(store: Store, connector_id: str) -> dict[str, str]:
    """The stored credential in clear."""
    document = await stored(store, Index.CONNECTOR, connector_id)
    cipher = Cipher(store)
    return {name: await cipher.decrypt(text) for name, text in document.source["credential"].items()}


async def test_a_connector_is_stored_with_its_credential_encrypted(store: Store, registry: Registry) -> None:
    connector_id = await add_connector(registry, parameters={"model": "x", "n": 3})
    source = (await stored(store, Index.CONNECTOR, connector_id)).source
    assert SECRET not in orjson.dumps(source).decode()
    assert await credential(store, connector_id) == {"key": SECRET}
    assert source["parameters"] == {"model": "x", "n": "3"}
    assert (source["created_time"], source["last_updated_time"]) == (FIRST_TICK, FIRST_TICK)


async def test_a_connector_is_shown_without_its_credential(store: Store, registry: Registry) -> None:
    connector_id = await add_connector(registry, description="d")
    shown = await registry.connectors.get(ANYONE, connector_id)
    assert list(shown) == [
        "name",
        "version",
        "description",
        "protocol",
        "parameters",
        "actions",
        "created_time",
        "last_updated_time",
    ]
    document = await stored(store, Index.CONNECTOR, connector_id)
    await store.put(Index.CONNECTOR, connector_id, {**document.source, "ui_metadata": {"x": 1}})
    assert "ui_metadata" not in await registry.connectors.get(ANYONE, connector_id)
    assert (await registry.connectors.get(ANYONE, connector_id, dashboards=True))["ui_metadata"] == {"x": 1}


async def test_a_dry_run_checks_everything_and_stores_nothing(store: Store, registry: Registry) -> None:
    response = await registry.connectors.create(ANYONE, connector_body(dry_run=True))
    assert response == {"connector_id": DRY_RUN_ID}
    assert (await store.search(Index.CONNECTOR, {}))["hits"]["total"]["value"] == 0
    with pytest.raises(InvalidRequest):
        await registry.connectors.create(ANYONE, connector_body(dry_run=True, name=None))
    assert await registry.connectors.create(ANYONE, {"dry_run": True}) == {"connector_id": DRY_RUN_ID}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"actions": [{**ACTION, "url": "https://evil.example/v1"}]}, "not matching the trusted connector endpoint"),
        ({"actions": [{**ACTION, "url": "https://${parameters.host}/v1"}]}, "not matching the trusted connector"),
        ({"parameters": {"_stream": '{"preset": "nope"}'}}, r"_stream\.preset: there is no preset \[nope\]"),
        ({"credential": None}, "Connector credential is null"),
        ({"backend_roles": ["r"]}, "You cannot specify connector access control parameters"),
        ({"dry_run": "maybe"}, "dry_run must be true or false"),
    ],
)
async def test_a_wrong_connector_is_refused(registry: Registry, fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        await registry.connectors.create(ANYONE, connector_body(**fields))


async def test_an_update_merges_maps_and_replaces_everything_else(store: Store, registry: Registry) -> None:
    connector_id = await add_connector(registry, parameters={"a": "1", "b": "2"}, credential={"key": "k", "old": "o"})
    update = {
        "description": "changed",
        "parameters": {"b": 3},
        "credential": {"key": SECRET},
        "actions": [{**ACTION, "url": "https://api.openai.com/v2"}],
        "created_time": 0,
        "unknown": 1,
    }
    response = await registry.connectors.update(ANYONE, connector_id, update)
    assert (response["_id"], response["result"]) == (connector_id, "updated")
    source = (await stored(store, Index.CONNECTOR, connector_id)).source
    assert source["parameters"] == {"a": "1", "b": "3"}
    assert source["actions"][0]["url"] == "https://api.openai.com/v2"
    assert (source["description"], source["name"]) == ("changed", "c")
    assert (source["created_time"], source["last_updated_time"]) == (FIRST_TICK, FIRST_TICK + 1)
    assert "unknown" not in source
    assert await credential(store, connector_id) == {"key": SECRET, "old": "o"}


async def test_an_update_is_checked_as_a_whole(store: Store, registry: Registry) -> None:
    action = {**ACTION, "url": "https://${parameters.host}/v1"}
    connector_id = await add_connector(registry, parameters={"host": "api.openai.com"}, actions=[action])
    with pytest.raises(InvalidRequest, match="not matching the trusted connector endpoint"):
        await registry.connectors.update(ANYONE, connector_id, {"parameters": {"host": "evil.example"}})
    for wrong in ({"access_mode": "secret"}, {"backend_roles": "a"}, {"name": " "}, {"client_config": {"x": 1}}):
        with pytest.raises(InvalidRequest):
            await registry.connectors.update(ANYONE, connector_id, wrong)
    assert (await stored(store, Index.CONNECTOR, connector_id)).version == 1


async def test_an_update_stores_and_shows_roles_and_access_as_ml_commons_does(registry: Registry) -> None:
    connector_id = await add_connector(registry)
    changes = {"backend_roles": ["a", "b"], "access_mode": "PRIVATE", "add_all_backend_roles": True}
    await registry.connectors.update(ANYONE, connector_id, changes)
    shown = await registry.connectors.get(ANYONE, connector_id)
    assert (shown["backend_roles"], shown["access"]) == (["a", "b"], "private")
    assert shown.keys() & changes.keys() == {"backend_roles"}


async def test_a_client_config_of_a_newer_ml_commons_survives_an_update_of_something_else(
    store: Store, registry: Registry
) -> None:
    connector_id = await add_connector(registry, client_config={"read_timeout": 5})
    source = (await stored(store, Index.CONNECTOR, connector_id)).source
    newer = {"read_timeout": 5, "a_newer_key": [1]}
    await store.put(Index.CONNECTOR, connector_id, {**source, "client_config": newer})
    await registry.connectors.update(ANYONE, connector_id, {"description": "changed"})
    shown = await registry.connectors.get(ANYONE, connector_id)
    assert (shown["description"], shown["client_config"]) == ("changed", newer)
    await registry.connectors.update(ANYONE, connector_id, {"client_config": {"read_timeout": 6}})
    assert (await registry.connectors.get(ANYONE, connector_id))["client_config"]["read_timeout"] == 6


async def test_a_connector_of_a_deployed_model_cannot_be_changed(registry: Registry) -> None:
    connector_id = await add_connector(registry)
    model_id = await add_model(registry, connector_id=connector_id)
    await add_model(registry, connector_id=connector_id)
    await registry.connectors.update(ANYONE, connector_id, {"description": "one"})
    await registry.models.deploy(ANYONE, model_id, {})
    with pytest.raises(InvalidRequest) as raised:
        await registry.connectors.update(ANYONE, connector_id, {"description": "two"})
    expected = f"1 models are still using this connector, please undeploy the models first: [{model_id}]"
    assert (raised.value.reason, raised.value.type) == (expected, "status_exception")


async def test_a_connector_that_a_model_uses_cannot_be_deleted(registry: Registry) -> None:
    connector_id = await add_connector(registry)
    models = [await add_model(registry, connector_id=connector_id) for _ in range(2)]
    with pytest.raises(Conflict) as raised:
        await registry.connectors.delete(ANYONE, connector_id)
    assert raised.value.reason == (
        f"2 models are still using this connector, please delete or update the models first: [{', '.join(models)}]"
    )
    for model_id in models:
        await registry.models.delete(ANYONE, model_id)
    assert (await registry.connectors.delete(ANYONE, connector_id))["result"] == "deleted"
    assert (await registry.connectors.delete(ANYONE, connector_id))["result"] == "not_found"


async def test_a_connector_that_is_not_there_is_not_found(registry: Registry) -> None:
    for call in (registry.connectors.get(ANYONE, "x"), registry.connectors.update(ANYONE, "x", {})):
        with pytest.raises(NotFound, match=r"^Failed to find connector with the provided connector id: x$"):
            await call


async def test_a_search_finds_connectors_but_not_by_their_credentials(registry: Registry) -> None:
    await add_connector(registry, name="one")
    connector_id = await add_connector(registry, name="two")
    response = await registry.connectors.search(ANYONE, {"query": {"match": {"name": "two"}}})
    [hit] = response["hits"]["hits"]
    assert (hit["_id"], "credential" in hit["_source"]) == (connector_id, False)
    with pytest.raises(InvalidRequest, match="credentials are not searchable"):
        await registry.connectors.search(ANYONE, {"query": {"exists": {"field": "credential.key"}}})


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8000", "10.0.0.5", "2130706433", "[::1]", "localhost:11434", "a.localhost"]
)
async def test_a_private_address_that_no_prediction_could_reach_is_refused_at_once(store: Store, host: str) -> None:
    trusting: dict[str, Any] = {"trusted_connector_endpoints_regex": ("^http://.*$",)}
    body = connector_body(actions=[{**ACTION, "url": "http://${parameters.host}/v1"}], parameters={"host": host})
    with pytest.raises(InvalidRequest, match=r"has private ip address: .*: opensearch-ml-stream endpoints allow http:"):
        await registry_on(store, **trusting).connectors.create(ANYONE, body)
    assert await registry_on(store, **trusting, private_ip_enabled=True).connectors.create(ANYONE, body)
    trusting |= {"private_ip_enabled": True, "trusted_connector_private_endpoints_regex": ("^http://10.9.9.9/.*$",)}
    with pytest.raises(InvalidRequest, match="not matching the trusted connector private endpoint regex"):
        await registry_on(store, **trusting).connectors.create(ANYONE, body)


async def test_the_address_of_a_metadata_service_is_refused_and_not_advised(store: Store) -> None:
    registry = registry_on(store, trusted_connector_endpoints_regex=("^http://.*$",), private_ip_enabled=True)
    body = connector_body(actions=[{**ACTION, "url": "http://169.254.169.254/v1"}])
    with pytest.raises(InvalidRequest, match=r"restricted ip address: 169\.254\.169\.254$"):
        await registry.connectors.create(ANYONE, body)
