"""The OpenAPI document against the routes that it describes, request by request."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from opensearch_ml_stream.extensions.anthropic_api.opening import OPERATIONS as ANTHROPIC_OPERATIONS
from opensearch_ml_stream.extensions.openai_api.opening import OPERATIONS as OPENAI_OPERATIONS
from opensearch_ml_stream.extensions.v2.http.documentation.operations import V2_OPERATIONS
from opensearch_ml_stream.plugin.app import open_sidecar
from opensearch_ml_stream.plugin.settings import Settings

BASE = "/_plugins/_ml"
METHODS = ("get", "post", "put", "delete", "patch")
ACTION = {"action_type": "predict", "method": "POST", "url": "https://api.openai.com/v1", "request_body": "{}"}
EXAMPLES: dict[str, dict[str, Any]] = {
    f"{BASE}/connectors/_create": {
        "name": "c", "version": 1, "protocol": "http", "credential": {"k": "v"}, "actions": [ACTION],
    },
    f"{BASE}/models/_register": {"name": "m", "function_name": "remote", "connector": {}},
    f"{BASE}/model_groups/_register": {"name": "g"},
}  # fmt: skip


class Api:
    """A client of a sidecar, the sidecar's routes, and what its document says of them."""

    def __init__(self, client: httpx.AsyncClient, routes: list[Any], document: dict[str, Any]) -> None:
        self.client = client
        self.routes = routes
        self.document = document

    def operations(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Method, path and description of each operation of the API."""
        for path, item in self.document["paths"].items():
            for method in METHODS:
                if method in item and path.startswith(BASE):
                    yield method, path, item[method]

    def schemas(self) -> Iterator[dict[str, Any]]:
        yield from self.document["components"]["schemas"].values()
        for _, _, operation in self.operations():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                yield content["schema"]

    async def send(self, method: str, path: str, body: object = None, **query: str) -> httpx.Response:
        target = path.replace("{algorithm}", "remote").replace("{", "").replace("}", "")
        return await self.client.request(method, target, json=body, params=query)


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with open_sidecar(Settings(store="sqlite:///:memory:"), tmp_path) as sidecar:
        router: Any = sidecar.app
        while not isinstance(router, Starlette):  # the applications before it
            router = router._router
        transport = httpx.ASGITransport(sidecar.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            document = (await client.get(f"{BASE}/openapi.json")).json()
            yield Api(client, list(router.routes), document)


async def test_every_route_is_described_once_with_or_without_its_slash(api: Api) -> None:
    assert all(isinstance(route, Route) for route in api.routes)
    paths = [route.path_format for route in api.routes if not route.path_format.startswith("/_ui")]
    assert len(paths) > 50
    without_slash = {path.removesuffix("/") or "/" for path in paths}
    model = f"{BASE}/models/{{model_id}}"
    predictions = {f"{model}/_predict/stream", f"{model}/_predict", f"{model}/_batch_predict"}
    predictions.add(f"{BASE}/_predict/{{algorithm}}/{{model_id}}")
    in_front = {*V2_OPERATIONS, *OPENAI_OPERATIONS, *ANTHROPIC_OPERATIONS}
    assert api.document["paths"].keys() == {*without_slash, *predictions, *in_front}
    assert api.document["openapi"] == "3.1.0"


async def test_a_method_is_allowed_where_it_is_described_and_nowhere_else(api: Api) -> None:
    for path, item in api.document["paths"].items():
        for method in METHODS:
            response = await api.send(method, path)
            assert (response.status_code == 405) is (method not in item), (method, path, response.text)


async def test_what_v2_takes_and_returns_is_json_of_its_own_schemas(api: Api) -> None:
    index = api.document["paths"]["/v2/repository/index"]["post"]
    assert list(index["requestBody"]["content"]) == ["application/json"]
    (content,) = index["responses"]["200"]["content"].items()
    assert (content[0], content[1]["schema"]["type"]) == ("application/json", "array")
    assert "parameters" not in index or index["parameters"] == []


async def test_a_query_parameter_is_read_where_it_is_described_and_nowhere_else(api: Api) -> None:
    names = {name for _, _, operation in api.operations() for name in described_parameters(operation)}
    assert {"deploy", "return_content", "format", "include_defaults", "pretty", "filter_path"} <= names
    for method, path, operation in api.operations():
        for name in {*names, "unheard_of"}:
            refused = "unrecognized parameter" in (await api.send(method, path, **{name: "true"})).text
            assert refused is (name not in described_parameters(operation)), (method, path, name)


async def test_a_body_is_required_where_it_is_described_so(api: Api) -> None:
    for method, path, operation in api.operations():
        missed = "request body is required" in (await api.send(method, path)).text
        assert missed is operation.get("requestBody", {}).get("required", False), (method, path)


async def test_every_operation_says_what_it_does_under_a_name_of_its_own(api: Api) -> None:
    operations = [operation for _, _, operation in api.operations()]
    assert all(operation["summary"].endswith(".") for operation in operations)
    assert len({operation["operationId"] for operation in operations}) == len(operations)


async def test_the_schemas_are_schemas_and_errors_are_of_theirs(api: Api) -> None:
    for schema in api.schemas():
        jsonschema.Draft202012Validator.check_schema(schema)
    error = api.document["components"]["schemas"]["Error"]
    for method, path in (("GET", f"{BASE}/connectors/none"), ("GET", "/nowhere"), ("PATCH", f"{BASE}/_settings")):
        jsonschema.validate((await api.send(method, path)).json(), error)


@pytest.mark.parametrize("path", EXAMPLES)
async def test_what_a_body_must_have_is_what_is_required_of_it(api: Api, path: str) -> None:
    body = {name: value or EXAMPLES[f"{BASE}/connectors/_create"] for name, value in EXAMPLES[path].items()}
    schema = api.document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    jsonschema.validate(body, schema)
    assert body.keys() <= schema["properties"].keys()
    for name in schema["required"]:
        response = await api.send("POST", path, {key: value for key, value in body.items() if key != name})
        assert response.status_code == 400, name
    assert (await api.send("POST", path, body)).status_code == 200


def described_parameters(operation: dict[str, Any]) -> set[str]:
    return {entry.get("name") or entry["$ref"].rpartition("/")[2] for entry in operation["parameters"]}


@pytest.mark.parametrize("path", [f"{BASE}/models/_register", f"{BASE}/model_groups/_register"])
async def test_every_described_field_of_a_body_is_read(api: Api, path: str) -> None:
    """Those of connectors are the fields of the value itself."""
    body = {name: value or EXAMPLES[f"{BASE}/connectors/_create"] for name, value in EXAMPLES[path].items()}
    schema = api.document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    for name in schema["properties"]:
        response = await api.send("POST", path, {**body, name: [1]})
        assert response.status_code == 400, (name, response.text)
