"""Pages and OpenAPI documents of `/v2`, of the server and of a model."""

import base64
import hashlib
import html
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import pytest
from starlette.applications import Starlette

from opensearch_ml_stream.connectors.errors import Forbidden, NotFound
from opensearch_ml_stream.extensions.v2.http.documentation.docs_routes import docs_routes
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.application import rest_application
from opensearch_ml_stream.rest_handlers.base_path import Paths
from opensearch_ml_stream.rest_handlers.callers import Caller
from tests.asgi_exchange import SECURITY_HEADERS, Exchange, send_request
from tests.recording_gate import CALLER, RecordingGate

PROMPT = {"name": "prompt", "datatype": "BYTES", "shape": [-1]}
CHAT = [{"name": name, "datatype": "BYTES", "shape": [-1]} for name in ("role", "content", "type")]
OUTPUT = {"name": "output", "datatype": "BYTES", "shape": [-1, 1]}
EVERY_PAGE = pytest.mark.parametrize(
    "path", ["/v2/docs", "/v2/docs/", "/v2/models/m/docs", "/v2/models/m/docs/", "/v2/models/m/versions/1/docs"]
)
VERSIONS = pytest.mark.parametrize("base", ["/v2/models/m", "/v2/models/m/versions/1"])


class Models:
    """The metadata of every model; notes whose are asked for."""

    def __init__(self, *inputs: Mapping[str, Any]) -> None:
        self.inputs = list(inputs)
        self.asked: list[tuple[Caller, str, str | None]] = []

    async def metadata(self, caller: Caller, name: str, version: str | None) -> Mapping[str, Any]:
        self.asked.append((caller, name, version))
        if name == "none":
            raise NotFound("Model none not found")
        return {"name": name, "platform": "p", "inputs": self.inputs, "outputs": [OUTPUT] if self.inputs else []}


class GateWithLogin(RecordingGate):
    asks_for_login = True


def application(models: Models | None = None, gate: RecordingGate | None = None) -> Starlette:
    return rest_application(docs_routes(models or Models(PROMPT), gate or RecordingGate(), "1.2.3"), Paths(("/v2",)))  # type: ignore[arg-type]  # only metadata is asked for


async def get(path: str, models: Models | None = None, gate: RecordingGate | None = None) -> Exchange:
    exchange = await send_request(application(models, gate), "GET", path, headers={"host": "sidecar:9510"})
    assert exchange.status == 200, exchange.body
    return exchange


async def document(base: str, models: Models | None = None) -> dict[str, Any]:
    described: dict[str, Any] = (await get(f"{base}/docs/dataplane.json", models)).json()
    return described


async def page(path: str, models: Models | None = None, gate: RecordingGate | None = None) -> str:
    return (await get(path, models, gate)).body.decode()


def commands(text: str) -> list[list[str]]:
    """The words of each command on a page, as a shell reads them."""
    return [shlex.split(html.unescape(command)) for command in re.findall(r"<pre>(.*?)</pre>", text, re.DOTALL)]


def requests_of(described: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Path and content of each inference request."""
    for path, item in described["paths"].items():
        if re.search(r"/(infer|generate)(_stream)?$", path):
            yield path, item["post"]["requestBody"]["content"]["application/json"]


@EVERY_PAGE
async def test_a_page_runs_no_script_and_loads_nothing(path: str) -> None:
    exchange = await get(path)
    assert exchange.headers["content-type"] == "text/html; charset=utf-8"
    text = exchange.body.decode()
    assert re.search(r"<(script|link|img|iframe|form)|\bon\w+=|style=|@import|url\(", text) is None
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = exchange.headers["content-security-policy"].split("; ")
    assert sorted(policy) == [
        "base-uri 'none'", "default-src 'none'", "form-action 'none'", "frame-ancestors 'none'",
        f"style-src 'sha256-{digest}'",
    ]  # fmt: skip
    others = {name: value for name, value in SECURITY_HEADERS.items() if name != "content-security-policy"}
    assert others.items() <= exchange.headers.items()


@EVERY_PAGE
async def test_a_page_links_to_its_document(path: str) -> None:
    link = re.search(r'<a href="([^"#]*)"', await page(path))
    assert link is not None
    assert path.rpartition("/")[0] + "/" + link[1] == path.rstrip("/") + "/dataplane.json"


async def test_what_a_caller_writes_is_shown_as_text() -> None:
    mark = "<b id=x>&'\""
    models = Models({"name": mark, "datatype": mark, "shape": [1]})
    exchange = await send_request(application(models), "GET", f"/v2/models/{mark}/docs", headers={"host": f"h{mark}"})
    assert exchange.status == 200
    text = exchange.body.decode()
    assert "<b id" not in text
    assert text.count("&lt;b id=x&gt;") > 5


@VERSIONS
async def test_a_pages_commands_send_the_documents_examples(base: str) -> None:
    described = await document(base)
    sent = {}
    for name, *words in commands(await page(f"{base}/docs")):
        assert name == "curl"
        url = next(word for word in words if word.startswith("http://sidecar:9510/"))
        sent[url.removeprefix("http://sidecar:9510")] = words
    assert sent.keys() == {path for path in described["paths"] if "{" not in path}
    for path, content in requests_of(described):
        if path in sent:
            body = sent[path][sent[path].index("-d") + 1]
            assert json.loads(body) == content["example"]
            assert ("-N" in sent[path]) is path.endswith("_stream")


async def test_commands_hold_for_any_name_of_a_model() -> None:
    """Also for one that a shell, or a URL, would read in another way."""
    name = "org/it's $HOME `x`; {a} ü?#%"
    described = await document("/v2/models/m")
    paths = [path.replace("/m/", "/NAME/") for path, _ in requests_of(described) if "{" not in path]
    exchange = Exchange("GET", "/", headers={"host": "h"})
    exchange.scope["path"] = f"/v2/models/{name}/docs"
    await exchange.run(application())
    urls = [word for words in commands(exchange.body.decode()) for word in words if word.startswith("http://h/")]
    quoted = "org%2Fit%27s%20%24HOME%20%60x%60%3B%20%7Ba%7D%20%C3%BC%3F%23%25"
    assert {path.replace("NAME", quoted) for path in paths} <= {url.removeprefix("http://h") for url in urls}


async def test_the_server_has_a_path_for_each_operation() -> None:
    paths = (await document("/v2"))["paths"]
    model, version = "/v2/models/{model_name}", "/v2/models/{model_name}/versions/{model_version}"
    assert paths.keys() == {
        "/v2", "/v2/health/live", "/v2/health/ready", "/v2/repository/index",
        "/v2/repository/models/{model_name}/load", "/v2/repository/models/{model_name}/unload",
        *(base + end for base in (model, version)
          for end in ("", "/ready", "/infer", "/infer_stream", "/generate", "/generate_stream")),
    }  # fmt: skip


async def test_a_models_paths_hold_its_name_and_its_version_if_one_is_named() -> None:
    newest, versioned = (
        (await document("/v2/models/a b"))["paths"],
        (await document("/v2/models/m/versions/2"))["paths"],
    )
    assert {"/v2/models/a%20b/infer", "/v2/models/a%20b/versions/{model_version}/infer"} <= newest.keys()
    assert all(path.startswith("/v2/models/a%20b") for path in newest)
    assert all(path.startswith("/v2/models/m/versions/2") for path in versioned)
    assert len(newest) == 2 * len(versioned) == 12


@pytest.mark.parametrize("base", ["/v2", "/v2/models/m", "/v2/models/m/versions/1"])
async def test_a_document_defines_what_it_refers_to_and_nothing_else(base: str) -> None:
    described = await document(base)
    assert (described["openapi"], described["info"]["version"]) == ("3.1.0", "1.2.3")
    schemas = described["components"]["schemas"]
    assert set(re.findall(r"#/components/schemas/(\w+)", json.dumps(described))) == schemas.keys()
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    for path, item in described["paths"].items():
        assert set(re.findall(r"{(\w+)}", path)) == {entry["name"] for entry in item.get("parameters", ())}
    operations = [item[method] for item in described["paths"].values() for method in ("get", "post") if method in item]
    assert len({operation["operationId"] for operation in operations}) == len(operations)


@pytest.mark.parametrize("inputs", [(), (PROMPT,), CHAT, ({"name": "x", "datatype": "FP32", "shape": [2, -1]},)])
async def test_the_examples_are_requests_of_the_model(inputs: tuple[dict[str, Any], ...]) -> None:
    described = await document("/v2/models/m", Models(*inputs))
    for path, content in requests_of(described):
        jsonschema.validate(content["example"], {**content["schema"], "components": described["components"]})
        if "inputs" not in content["example"]:
            assert content["example"] == {"text_input": "What is the capital of France?"}
            assert "generate" in path
            assert inputs == (PROMPT,)
        elif inputs:
            sent = content["example"]["inputs"]
            assert [entry["name"] for entry in sent] == [entry["name"] for entry in inputs]
            for tensor in sent:
                assert len(tensor["data"]) == tensor["shape"][0] * (tensor["shape"][1:] or [1])[0]
            assert content["example"]["outputs"] == [{"name": "output"}]


async def test_an_example_of_chat_is_a_message_of_a_user() -> None:
    described = await document("/v2/models/m", Models(*CHAT))
    [example] = [content["example"] for path, content in requests_of(described) if path.endswith("m/infer")]
    data = {entry["name"]: entry["data"] for entry in example["inputs"]}
    assert data == {"role": ["user"], "content": ["What is the capital of France?"], "type": ["text"]}


@VERSIONS
async def test_a_models_metadata_are_in_its_document_and_on_its_page(base: str) -> None:
    models = Models({"name": "question", "datatype": "BYTES", "shape": [-1]})
    described = await document(base, models)
    responses = described["paths"][base]["get"]["responses"]
    assert responses["200"]["content"]["application/json"]["example"]["inputs"] == models.inputs
    assert "<code>question</code>" in await page(f"{base}/docs", models)
    version = "1" if base.endswith("/1") else None
    assert models.asked == [(CALLER, "m", version)] * 2


@pytest.mark.parametrize("suffix", ["", "/dataplane.json"])
async def test_the_servers_documentation_is_for_callers_and_a_models_for_whoever_may_see_it(suffix: str) -> None:
    gate, models = RecordingGate(), Models(PROMPT)
    await get(f"/v2/docs{suffix}", models, gate)
    await get(f"/v2/models/m/docs{suffix}", models, gate)
    assert gate.asked == [(), (actions.MODEL_GET,)]


@pytest.mark.parametrize(
    "path", ["/v2/docs", "/v2/docs/dataplane.json", "/v2/models/m/docs", "/v2/models/m/versions/1/docs"]
)
async def test_a_caller_without_the_permission_sees_nothing(path: str) -> None:
    models = Models(PROMPT)
    exchange = await send_request(application(models, RecordingGate(Forbidden("no"))), "GET", path)
    assert (exchange.status, models.asked) == (403, [])


async def test_a_model_that_is_not_there_has_no_documentation() -> None:
    for suffix in ("", "/dataplane.json"):
        assert (await send_request(application(), "GET", f"/v2/models/none/docs{suffix}")).status == 404


@pytest.mark.parametrize("path", ["/v2/docs", "/v2/models/m/docs"])
async def test_commands_have_a_login_where_one_is_asked_for(path: str) -> None:
    with_login, without = await page(path, gate=GateWithLogin()), await page(path)
    assert all(words[words.index("-u") + 1] == "$LOGIN" for words in commands(with_login))
    assert "LOGIN" not in without
    assert len(commands(with_login)) == len(commands(without)) >= 4
