"""Two tenants of one server: nothing of one can be read, called, changed or counted by the other, on any route."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from integration_tests.support import connector_bodies
from integration_tests.support.background_provider import background_provider
from integration_tests.support.fake_provider import json_response
from integration_tests.support.sidecars import Sidecar, running_sidecar

BASE = "/_plugins/_ml"
SETTINGS = {"plugins.ml_commons.multi_tenancy_enabled": "true", "plugins.ml_commons.safe_delete_model": "true"}
NOT_YOURS = "You don't have permission to access this resource"
NO_TENANT = "Tenant ID header is missing or has no value"
ANSWER = {"id": "job-1", "status": "running", "choices": [{"message": {"content": "hi"}}]}
QUESTION = {"parameters": {"inputs": "x"}}
LIMITS = {"user_rate_limiter": {"u": {"limit": "4", "unit": "MINUTES"}}}
# Routes for whoever runs the server: they need no tenant, and show nothing of one.
OF_THE_SERVER = {f"{BASE}/_settings", f"{BASE}/openapi.json"}


@dataclass(frozen=True)
class Owned:
    """What a tenant has on the server."""

    connector: str
    model: str
    group: str
    task: str


@dataclass(frozen=True)
class Server:
    """A server with two tenants."""

    sidecar: Sidecar
    a: Owned
    b: Owned

    def call(self, tenant: str | None, method: str, path: str, body: Any = None) -> httpx.Response:
        """The response to a tenant's request."""
        headers = {} if tenant is None else {"X-Tenant-Id": tenant}
        content_type = {} if body is None else {"json": body}
        return self.sidecar.client.request(method, BASE + path, headers=headers, **content_type)

    def good(self, tenant: str, method: str, path: str, body: Any = None) -> Any:
        """The object in the response to a tenant's request, which succeeds."""
        response = self.call(tenant, method, path, body)
        assert response.status_code == 200, f"{method} {path}: {response.text}"
        return response.json()


def fill(server: Server, tenant: str, provider_url: str) -> Owned:
    connector = connector_bodies.openai(provider_url)
    [action] = connector["actions"]
    jobs = ("batch_predict", "batch_predict_status", "cancel_batch_predict")
    connector["actions"] = [action, *[{**action, "action_type": job, "request_body": "{}"} for job in jobs]]
    connector_id = server.good(tenant, "POST", "/connectors/_create", connector)["connector_id"]
    model = {"name": "shared name", "function_name": "remote", "connector_id": connector_id}
    model_id = server.good(tenant, "POST", "/models/_register?deploy=true", model)["model_id"]
    server.good(tenant, "POST", f"/controllers/{model_id}", LIMITS)
    server.good(tenant, "POST", f"/models/{model_id}/_predict", QUESTION)
    task_id = server.good(tenant, "POST", f"/models/{model_id}/_batch_predict", QUESTION)["task_id"]
    group_id = server.good(tenant, "GET", f"/models/{model_id}")["model_group_id"]
    return Owned(connector_id, model_id, group_id, task_id)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("tenants")
    with (
        background_provider(json_response(ANSWER)) as provider,
        running_sidecar(folder, settings=SETTINGS) as sidecar,
    ):
        nothing = Owned("", "", "", "")
        empty = Server(sidecar, nothing, nothing)
        yield Server(sidecar, fill(empty, "a", provider.url), fill(empty, "b", provider.url))


def operations(server: Server) -> set[tuple[str, str]]:
    """Every route of the server's own description, but for those of whoever runs it."""
    paths: Mapping[str, Any] = server.sidecar.client.get(f"{BASE}/openapi.json").json()["paths"]
    return {
        (method.upper(), path)
        for path, methods in paths.items()
        for method in methods.keys() - {"parameters"}
        if path.startswith(f"{BASE}/") and path not in OF_THE_SERVER
    }


BODIES: dict[tuple[str, str], Any] = {
    ("PUT", "/connectors/{id}"): {"name": "taken"},
    ("PUT", "/models/{id}"): {"name": "taken"},
    ("PUT", "/model_groups/{id}"): {"name": "taken"},
    ("POST", "/controllers/{id}"): LIMITS,
    ("PUT", "/controllers/{id}"): LIMITS,
    ("POST", "/models/{id}/_diagnose"): QUESTION,
}
FOREIGN = [
    *[(method, "/connectors/{id}", "connector") for method in ("GET", "PUT", "DELETE")],
    *[(method, "/models/{id}", "model") for method in ("GET", "PUT", "DELETE")],
    *[("POST", f"/models/{{id}}/{verb}", "model") for verb in ("_deploy", "_load", "_undeploy", "_unload")],
    *[(method, "/model_groups/{id}", "group") for method in ("GET", "PUT", "DELETE")],
    *[(method, "/tasks/{id}", "task") for method in ("GET", "DELETE")],
    *[("POST", f"/tasks/{{id}}/{verb}", "task") for verb in ("_cancel", "_cancel_batch")],
    *[(method, "/controllers/{id}", "model") for method in ("GET", "POST", "PUT", "DELETE")],
    ("POST", "/models/{model_id}/_predict", "model"),
    ("POST", "/_predict/{algorithm}/{model_id}", "model"),
    ("POST", "/models/{model_id}/_batch_predict", "model"),
    ("POST", "/models/{model_id}/_predict/stream", "model"),
    ("POST", "/models/{id}/_diagnose", "model"),
]
"""Routes that name one document, and whose it is."""

ELSEWHERE = {
    ("POST", "/connectors/_create"), ("POST", "/model_groups/_register"), ("GET", "/config/{id}"),
    *[("POST", f"/models/{verb}") for verb in ("_register", "_upload", "_undeploy", "_unload")],
    *[("POST", f"/models/{{id}}/{{version}}/{verb}") for verb in ("_register", "_upload")],
    *[(method, f"/{kind}/_search") for kind in ("connectors", "models", "model_groups", "tasks")
      for method in ("GET", "POST")],
    *[("GET", f"/profile{path}") for path in ("", "/models", "/models/{id}", "/tasks", "/tasks/{id}")],
    *[("GET", f"{node}/stats{stat}") for node in ("", "/{node_id}") for stat in ("", "/{stat}")],
}  # fmt: skip
"""Routes that other tests call."""


def test_every_route_is_tested_here(server: Server) -> None:
    here = {(method, path) for method, path, _ in FOREIGN} | ELSEWHERE
    assert {(method, path.removeprefix(BASE)) for method, path in operations(server)} == here


def test_every_route_needs_a_tenant(server: Server) -> None:
    for method, path in sorted(operations(server)):
        for name in ("id", "model_id", "algorithm", "version", "stat", "node_id"):
            path = path.replace(f"{{{name}}}", "x")
        response = server.sidecar.client.request(method, path, json=QUESTION)
        assert (response.status_code, response.json()["error"]["reason"]) == (403, NO_TENANT), f"{method} {path}"


@pytest.mark.parametrize(("method", "path", "kind"), FOREIGN)
def test_another_tenants_document_cannot_be_used(server: Server, method: str, path: str, kind: str) -> None:
    id = getattr(server.a, kind)
    target = path.replace("{id}", id).replace("{model_id}", id).replace("{algorithm}", "remote")
    body = BODIES.get((method, path), QUESTION if "_predict" in path else None)
    response = server.call("b", method, target, body)
    assert (response.status_code, response.json()["error"]["reason"]) == (403, NOT_YOURS)
    assert response.json()["error"]["type"] == "status_exception"


def test_a_model_cannot_be_made_of_another_tenants_connector_or_group(server: Server) -> None:
    theirs: list[dict[str, str]] = [
        {"connector_id": server.a.connector},
        {"connector_id": server.b.connector, "model_group_id": server.a.group},
    ]
    for fields in theirs:
        body = {"name": "n", "function_name": "remote", **fields}
        for path in ("/models/_register", "/models/n/1/_register", "/models/_upload", "/models/n/1/_upload"):
            response = server.call("b", "POST", path, body)
            assert (response.status_code, response.json()["error"]["reason"]) == (403, NOT_YOURS), path
        if "model_group_id" in fields:
            del fields["connector_id"]
        response = server.call("b", "PUT", f"/models/{server.b.model}", fields)
        assert (response.status_code, response.json()["error"]["reason"]) == (403, NOT_YOURS)


def test_undeploying_several_models_stops_at_another_tenants(server: Server) -> None:
    for path in ("/models/_undeploy", "/models/_unload"):
        response = server.call("b", "POST", path, {"model_ids": [server.b.model, server.a.model]})
        assert (response.status_code, response.json()["error"]["reason"]) == (403, NOT_YOURS)
    for tenant, model_id in (("a", server.a.model), ("b", server.b.model)):
        assert server.good(tenant, "GET", f"/models/{model_id}")["model_state"] == "DEPLOYED"


def test_a_guard_model_is_of_the_same_tenant(server: Server) -> None:
    guard = {"model_id": server.a.model, "response_validation_regex": "^.*$"}
    guardrails = {"type": "model", "input_guardrail": guard}
    body = {"name": "guarded", "function_name": "remote", "connector_id": server.b.connector, "guardrails": guardrails}
    model_id = server.good("b", "POST", "/models/_register", body)["model_id"]
    for path in ("_predict", "_predict/stream", "_batch_predict"):
        response = server.call("b", "POST", f"/models/{model_id}/{path}", QUESTION)
        assert response.status_code == 400 and NOT_YOURS in response.json()["error"]["reason"]
    server.good("b", "POST", f"/models/{model_id}/_undeploy")
    server.good("b", "DELETE", f"/models/{model_id}")


def test_searches_find_a_tenants_own(server: Server) -> None:
    everything = {"query": {"bool": {"should": [{"match_all": {}}, {"term": {"tenant_id": "b"}}]}}, "size": 100}
    aggregation = {"tenants": {"terms": {"field": "tenant_id"}}}
    for kind in ("connectors", "models", "model_groups", "tasks"):
        for method in ("GET", "POST"):
            found = server.good("a", method, f"/{kind}/_search", {**everything, "aggs": aggregation})
            hits, total = found["hits"]["hits"], found["hits"]["total"]["value"]
            assert hits and {hit["_source"]["tenant_id"] for hit in hits} == {"a"} and total == len(hits)
            assert [bucket["key"] for bucket in found["aggregations"]["tenants"]["buckets"]] == ["a"]
    states = {"query": {"term": {"model_state": "DEPLOYED"}}}
    hits = server.good("a", "POST", "/models/_search", states)["hits"]["hits"]
    assert [hit["_id"] for hit in hits] == [server.a.model]


def test_profile_and_stats_are_of_a_tenants_own_models(server: Server) -> None:
    for path in ("/profile", "/profile/models", f"/profile/models/{server.a.model},{server.b.model}"):
        [node] = server.good("a", "GET", path)["nodes"].values()
        assert node["models"].keys() == {server.a.model} and "tasks" not in node
    assert server.good("a", "GET", f"/profile/models/{server.b.model}") == {}
    assert server.good("a", "GET", "/profile/tasks") == server.good("a", "GET", "/profile/tasks/x") == {}
    of_nobody = server.good("nobody", "GET", "/stats")
    assert (of_nobody["ml_model_count"], of_nobody["ml_connector_count"]) == (0, 0)
    [node] = of_nobody["nodes"].values()
    names = ("ml_executing_task_count", "ml_request_count", "ml_failure_count", "ml_deployed_model_count")
    assert [node[name] for name in names] == [0, 0, 0, 0] and node["models"] == node["algorithms"] == {}
    for path in ("/stats", "/_all/stats", "/stats/ml_deployed_model_count", "/_all/stats/ml_deployed_model_count"):
        [node] = server.good("a", "GET", path)["nodes"].values()
        assert node["ml_deployed_model_count"] == 1
    [node] = server.good("a", "GET", "/stats")["nodes"].values()
    assert node["models"].keys() == {server.a.model}


def test_one_name_is_a_group_of_each_tenant(server: Server) -> None:
    assert server.a.group != server.b.group
    groups = [server.good(tenant, "GET", f"/model_groups/{id}") for tenant, id in
              (("a", server.a.group), ("b", server.b.group))]  # fmt: skip
    assert [(group["name"], group["tenant_id"]) for group in groups] == [("shared name", "a"), ("shared name", "b")]
    assert server.good("c", "POST", "/model_groups/_register", {"name": "shared name"})["status"] == "CREATED"
    taken = server.call("c", "POST", "/model_groups/_register", {"name": "shared name"})
    assert taken.status_code == 400


def test_documents_say_whose_they_are_whatever_a_body_says(server: Server) -> None:
    assert server.good("a", "GET", f"/connectors/{server.a.connector}")["tenant_id"] == "a"
    assert server.good("a", "GET", f"/tasks/{server.a.task}")["tenant_id"] == "a"
    server.good("a", "PUT", f"/models/{server.a.model}", {"description": "d", "tenant_id": "b"})
    assert server.good("a", "GET", f"/models/{server.a.model}")["tenant_id"] == "a"
    group = server.good("a", "POST", "/model_groups/_register", {"name": "own", "tenant_id": "b"})["model_group_id"]
    assert server.good("a", "GET", f"/model_groups/{group}")["tenant_id"] == "a"


def test_a_tenant_uses_its_own(server: Server) -> None:
    for tenant, owned in (("a", server.a), ("b", server.b)):
        for path in ("_predict", "_predict/stream?stream=false"):
            predicted = server.good(tenant, "POST", f"/models/{owned.model}/{path}", QUESTION)
            assert predicted["inference_results"]
        assert server.good(tenant, "GET", f"/controllers/{owned.model}")["user_rate_limiter"]
