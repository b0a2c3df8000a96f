"""The management API over a real store and real sockets: what the recorded session does not show."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from integration_tests.management_server import SETTINGS, Api, management_api, open_test_registry, served
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.errors import exception_handlers

SECRET = "sk-very-secret"
CONNECTOR: dict[str, Any] = {
    "name": "c",
    "version": 1,
    "protocol": "http",
    "parameters": {"host": "127.0.0.1:9", "temperature": 0.7, "flag": True, "list": ["a", 1]},
    "credential": {"key": SECRET},
    "actions": [
        {
            "action_type": "predict",
            "method": "POST",
            "url": "http://${parameters.host}/v1",
            "headers": {"Authorization": "Bearer ${credential.key}"},
            "request_body": '{"inputs": "${parameters.inputs}"}',
        }
    ],
    "client_config": {"read_timeout": 5},
}


@pytest.fixture
async def api(store: Store) -> AsyncIterator[Api]:
    async with management_api(open_test_registry(store)) as opened:
        yield opened


async def make_connector(api: Api, **fields: Any) -> str:
    return str((await api.ok("POST", "/connectors/_create", {**CONNECTOR, **fields}))["connector_id"])


async def make_model(api: Api, path: str = "/models/_register", **fields: Any) -> str:
    if "connector" not in fields:
        fields.setdefault("connector_id", await make_connector(api))
    return str((await api.ok("POST", path, {"name": "m", "function_name": "remote", **fields}))["model_id"])


async def test_a_connector_comes_back_with_its_parameters_as_strings(api: Api) -> None:
    shown = await api.ok("GET", f"/connectors/{await make_connector(api)}")
    assert shown["parameters"] == {"host": "127.0.0.1:9", "temperature": "0.7", "flag": "true", "list": '["a",1]'}
    assert shown["client_config"] == {"read_timeout": 5}


async def test_a_dry_run_checks_all_and_stores_nothing(api: Api) -> None:
    answer = await api.ok("POST", "/connectors/_create", {**CONNECTOR, "dry_run": True})
    assert answer == {"connector_id": "dryRunConnector"}
    assert (await api.ok("GET", "/connectors/_search"))["hits"]["total"]["value"] == 0
    status, _ = await api.refused("POST", "/connectors/_create", {**CONNECTOR, "protocol": "x", "dry_run": True})
    assert status == 400


async def test_no_answer_holds_a_credential(api: Api, store: Store) -> None:
    connector_id = await make_connector(api)
    inline_id = await make_model(api, connector=CONNECTOR)
    document = await store.get(Index.CONNECTOR, connector_id)
    assert document is not None
    cipher_text = document.source["credential"]["key"]
    assert SECRET not in json.dumps(dict(document.source))
    paths = [f"/connectors/{connector_id}", f"/models/{inline_id}", "/connectors/_search", "/models/_search"]
    answers = [(await api("GET", path)).text for path in paths]
    for source in (["credential", "connector.credential"], {"includes": ["*"]}, "**.credential", True):
        answers += [(await api("POST", path, {"_source": source})).text for path in paths[2:]]
    for answer in answers:
        assert 'credential":' not in answer
        assert SECRET not in answer
        assert cipher_text not in answer


async def test_a_search_on_a_credential_is_refused(api: Api) -> None:
    body = {"query": {"exists": {"field": "credential.key"}}}
    assert (await api.refused("POST", "/connectors/_search", body))[0] == 400


async def test_the_source_of_hits_is_cut_as_asked(api: Api) -> None:
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
    answer = await api.ok("PUT", f"/connectors/{connector_id}", change)
    assert answer["result"] == "updated"
    after = await store.get(Index.CONNECTOR, connector_id)
    assert before is not None and after is not None
    assert after.source["parameters"] == {**before.source["parameters"], "temperature": "1"}
    assert after.source["credential"]["key"] == before.source["credential"]["key"]
    assert after.source["credential"]["second"] != "x"
    assert after.source["actions"] == before.source["actions"]
    assert after.source["created_time"] == before.source["created_time"]


async def test_an_update_cannot_lead_a_connector_to_an_untrusted_place(api: Api) -> None:
    path = f"/connectors/{await make_connector(api)}"
    status, reason = await api.refused("PUT", path, {"parameters": {"host": "evil.example"}})
    assert (status, reason) == (400, "Connector URL is not matching the trusted connector endpoint regex")
    assert (await api.ok("GET", path))["parameters"]["host"] == "127.0.0.1:9"
    assert (await api.refused("PUT", "/connectors/nope", {"name": "x"}))[0] == 404


async def test_a_header_that_needs_an_unknown_credential_is_refused(api: Api) -> None:
    status, reason = await api.refused("POST", "/connectors/_create", {**CONNECTOR, "credential": {"other": SECRET}})
    assert status == 400
    assert "Authorization" in reason and SECRET not in reason


async def test_a_stream_spec_that_cannot_be_read_is_refused_when_the_connector_is_made(api: Api) -> None:
    parameters = {**CONNECTOR["parameters"], "_stream": {"framing": "smoke signals"}}
    status, reason = await api.refused("POST", "/connectors/_create", {**CONNECTOR, "parameters": parameters})
    assert status == 400 and "framing" in reason
    status, _ = await api.refused("PUT", f"/connectors/{await make_connector(api)}", {"parameters": {"_stream": "{"}})
    assert status == 400


async def test_deleting_a_connector_that_is_not_there_is_no_error(api: Api) -> None:
    assert (await api.ok("DELETE", "/connectors/nope"))["result"] == "not_found"


@pytest.mark.parametrize("field", [{"backend_roles": ["a"]}, {"add_all_backend_roles": True}, {"access_mode": "x"}])
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
    answer = await api.ok("POST", "/models/_unload", {"model_ids": [model_id, "nope"]})
    assert [node["stats"] for node in answer.values()] == [{model_id: "undeployed", "nope": "not_found"}]
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
    for method in ("GET", "DELETE"):
        assert await api.refused(method, "/model_groups/nope") == (404, "Failed to find model group")
    assert (await api.refused("PUT", "/model_groups/nope", {"name": "x"}))[0] == 404


async def test_a_group_is_renamed_but_not_to_a_name_in_use_and_deleted_when_empty(api: Api) -> None:
    one = (await api.ok("POST", "/model_groups/_register", {"name": "one"}))["model_group_id"]
    two = (await api.ok("POST", "/model_groups/_register", {"name": "two"}))["model_group_id"]
    assert await api.ok("PUT", f"/model_groups/{one}", {"name": "one", "description": "d"}) == {"status": "Updated"}
    status, reason = await api.refused("PUT", f"/model_groups/{one}", {"name": "two"})
    assert (status, reason) == (400, f"The name you provided is already being used by a model group with ID: {two}.")
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


async def test_an_inline_connector_needs_a_place_to_predict(api: Api) -> None:
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
    found = await api.ok("POST", "/tasks/_search", {"query": {"term": {"state": "COMPLETED"}}})
    assert [hit["_id"] for hit in found["hits"]["hits"]] == [done]
    assert (await api.ok("DELETE", f"/tasks/{done}"))["result"] == "deleted"
    assert await api.refused("DELETE", f"/tasks/{done}") == (404, "Failed to find task")


async def test_an_empty_or_wrong_body_says_what_is_missing(api: Api) -> None:
    for method, path in (("POST", "/connectors/_create"), ("POST", "/models/_register"), ("PUT", "/models/x")):
        assert await api.refused(method, path) == (400, "request body is required")
    headers = {"Content-Type": "application/json"}
    for content in (
        '{"name":',
        '{"name": 1, "name": 2}',
        "[]",
        "{}{}",
        '{"name": "\\ud800"}',
        "[" * 15_000,
        b'{"name": "\xff"}',
    ):
        response = await api("POST", "/connectors/_create", content=content, headers=headers)
        assert response.status_code == 400, content[:20]


async def test_comments_in_a_body_are_read_over(api: Api) -> None:
    content = "/* mine */ " + json.dumps(CONNECTOR) + " // end"
    await api.ok("POST", "/connectors/_create", content=content, headers={"Content-Type": "application/json"})


async def test_a_body_in_many_pieces_is_one_request(api: Api) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for byte in json.dumps(CONNECTOR).encode():
            yield bytes([byte])

    await api.ok("POST", "/connectors/_create", content=pieces(), headers={"Content-Type": "application/json"})


async def test_a_body_beyond_the_limit_is_a_413_with_and_without_an_announced_length(api: Api) -> None:
    large = json.dumps({"name": "x" * SETTINGS.max_body_size})

    async def pieces() -> AsyncIterator[bytes]:
        yield large.encode()

    for content in (large, pieces()):
        headers = {"Content-Type": "application/json"}
        status, reason = await api.refused("POST", "/connectors/_create", content=content, headers=headers)
        assert status == 413 and str(SETTINGS.max_body_size) in reason


async def test_a_body_that_is_not_json_by_its_content_type_is_a_406(api: Api) -> None:
    response = await api("POST", "/connectors/_create", content="{}", headers={"Content-Type": "text/plain"})
    assert response.status_code == 406
    assert response.json() == {"error": "Content-Type header [text/plain] is not supported", "status": 406}


async def test_a_body_may_stand_in_the_query(api: Api) -> None:
    await make_connector(api)
    query = {"source": '{"query": {"match_all": {}}, "size": 0}', "source_content_type": "application/json"}
    found = await api.ok("GET", "/connectors/_search", params=query)
    assert (found["hits"]["total"]["value"], found["hits"]["hits"]) == (1, [])
    assert (await api.refused("GET", "/connectors/_search", params={"source": "{}"}))[0] == 400


async def test_answers_and_errors_alike_are_pretty_filtered_and_marked(api: Api) -> None:
    path = f"/connectors/{await make_connector(api)}"
    query = {"pretty": "", "human": "true", "error_trace": "true", "filter_path": "name,protocol"}
    good = await api("GET", path, params=query, headers={"X-Opaque-Id": "me"})
    assert good.text == '{\n  "name" : "c",\n  "protocol" : "http"\n}\n'
    assert good.headers["X-Opaque-Id"] == "me"
    assert good.headers["Content-Type"] == "application/json; charset=UTF-8"
    bad = await api("GET", "/models/nope?pretty&filter_path=status", headers={"X-Opaque-Id": "me"})
    assert (bad.status_code, bad.text) == (404, '{\n  "status" : 404\n}\n')
    assert bad.headers["X-Opaque-Id"] == "me"


async def test_an_unknown_query_parameter_is_refused_by_name(api: Api) -> None:
    status, reason = await api.refused("GET", "/connectors/x?foo=1&pretty")
    assert status == 400
    assert reason == "request [/_plugins/_ml/connectors/x] contains unrecognized parameter: [foo]"
    assert (await api.refused("GET", "/connectors/x?pretty=maybe"))[0] == 400


async def test_unknown_paths_and_methods_are_answered_as_opensearch_does(api: Api) -> None:
    unknown = await api("POST", "/connectors/x/_zap?pretty=false")
    assert unknown.status_code == 400
    text = "no handler found for uri [/_plugins/_ml/connectors/x/_zap?pretty=false] and method [POST]"
    assert unknown.json() == {"error": text}
    wrong = await api("PATCH", "/connectors/x")
    assert (wrong.status_code, wrong.headers["Allow"]) == (405, "DELETE, GET, PUT")
    text = "Incorrect HTTP method for uri [/_plugins/_ml/connectors/x] and method [PATCH], allowed: [DELETE, GET, PUT]"
    assert wrong.json() == {"error": text, "status": 405}


async def test_a_slash_at_the_end_of_a_path_does_not_matter(api: Api) -> None:
    connector_id = await make_connector(api)
    assert (await api.ok("GET", f"/connectors/{connector_id}/"))["name"] == "c"


async def test_an_unexpected_error_does_not_tell_what_it_says() -> None:
    async def fail(request: Request) -> Response:
        raise RuntimeError(SECRET)

    app = Starlette(routes=[Route("/", fail)], exception_handlers=exception_handlers())
    async with served(app) as url, httpx.AsyncClient() as http:
        response = await http.get(url)
    assert (response.status_code, response.json()["status"]) == (500, 500)
    assert SECRET not in response.text


@pytest.mark.parametrize("id", ["%2e%2e", "%2e"])
async def test_an_id_cannot_lead_out_of_its_index(api: Api, id: str) -> None:
    connector_id = await make_connector(api)
    assert (await api.refused("DELETE", f"/connectors/{id}"))[0] == 400
    assert (await api("GET", f"/connectors/{connector_id}")).status_code == 200


@pytest.mark.parametrize("value", [2**63, 1e300, -0.0, "\u0000", "\U0001f600"])
async def test_any_json_value_is_kept_as_it_is(api: Api, value: Any) -> None:
    config = {"model_type": "x", "additional_config": {"value": value}}
    model_id = await make_model(api, model_config=config)
    assert (await api.ok("GET", f"/models/{model_id}"))["model_config"] == config


async def test_a_client_that_leaves_in_the_middle_of_its_body_harms_nobody(api: Api) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(api.url).port)
    head = "POST /_plugins/_ml/connectors/_create HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
    writer.write((head + "Content-Type: application/json\r\n\r\n{").encode())
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await api.ok("GET", "/connectors/_search"))["hits"]["total"]["value"] == 0
