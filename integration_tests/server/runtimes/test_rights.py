"""Who may call a model that runs here: it takes the rights that any model takes, and no request leads to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from integration_tests.cli.commands import output_of
from integration_tests.server.runtimes.model_folder import HANDLERS, write_handlers
from integration_tests.server.runtimes.runtime_server import RuntimeServer
from integration_tests.support.conditions import eventually
from integration_tests.support.sidecars import running_sidecar

ACTION = {"action_type": "PREDICT", "method": "POST", "url": "runtime://echo", "request_body": "{}"}
CONNECTOR = {
    "name": "c",
    "description": "d",
    "version": "1",
    "protocol": "http",
    "credential": {"key": "k"},
    "actions": [ACTION],
}
PATH = "/_plugins/_ml/models/runtime-first/_predict"


@pytest.fixture
def trusting(server: RuntimeServer) -> Iterator[RuntimeServer]:
    """The server while it trusts every endpoint."""
    name = "plugins.ml_commons.trusted_connector_endpoints_regex"
    settings = "/_plugins/_ml/_settings"
    server.sidecar.client.put(settings, json={"persistent": {name: ["^.*$"]}}).raise_for_status()
    yield server
    server.sidecar.client.put(settings, json={"persistent": {name: None}}).raise_for_status()


def test_no_request_makes_a_model_that_leads_to_a_runtime(trusting: RuntimeServer) -> None:
    inline = {"name": "m", "function_name": "remote", "connector": CONNECTOR}
    for path, body in (("/connectors/_create", CONNECTOR), ("/models/_register", inline)):
        refused = trusting.post(path, **body)
        assert refused.status_code == 400, refused.text
        assert "Protocol is not http or https: runtime" in refused.text
    other = {"connector": {"actions": [ACTION | {"url": "runtime://other"}]}}
    assert trusting.sidecar.client.put("/_plugins/_ml/models/runtime-echo", json=other).status_code == 400


def test_a_caller_needs_the_rights_that_any_models_callers_need(tmp_path: Path) -> None:
    models = tmp_path / "models"
    write_handlers(models, "first", HANDLERS)
    store = f"sqlite:///{tmp_path}/store.db"
    reader, caller = (
        output_of("keys", "create", role, "--role", role, "--store", store)
        for role in ("ml_read_access", "ml_predict_access")
    )
    with running_sidecar(tmp_path, store, arguments=("--models", str(models))) as sidecar:
        body: dict[str, object] = {"parameters": {"inputs": "hi"}}

        def status(path: str, key: str | None, body: object = body) -> int:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            return sidecar.client.post(path, json=body, headers=headers).status_code

        eventually(lambda: status(PATH, caller) == 200, 60)
        for path in (PATH, f"{PATH}/stream"):
            assert [status(path, key) for key in (reader, None)] == [403, 401]
        assert status("/v2/repository/models/first/unload", caller) == 403
        assert [status("/count", key, []) for key in (caller, reader, None)] == [200, 403, 401]
