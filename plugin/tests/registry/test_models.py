"""Models over SQLite: registered, shown, changed, deployed and deleted."""

from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.errors import Conflict, Forbidden, InvalidRequest, NotFound
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.security.access_control import GROUP_WORDING
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.registry.registry_setup import (
    FIRST_TICK,
    SECRET,
    add_connector,
    add_model,
    connector_body,
    stored,
)

BEDROCK: dict[str, Any] = {
    "protocol": "aws_sigv4",
    "credential": {"access_key": "a", "secret_key": "s"},
    "parameters": {"region": "us-east-1", "service_name": "bedrock", "model": "anthropic.claude-v2"},
}


async def source(store: Store, model_id: str) -> Any:
    return (await stored(store, Index.MODEL, model_id)).source


async def test_a_model_is_registered_with_a_task_and_a_group(store: Store, registry: Registry) -> None:
    connector_id = await add_connector(registry)
    body = {"name": "m", "function_name": "Remote", "connector_id": connector_id, "description": "d"}
    response = await registry.models.register(ANYONE, body)
    model_id = response["model_id"]
    assert response == {"task_id": response["task_id"], "status": "CREATED", "model_id": model_id}
    model = await source(store, model_id)
    assert model == {
        "name": "m",
        "algorithm": "REMOTE",
        "model_version": "1",
        "model_group_id": model["model_group_id"],
        "model_state": "REGISTERED",
        "created_time": model["created_time"],
        "last_updated_time": model["created_time"],
        "is_hidden": False,
        "description": "d",
        "connector_id": connector_id,
    }
    task = await registry.tasks.get(ANYONE, response["task_id"])
    assert (task["model_id"], task["task_type"], task["state"]) == (model_id, "REGISTER_MODEL", "COMPLETED")
    assert FIRST_TICK < task["create_time"] < model["created_time"] < task["last_update_time"]
    assert not task["is_async"]


async def test_a_model_may_be_deployed_as_it_is_registered(store: Store, registry: Registry) -> None:
    body = {"name": "m", "function_name": "remote", "connector_id": await add_connector(registry)}
    model_id = (await registry.models.register(ANYONE, body, deploy=True))["model_id"]
    assert (await source(store, model_id))["model_state"] == "DEPLOYED"


async def test_an_inline_connector_is_stored_encrypted_and_shown_without_its_credential(
    store: Store, registry: Registry
) -> None:
    model_id = await add_model(registry, connector=connector_body(description="inline"))
    connector = (await source(store, model_id))["connector"]
    assert SECRET not in orjson.dumps(connector).decode()
    assert await Cipher(store).decrypt(connector["credential"]["key"]) == SECRET
    shown = (await registry.models.get(ANYONE, model_id))["connector"]
    assert (shown["description"], "credential" in shown) == ("inline", False)


async def test_of_an_id_and_an_inline_connector_the_id_counts(store: Store, registry: Registry) -> None:
    connector_id = await add_connector(registry)
    model_id = await add_model(registry, connector_id=connector_id, connector={"not": "even read"})
    model = await source(store, model_id)
    assert (model["connector_id"], "connector" in model) == (connector_id, False)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": None}, "model name is null"),
        ({"name": ""}, "Validation Failed: 1: Model name is required and cannot be null or blank;"),
        ({"function_name": None}, "model format is null"),
        ({"access_mode": "public"}, GROUP_WORDING.switched_off),
        ({"connector_id": ""},
         "You must provide connector content when creating a remote model without connector id!"),
        ({"connector_id": None},
         "You must provide connector content when creating a remote model without connector id!"),
        ({"connector_id": None, "connector": connector_body(actions=[])},
         "Connector endpoint is required when creating a remote model without connector id!"),
        ({"connector_id": None, "connector": "x"}, "connector must be an object"),
        ({"model_format": "zz"}, "Wrong model format"),
        ({"is_hidden": "maybe"}, "is_hidden must be true or false"),
        ({"model_node_ids": "a"}, "model_node_ids must be an array of strings"),
        ({"url": "https://x/y.zip"},
         "url is for models that ML Commons downloads and runs; only remote models are supported here"),
    ],
)  # fmt: skip
async def test_a_wrong_model_is_refused(registry: Registry, fields: dict[str, Any], reason: str) -> None:
    body = {"name": "m", "function_name": "remote", "connector_id": await add_connector(registry)}
    with pytest.raises(InvalidRequest) as raised:
        await registry.models.register(ANYONE, {**body, **fields})
    assert raised.value.reason == reason


async def test_a_model_format_is_kept(registry: Registry) -> None:
    model_id = await add_model(registry, model_format="onnx")
    assert (await registry.models.get(ANYONE, model_id))["model_format"] == "ONNX"


async def test_a_group_or_connector_that_is_not_there_is_named(registry: Registry) -> None:
    with pytest.raises(NotFound, match=r"^Failed to find connector:gone$"):
        await add_model(registry, connector_id="gone")
    with pytest.raises(NotFound, match=r"^Failed to find the model group with the provided model group id: gone$"):
        await add_model(registry, model_group_id="gone")


async def test_an_inline_connector_needs_neither_name_nor_version_nor_credential(registry: Registry) -> None:
    body = {name: value for name, value in connector_body().items() if name in ("protocol", "actions")}
    body["actions"] = [{**action, "headers": {}} for action in body["actions"]]
    model_id = await add_model(registry, connector={**body, "backend_roles": ["a"]})
    await registry.models.deploy(ANYONE, model_id, {})
    shown = (await registry.models.get(ANYONE, model_id))["connector"]
    assert list(shown) == ["protocol", "actions", "backend_roles"]
    await registry.models.update(ANYONE, model_id, {"connector": {"description": "changed"}})
    assert (await registry.models.get(ANYONE, model_id))["connector"]["description"] == "changed"


async def test_an_inline_connector_needs_a_protocol_and_an_action_to_predict_with(registry: Registry) -> None:
    with pytest.raises(InvalidRequest, match=r"^connector protocol is null$"):
        await add_model(registry, connector={})
    with pytest.raises(InvalidRequest, match=r"^Connector endpoint is required when creating a remote model"):
        await add_model(registry, connector={"protocol": "http"})


async def test_an_mcp_connector_makes_no_model(store: Store, registry: Registry) -> None:
    connector_id = (await store.create(Index.CONNECTOR, {"name": "c", "protocol": "mcp_sse", "url": "https://h/"})).id
    with pytest.raises(InvalidRequest, match=f"MCP Connector: {connector_id} has protocol mcp_sse$"):
        await add_model(registry, connector_id=connector_id)


async def test_a_known_aws_model_gets_an_interface_unless_it_has_one(store: Store, registry: Registry) -> None:
    connector_id = await add_connector(registry, **BEDROCK)
    preset = (await source(store, await add_model(registry, connector_id=connector_id)))["interface"]
    assert orjson.loads(preset["input"])["properties"]["parameters"]["required"] == ["inputs"]
    own = await add_model(registry, connector_id=connector_id, interface={"output": {}})
    assert (await source(store, own))["interface"] == {"output": "{}"}
    inline = await add_model(registry, connector=connector_body(**BEDROCK))
    assert (await source(store, inline))["interface"] == preset


async def test_an_update_merges_objects_field_by_field(store: Store, registry: Registry) -> None:
    words = {"regex": [".*aaa.*"]}
    model_id = await add_model(
        registry,
        guardrails={"type": "local_regex", "input_guardrail": words, "output_guardrail": words},
        interface={"input": {"type": "object"}, "output": {"type": "object"}},
        model_config={"model_type": "x", "additional_config": {"a": 1, "b": 2}},
        deploy_setting={"is_auto_deploy_enabled": False, "model_ttl_minutes": 5},
    )
    other = {"regex": [".*bbb.*"]}
    changes = {
        "guardrails": {"type": "local_regex", "input_guardrail": other},
        "interface": {"input": {"type": "array"}},
        "model_config": {"model_type": "x", "additional_config": {"b": 3}},
        "deploy_setting": {"model_ttl_minutes": 6},
    }
    await registry.models.update(ANYONE, model_id, changes)
    model = await registry.models.get(ANYONE, model_id)
    assert model["guardrails"] == {"type": "local_regex", "input_guardrail": other, "output_guardrail": words}
    assert model["interface"] == {"input": '{"type":"array"}', "output": '{"type":"object"}'}
    assert model["model_config"] == {"model_type": "x", "additional_config": {"a": 1, "b": 3}}
    assert model["deploy_setting"] == {"is_auto_deploy_enabled": False, "model_ttl_minutes": 6}


async def test_an_update_changes_what_it_names(store: Store, registry: Registry) -> None:
    model_id = await add_model(registry, description="old", rate_limiter={"limit": 1, "unit": "DAYS"})
    before = await source(store, model_id)
    response = await registry.models.update(
        ANYONE, model_id, {"name": "new", "rate_limiter": {"limit": 2}, "unknown": 1}
    )
    assert (response["_id"], response["result"]) == (model_id, "updated")
    after = await source(store, model_id)
    assert after["last_updated_time"] > before["last_updated_time"]
    changed = {"name": "new", "rate_limiter": {"limit": "2", "unit": "DAYS"}, "model_id": model_id}
    assert after == {**before, **changed, "last_updated_time": after["last_updated_time"]}


async def test_a_model_may_change_to_another_connector(store: Store, registry: Registry) -> None:
    model_id = await add_model(registry)
    other = await add_connector(registry)
    await registry.models.update(ANYONE, model_id, {"connector_id": other})
    assert (await source(store, model_id))["connector_id"] == other
    with pytest.raises(NotFound, match=r"^Failed to find connector:gone$"):
        await registry.models.update(ANYONE, model_id, {"connector_id": "gone"})
    with pytest.raises(InvalidRequest, match="cannot have both stand-alone connector and internal connector"):
        await registry.models.update(ANYONE, model_id, {"connector_id": other, "connector": {}})
    with pytest.raises(InvalidRequest, match=r"^Cannot update connector settings for this model\."):
        await registry.models.update(ANYONE, model_id, {"connector": {"description": "x"}})


async def test_an_inline_connector_is_changed_in_place(store: Store, registry: Registry) -> None:
    model_id = await add_model(registry, connector=connector_body(parameters={"a": "1"}))
    changes = {"parameters": {"b": "2"}, "credential": {"key": "new-secret"}}
    await registry.models.update(ANYONE, model_id, {"connector": changes})
    connector = (await source(store, model_id))["connector"]
    assert connector["parameters"] == {"a": "1", "b": "2"}
    assert await Cipher(store).decrypt(connector["credential"]["key"]) == "new-secret"
    with pytest.raises(InvalidRequest, match="does not have a connector_id field"):
        await registry.models.update(ANYONE, model_id, {"connector_id": "c"})
    action = {**connector_body()["actions"][0], "url": "https://evil.example"}
    with pytest.raises(InvalidRequest, match="not matching the trusted connector endpoint"):
        await registry.models.update(ANYONE, model_id, {"connector": {"actions": [action]}})


async def test_a_model_that_changes_its_group_gets_the_next_version_there(store: Store, registry: Registry) -> None:
    model_id = await add_model(registry, name="a")
    other = await source(store, await add_model(registry, name="b"))
    await registry.models.update(ANYONE, model_id, {"model_group_id": other["model_group_id"]})
    changed = await source(store, model_id)
    assert (changed["model_group_id"], changed["model_version"]) == (other["model_group_id"], "2")
    await registry.models.update(ANYONE, model_id, {"model_group_id": other["model_group_id"]})
    assert (await source(store, model_id))["model_version"] == "2"
    with pytest.raises(NotFound, match=r"in the update model input, MODEL_GROUP_ID: gone$"):
        await registry.models.update(ANYONE, model_id, {"model_group_id": "gone"})


@pytest.mark.parametrize(
    ("state", "error"),
    [({"algorithm": "TEXT_EMBEDDING"}, Forbidden), ({"model_state": "DEPLOYING"}, Conflict),
     ({"model_state": "LOADING"}, Conflict)],
)  # fmt: skip
async def test_a_local_model_and_one_that_is_being_deployed_are_not_changed(
    store: Store, registry: Registry, state: dict[str, str], error: type[Exception]
) -> None:
    model_id = await add_model(registry)
    await store.put(Index.MODEL, model_id, {**await source(store, model_id), **state})
    with pytest.raises(error):
        await registry.models.update(ANYONE, model_id, {"name": "x"})


async def test_a_deployed_model_cannot_be_deleted(store: Store, registry: Registry) -> None:
    model_id = await add_model(registry)
    await registry.models.deploy(ANYONE, model_id, {})
    with pytest.raises(InvalidRequest, match=r"Try undeploy model first then delete$") as raised:
        await registry.models.delete(ANYONE, model_id)
    assert raised.value.type == "status_exception"
    await registry.models.undeploy(ANYONE, model_id, {})
    assert (await registry.models.delete(ANYONE, model_id))["result"] == "deleted"
    assert await store.get(Index.MODEL, model_id) is None


async def test_with_a_local_model_its_chunks_are_deleted(store: Store, registry: Registry) -> None:
    await store.create(Index.MODEL, {"algorithm": "TEXT_EMBEDDING", "total_chunks": 2}, "local")
    for id in ("local_0", "local_1", "local_2"):
        await store.create(Index.MODEL, {"model_id": "local"}, id)
    assert (await registry.models.delete(ANYONE, "local"))["_id"] == "local"
    assert [await store.get(Index.MODEL, id) for id in ("local", "local_0", "local_1")] == [None, None, None]
    assert await store.get(Index.MODEL, "local_2") is not None


async def test_an_update_leaves_guardrails_alone_that_only_ml_commons_can_read(
    store: Store, registry: Registry
) -> None:
    model_id = await add_model(registry)
    guardrails = {"type": "local_regex", "input_guardrail": {"regex": ["(?=.*bad).*"]}}
    await store.put(Index.MODEL, model_id, {**await source(store, model_id), "guardrails": guardrails})
    await registry.models.update(ANYONE, model_id, {"description": "new"})
    updated = await source(store, model_id)
    assert (updated["description"], updated["guardrails"]) == ("new", guardrails)
    with pytest.raises(InvalidRequest, match=r"^guardrails\.input_guardrail\.regex: The regular expression"):
        await registry.models.update(ANYONE, model_id, {"guardrails": {"type": "local_regex"}})


@pytest.mark.parametrize("name", ["connector_id", "model_group_id"])
async def test_an_empty_id_means_that_none_is_given(store: Store, registry: Registry, name: str) -> None:
    model_id = await add_model(registry)
    before = await source(store, model_id)
    await registry.models.update(ANYONE, model_id, {name: "", "description": "new"})
    after = await source(store, model_id)
    assert (after["description"], after[name]) == ("new", before[name])


async def test_a_model_is_deployed_with_a_task_and_no_choice_of_nodes(registry: Registry) -> None:
    model_id = await add_model(registry)
    response = await registry.models.deploy(ANYONE, model_id, {"node_ids": []})
    assert response == {"task_id": response["task_id"], "task_type": "DEPLOY_MODEL", "status": "COMPLETED"}
    task = await registry.tasks.get(ANYONE, response["task_id"])
    assert (task["task_type"], task["is_async"], task["state"]) == ("DEPLOY_MODEL", True, "COMPLETED")
    assert (await registry.models.get(ANYONE, model_id))["planning_worker_nodes"] == task["worker_node"]
    with pytest.raises(InvalidRequest, match=r"^Don't allow custom deployment plan$"):
        await registry.models.deploy(ANYONE, model_id, {"node_ids": ["n"]})


async def test_many_models_are_undeployed_at_once_by_name(registry: Registry) -> None:
    deployed, registered = await add_model(registry), await add_model(registry)
    await registry.models.deploy(ANYONE, deployed, {})
    response = await registry.models.undeploy_many(ANYONE, {"model_ids": [deployed, registered, "gone"]})
    [node] = response.values()
    assert node == {"stats": {deployed: "undeployed", registered: "not_found", "gone": "not_found"}}
    empty_bodies: list[dict[str, list[str]]] = [{}, {"model_ids": []}, {"node_ids": ["n"]}]
    for body in empty_bodies:
        with pytest.raises(InvalidRequest, match=r"^Must set specific model ids to undeploy$"):
            await registry.models.undeploy_many(ANYONE, body)
    with pytest.raises(NotFound, match=r"^Failed to find model$"):
        await registry.models.undeploy_many(ANYONE, {"model_ids": ["gone"]})
    with pytest.raises(InvalidRequest, match=r"^Don't allow custom deployment plan$"):
        await registry.models.undeploy_many(ANYONE, {"model_ids": [deployed], "node_ids": ["n"]})


async def test_a_local_model_is_not_deployed(store: Store, registry: Registry) -> None:
    await store.create(Index.MODEL, {"algorithm": "TEXT_EMBEDDING"}, "local")
    with pytest.raises(InvalidRequest, match=r"^The function category TEXT_EMBEDDING is not supported here"):
        await registry.models.deploy(ANYONE, "local", {})


async def test_a_model_that_is_not_there_is_not_found(registry: Registry) -> None:
    models = registry.models
    expected = {
        "Failed to find model with the provided model id: x": models.get(ANYONE, "x"),
        "Failed to find model to update with the provided model id: x": models.update(ANYONE, "x", {}),
    }
    for reason, call in expected.items():
        with pytest.raises(NotFound, match=f"^{reason}$"):
            await call
    for call in (models.delete(ANYONE, "x"), models.deploy(ANYONE, "x", {}), models.undeploy(ANYONE, "x", {})):
        with pytest.raises(NotFound, match=r"^Failed to find model$"):
            await call
