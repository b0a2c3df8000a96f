"""Connectors, models, groups and tasks over a real store: cases that the recorded requests do not cover."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from integration_tests.management.management_server import (
    CONNECTOR,
    SECRET,
    Api,
    make_connector,
    make_model,
    management_api,
    open_test_registry,
)

from opensearch_ml_stream.plugin.store import Index, Store


@pytest.fixture
async def api(store: Store) -> AsyncIterator[Api]:
    async with management_api(open_test_registry(store)) as opened:
        yield opened


async def test_a_connector_comes_back_with_its_parameters_as_strings(api: Api) -> None:
    shown = await api.ok("GET", f"/connectors/{await make_connector(api)}")
    assert shown["parameters"] == {"host": "127.0.0.1:9", "temperature": "0.7", "flag": "true", "list": '["a",1]'}
    assert shown["client_config"]["read_timeout"] == 5


async def test_what_is_deleted_in_an_empty_store_is_not_found(api: Api) -> None:
    for kind in ("connectors", "model_groups"):
        assert (await api.ok("DELETE", f"/{kind}/nobody"))["result"] == "not_found"
    for kind in ("models", "tasks", "controllers"):
        assert (await api.refused("DELETE", f"/{kind}/nobody"))[0] == 404


async def test_an_undeployment_follows_its_body(api: Api) -> None:
    one, other = await make_model(api), await make_model(api, name="other")
    for model_id in (one, other):
        await api.ok("POST", f"/models/{model_id}/_deploy")
    [stats] = (await api.ok("POST", f"/models/{one}/_undeploy", {"model_ids": [other]})).values()
    assert stats == {"stats": {other: "undeployed"}}
    assert (await api.refused("POST", f"/models/{one}/_undeploy", {"model_ids": ["nobody"]}))[0] == 404
    assert (await api.refused("POST", f"/models/{one}/_undeploy", {"node_ids": ["n"]}))[0] == 400
    assert (await api.ok("GET", f"/models/{one}"))["model_state"] == "DEPLOYED"


async def test_a_dry_run_checks_all_and_stores_nothing(api: Api) -> None:
    response = await api.ok("POST", "/connectors/_create", {**CONNECTOR, "dry_run": True})
    assert response == {"connector_id": "dryRunConnector"}
    assert (await api.ok("GET", "/connectors/_search"))["hits"]["total"]["value"] == 0
    status, _ = await api.refused("POST", "/connectors/_create", {**CONNECTOR, "protocol": "x", "dry_run": True})
    assert status == 400


async def test_no_response_holds_a_credential(api: Api, store: Store) -> None:
    connector_id = await make_connector(api)
    inline_id = await make_model(api, connector=CONNECTOR)
    document = await store.get(Index.CONNECTOR, connector_id)
    assert document is not None
    cipher_text = document.source["credential"]["key"]
    assert SECRET not in json.dumps(dict(document.source))
    paths = [f"/connectors/{connector_id}", f"/models/{inline_id}", "/connectors/_search", "/models/_search"]
    responses = [(await api("GET", path)).text for path in paths]
    for source in (["credential", "connector.credential"], {"includes": ["*"]}, "**.credential", True):
        responses += [(await api("POST", path, {"_source": source})).text for path in paths[2:]]
    for response in responses:
        assert 'credential":' not in response
        assert SECRET not in response
        assert cipher_text not in response


async def test_a_search_on_a_credential_is_refused(api: Api) -> None:
    body = {"query": {"exists": {"field": "credential.key"}}}
    assert (await api.refused("POST", "/connectors/_search", body))[0] == 400


async def test_the_source_of_hits_holds_only_the_requested_fields(api: Api) -> None:
    await make_connector(api)
    body = {"_source": {"includes": ["name", "param*"], "excludes": ["parameters.host"]}}
    hit = (await api.ok("POST", "/connectors/_search", body))["hits"]["hits"][0]
    assert hit["_source"].keys() == {"name", "parameters"}
    assert "host" not in hit["_source"]["parameters"]
    assert "_source" not in (await api.ok("POST", "/connectors/_search", {"_source": False}))["hits"]["hits"][0]


async def test_ui_metadata_is_for_dashboards_alone(api: Api, store: Store) -> None:
    written = await store.create(Index.MODEL, {"name": "m", "algorithm": "REMOTE", "ui_metadata": {"x": 1}})
    dashboards = {"User-Agent": "OpenSearch Dashboards"}
    assert "ui_metadata" not in await api.ok("GET", f"/models/{written.id}")
    assert "ui_metadata" in await api.ok("GET", f"/models/{written.id}", headers=dashboards)
    search = "/models/_search?filter_path=**.ui_metadata"
    assert await api.ok("GET", search) == {}
    assert await api.ok("GET", search, headers=dashboards) != {}


async def test_an_update_of_a_connector_merges_maps_and_replaces_the_rest(api: Api, store: Store) -> None:
    connector_id = await make_connector(api)
    before = await store.get(Index.CONNECTOR, connector_id)
    change = {"description": "d", "parameters": {"temperature": 1}, "credential": {"second": "x"}}
    response = await api.ok("PUT", f"/connectors/{connector_id}", change)
    assert response["result"] == "updated"
    after = await store.get(Index.CONNECTOR, connector_id)
    assert before is not None and after is not None
    assert after.source["parameters"] == {**before.source["parameters"], "temperature": "1"}
    assert after.source["credential"]["key"] == before.source["credential"]["key"]
    assert after.source["credential"]["second"] != "x"
    assert after.source["actions"] == before.source["actions"]
    assert after.source["created_time"] == before.source["created_time"]


async def test_an_update_cannot_point_a_connector_at_an_untrusted_url(api: Api) -> None:
    path = f"/connectors/{await make_connector(api)}"
    status, reason = await api.refused("PUT", path, {"parameters": {"host": "evil.example"}})
    assert status == 400
    assert reason.startswith("Connector URL is not matching the trusted connector endpoint regex")
    assert (await api.ok("GET", path))["parameters"]["host"] == "127.0.0.1:9"
    assert (await api.refused("PUT", "/connectors/nope", {"name": "x"}))[0] == 404


async def test_a_header_may_name_a_credential_that_only_a_managed_service_has(api: Api) -> None:
    body = {**CONNECTOR, "credential": {"roleArn": "arn:aws:iam::1:role/r"}}
    assert (await api.ok("POST", "/connectors/_create", body))["connector_id"]


async def test_a_stream_spec_that_cannot_be_read_is_refused_when_the_connector_is_made(api: Api) -> None:
    parameters = {**CONNECTOR["parameters"], "_stream": {"framing": "smoke signals"}}
    status, reason = await api.refused("POST", "/connectors/_create", {**CONNECTOR, "parameters": parameters})
    assert status == 400 and "framing" in reason
    status, _ = await api.refused("PUT", f"/connectors/{await make_connector(api)}", {"parameters": {"_stream": "{"}})
    assert status == 400


async def test_deleting_a_connector_that_is_not_there_is_no_error(api: Api) -> None:
    assert (await api.ok("DELETE", "/connectors/nope"))["result"] == "not_found"


@pytest.mark.parametrize(
    "field", [{"backend_roles": ["a"]}, {"add_all_backend_roles": True}, {"access_mode": "private"}]
)
async def test_access_control_that_would_protect_nothing_is_refused(api: Api, field: dict[str, Any]) -> None:
    status, reason = await api.refused("POST", "/connectors/_create", {**CONNECTOR, **field})
    assert status == 400 and reason.startswith("You cannot specify connector access control parameters because")
    status, reason = await api.refused("POST", "/model_groups/_register", {"name": "g", **field})
    assert status == 400 and reason.startswith("You cannot specify model access control parameters because")


@pytest.mark.parametrize("path", ["/models/_upload", "/models/m/7/_register", "/models/m/7/_upload"])
async def test_models_are_registered_under_the_old_names_too(api: Api, path: str) -> None:
    model_id = await make_model(api, path)
    assert (await api.ok("GET", f"/models/{model_id}"))["name"] == "m"


async def test_models_are_deployed_and_undeployed_under_the_old_names_too(api: Api) -> None:
    model_id = await make_model(api)
    assert (await api.ok("POST", f"/models/{model_id}/_load"))["status"] == "COMPLETED"
    assert "undeployed" in json.dumps(await api.ok("POST", f"/models/{model_id}/_unload"))
    await api.ok("POST", f"/models/{model_id}/_deploy")
    response = await api.ok("POST", "/models/_unload", {"model_ids": [model_id, "nope"]})
    assert [node["stats"] for node in response.values()] == [{model_id: "undeployed", "nope": "not_found"}]
    status, reason = await api.refused("POST", "/models/_undeploy")
    assert (status, reason) == (400, "Must set specific model ids to undeploy")


async def test_the_node_of_an_installation_stays_the_same(api: Api, store: Store) -> None:
    model_id = await make_model(api)
    first = await api.ok("POST", f"/models/{model_id}/_undeploy")
    async with management_api(open_test_registry(store)) as another:
        assert await another.ok("POST", f"/models/{model_id}/_undeploy") == first
    assert [len(node) for node in first] == [22]


async def test_a_deployment_plan_of_ones_own_is_refused(api: Api) -> None:
    path = f"/models/{await make_model(api)}/_deploy"
    assert await api.refused("POST", path, {"node_ids": ["x"]}) == (400, "Don't allow custom deployment plan")


async def test_models_registered_at_once_get_versions_of_their_own(api: Api) -> None:
    group = (await api.ok("POST", "/model_groups/_register", {"name": "g"}))["model_group_id"]
    connector_id = await make_connector(api)
    registering = (make_model(api, model_group_id=group, connector_id=connector_id) for _ in range(4))
    models = [await api.ok("GET", f"/models/{id}") for id in await asyncio.gather(*registering)]
    assert sorted(model["model_version"] for model in models) == ["1", "2", "3", "4"]
    assert (await api.ok("GET", f"/model_groups/{group}"))["latest_version"] == 4


async def test_a_group_that_is_not_there_is_a_404(api: Api) -> None:
    connector_id = await make_connector(api)
    body = {"name": "m", "function_name": "remote", "connector_id": connector_id, "model_group_id": "nope"}
    status, reason = await api.refused("POST", "/models/_register", body)
    assert (status, reason) == (404, "Failed to find the model group with the provided model group id: nope")
    assert await api.refused("GET", "/model_groups/nope") == (
        404,
        "Failed to find model group with the provided model group id: nope",
    )
    assert (await api.ok("DELETE", "/model_groups/nope"))["result"] == "not_found"
    assert (await api.refused("PUT", "/model_groups/nope", {"name": "x"}))[0] == 404


async def test_a_group_is_renamed_but_not_to_a_name_in_use_and_deleted_when_empty(api: Api) -> None:
    one = (await api.ok("POST", "/model_groups/_register", {"name": "one"}))["model_group_id"]
    two = (await api.ok("POST", "/model_groups/_register", {"name": "two"}))["model_group_id"]
    assert await api.ok("PUT", f"/model_groups/{one}", {"name": "one", "description": "d"}) == {"status": "Updated"}
    status, reason = await api.refused("PUT", f"/model_groups/{one}", {"name": "two"})
    assert status == 400
    assert reason.startswith(f"The name you provided is already being used by another model with ID: {two}.")
    model_id = await make_model(api, model_group_id=one)
    status, reason = await api.refused("DELETE", f"/model_groups/{one}")
    assert (status, reason) == (409, "Cannot delete the model group when it has associated model versions")
    await api.ok("DELETE", f"/models/{model_id}")
    assert (await api.ok("DELETE", f"/model_groups/{one}"))["result"] == "deleted"


async def test_a_model_moves_to_another_group_with_that_groups_next_version(api: Api) -> None:
    model_id = await make_model(api)
    group = (await api.ok("POST", "/model_groups/_register", {"name": "g"}))["model_group_id"]
    await make_model(api, model_group_id=group)
    await api.ok("PUT", f"/models/{model_id}", {"model_group_id": group, "name": "n", "is_enabled": False})
    model = await api.ok("GET", f"/models/{model_id}")
    assert (model["model_group_id"], model["model_version"], model["name"]) == (group, "2", "n")
    assert model["is_enabled"] is False
    assert (await api.refused("PUT", f"/models/{model_id}", {"model_group_id": "nope"}))[0] == 404


async def test_a_rate_limiter_is_changed_in_part(api: Api) -> None:
    model_id = await make_model(api, rate_limiter={"limit": "4", "unit": "MINUTES"})
    await api.ok("PUT", f"/models/{model_id}", {"rate_limiter": {"limit": "5"}})
    assert (await api.ok("GET", f"/models/{model_id}"))["rate_limiter"] == {"limit": "5", "unit": "MINUTES"}


async def test_a_model_keeps_the_kind_of_connector_that_it_was_made_with(api: Api) -> None:
    by_id, inline = await make_model(api), await make_model(api, connector=CONNECTOR)
    other = await make_connector(api)
    assert (await api.refused("PUT", f"/models/{inline}", {"connector_id": other}))[0] == 400
    assert (await api.refused("PUT", f"/models/{by_id}", {"connector": {"description": "d"}}))[0] == 400
    assert (await api.refused("PUT", f"/models/{by_id}", {"connector_id": "nope"}))[0] == 404
    await api.ok("PUT", f"/models/{by_id}", {"connector_id": other})
    await api.ok("PUT", f"/models/{inline}", {"connector": {"parameters": {"temperature": 1}}})
    assert (await api.ok("GET", f"/models/{by_id}"))["connector_id"] == other
    shown = await api.ok("GET", f"/models/{inline}")
    assert shown["connector"]["parameters"]["temperature"] == "1"
    untrusted = {"connector": {"parameters": {"host": "evil.example"}}}
    assert (await api.refused("PUT", f"/models/{inline}", untrusted))[0] == 400


async def test_an_inline_connector_needs_a_predict_action(api: Api) -> None:
    connector = {**CONNECTOR, "actions": [{**CONNECTOR["actions"][0], "action_type": "execute"}]}
    body = {"name": "m", "function_name": "remote", "connector": connector}
    status, reason = await api.refused("POST", "/models/_register", body)
    assert status == 400
    assert reason == "Connector endpoint is required when creating a remote model without connector id!"


async def test_a_task_is_deleted_unless_it_runs_and_only_a_batch_job_is_cancelled(api: Api, store: Store) -> None:
    running = (await store.create(Index.TASK, {"state": "RUNNING", "task_type": "PREDICTION"})).id
    assert (await api.ok("GET", f"/tasks/{running}"))["is_async"] is False
    status, reason = await api.refused("DELETE", f"/tasks/{running}")
    assert (status, reason) == (400, "Task cannot be deleted in running state. Try after some time.")
    for path in ("_cancel", "_cancel_batch"):
        status, reason = await api.refused("POST", f"/tasks/{running}/{path}")
        assert (status, reason) == (400, "The task ID you provided does not have any associated batch job")
        assert (await api.refused("POST", f"/tasks/nope/{path}"))[0] == 404
    done = (await store.create(Index.TASK, {"state": "COMPLETED"})).id
    response = await api.ok("POST", "/tasks/_search", {"query": {"term": {"state": "COMPLETED"}}})
    assert [hit["_id"] for hit in response["hits"]["hits"]] == [done]
    assert (await api.ok("DELETE", f"/tasks/{done}"))["result"] == "deleted"
    assert await api.refused("DELETE", f"/tasks/{done}") == (404, "Failed to find task")


@pytest.mark.parametrize("value", [2**63, 1e300, -0.0, "\u0000", "\U0001f600"])
async def test_any_json_value_is_kept_as_it_is(api: Api, value: Any) -> None:
    config = {"model_type": "x", "additional_config": {"value": value}}
    model_id = await make_model(api, model_config=config)
    assert (await api.ok("GET", f"/models/{model_id}"))["model_config"] == config
