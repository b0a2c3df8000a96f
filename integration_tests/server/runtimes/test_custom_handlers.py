"""Custom handlers of models over the server's own HTTP port: for as long as the model is loaded, under its rights."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tests.cli.commands import output_of
from integration_tests.server.runtimes.model_folder import write_model
from integration_tests.server.runtimes.runtime_server import RuntimeServer, serving_models
from integration_tests.support.conditions import eventually
from integration_tests.support.sidecars import running_sidecar

IMPORTS = """
from mlserver.errors import InferenceError
from mlserver.handlers import custom_handler
from starlette.requests import Request
from starlette.responses import HTMLResponse
"""
METHODS = """
    @custom_handler(rest_path="/count")
    async def count(self, payload: list) -> dict:
        return {"model": self.name, "count": len(payload)}

    @custom_handler(rest_path="/page/{name:path}", rest_method="GET")
    async def page(self, request: Request, name: str):
        headers = {"set-cookie": "a=b", "x-own": "1"}
        return HTMLResponse(f"{name} {sorted(set(request.headers) - {'user-agent'})}", headers=headers)

    @custom_handler(rest_path="/metrics", rest_method="GET")
    async def metrics(self) -> str:
        return "hidden"

    @custom_handler(rest_path="/v2/own", rest_method="GET")
    async def reserved(self) -> str:
        return "hidden"

    @custom_handler(rest_path="/fails")
    async def fails(self, payload: dict) -> str:
        raise InferenceError("cannot") if payload else ValueError("no such value")
"""


def with_handlers(models: Path, name: str) -> None:
    code = write_model(models, name) / "model.py"
    text = code.read_text()
    code.write_text(text.replace("from mlserver import MLModel", f"from mlserver import MLModel{IMPORTS}") + METHODS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    models = tmp_path / "models"
    with_handlers(models, "first")
    return models


@pytest.fixture
def serving(tmp_path: Path, folder: Path) -> Iterator[RuntimeServer]:
    with serving_models(tmp_path, folder, "--workers", "2", max_body_size="1000") as running:
        running.wait_for("first")
        yield running


def test_a_handler_is_reached_at_its_path_until_its_model_is_unloaded(serving: RuntimeServer) -> None:
    client = serving.sidecar.client
    told = client.post("/count", json=[1, 2])
    assert (told.status_code, told.json()) == (200, {"model": "first", "count": 2})
    assert told.headers["x-content-type-options"] == "nosniff"
    secret = {"authorization": "Basic eDp5", "x-said": "hello"}
    page = client.get("/page/a%20b/c", headers=secret)
    assert page.status_code == 200
    assert page.text == "a b/c ['accept', 'accept-encoding', 'content-length', 'host', 'x-said']"
    assert page.headers["content-type"].startswith("text/html")
    assert (page.headers.get("set-cookie"), page.headers["x-own"]) == (None, "1")
    assert client.get("/count").status_code == 405
    assert client.post("/count", json=[1] * 1000).status_code == 413
    client.post("/v2/repository/models/first/unload").raise_for_status()
    eventually(lambda: client.post("/count", json=[]).status_code == 400, 10)
    assert client.post("/count", json=[]).json() == {"error": "no handler found for uri [/count] and method [POST]"}
    client.post("/v2/repository/models/first/load").raise_for_status()
    eventually(lambda: client.post("/count", json=[]).status_code == 200, 10)


def test_the_servers_own_paths_are_never_a_handlers(serving: RuntimeServer) -> None:
    client = serving.sidecar.client
    assert "mlstream_" in client.get("/metrics").text
    assert client.get("/v2/own").status_code == 404
    warning = "runtime first: the custom handler GET /v2/own is not served: the path is the server's own"
    assert serving.log.count(warning) == 1


def test_what_a_handler_raises_is_told_as_that_of_a_prediction(serving: RuntimeServer) -> None:
    client = serving.sidecar.client
    bodies: list[object] = [{"a": 1}, {}, []]
    told = [client.post("/fails", json=body) for body in bodies]
    assert [(one.status_code, one.json()["error"]) for one in told] == [
        (400, "The runtime of model first raised InferenceError: cannot"),
        (424, "The runtime of model first raised ValueError: no such value"),
        (400, "The runtime of model first raised MalformedRequest: body: Input should be a valid dictionary"),
    ]


def test_a_handler_is_called_under_the_limits_of_its_model(serving: RuntimeServer) -> None:
    client = serving.sidecar.client
    model = "/_plugins/_ml/models/runtime-first"
    client.put(model, json={"rate_limiter": {"limit": "1", "unit": "HOURS"}}).raise_for_status()
    eventually(lambda: client.post("/count", json=[]).status_code == 429, 10)
    guardrails = {"type": "local_regex", "input_guardrail": {"regex": ["secret"]}}
    client.put(model, json={"guardrails": guardrails}).raise_for_status()
    eventually(lambda: client.post("/count", json=[]).status_code == 400, 10)
    assert "has guardrails" in client.post("/count", json=[]).json()["error"]
    client.put(model, json={"is_enabled": False}).raise_for_status()
    eventually(lambda: client.post("/count", json=[]).status_code == 403, 10)


def test_a_path_is_the_first_models_that_was_loaded_and_free_again_when_it_is_unloaded(
    tmp_path: Path, folder: Path
) -> None:
    with serving_models(tmp_path, folder, "--models-watch") as serving:
        client = serving.sidecar.client
        serving.wait_for("first")
        with_handlers(folder, "another")
        serving.wait_for("another")
        assert client.post("/count", json=[]).json()["model"] == "first"
        refused = "runtime another: the custom handler POST /count is not served: it is that of model first"
        assert refused in serving.log
        client.post("/v2/repository/models/first/unload").raise_for_status()

        def model() -> object:
            return client.post("/count", json=[]).json().get("model")

        eventually(lambda: model() == "another", 10)


def test_a_caller_needs_the_right_to_predict(tmp_path: Path, folder: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    reader, caller = (
        output_of("keys", "create", role, "--role", role, "--store", store)
        for role in ("ml_read_access", "ml_predict_access")
    )
    with running_sidecar(tmp_path, store, arguments=("--models", str(folder))) as sidecar:

        def status(key: str | None) -> int:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            return sidecar.client.post("/count", json=[], headers=headers).status_code

        eventually(lambda: status(caller) == 200, 60)
        assert (status(reader), status(None)) == (403, 401)
