"""The editor of a model and the servers that models may call: what each request needs, and what it may hold."""

from collections.abc import Mapping
from typing import Any, cast

import pytest
from starlette.applications import Starlette

from opensearch_ml_stream.extensions.playground.http.playground_routes import model_settings_routes
from opensearch_ml_stream.extensions.playground.service.model_changes import ModelChange
from opensearch_ml_stream.rest_handlers.application import rest_application
from opensearch_ml_stream.rest_handlers.base_path import Paths
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses
from opensearch_ml_stream.rest_handlers.resource_endpoint import Entry
from tests.asgi_exchange import Exchange, send_request
from tests.playground.http.test_playground_routes import PickyGate
from tests.recording_gate import CALLER, RecordingGate
from tests.scripted_predictions import LIMITS

ML = "cluster:admin/opensearch/ml/"
GET, UPDATE, GET_CONNECTOR = ML + "models/get", ML + "models/update", ML + "connectors/get"
OF_CONNECTOR = [ML + "connectors/update", ML + "undeploy_models", ML + "deploy_model"]
GET_SETTINGS, CHANGE_SETTINGS = "cluster:monitor/settings", "cluster:admin/settings/update"
SETTINGS, SERVERS = "/_ui/models/a1/settings", "/_ui/servers"


class Recording:
    """The use cases, which note what they are asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    async def shown(self, caller: Caller, model_id: str, *, shows_connector: bool) -> Mapping[str, Any]:
        self.asked.append(("shown", caller, model_id, shows_connector))
        return {"id": model_id}

    async def change(self, caller: Caller, model_id: str, change: ModelChange) -> Mapping[str, Any]:
        self.asked.append(("change", caller, model_id, change))
        return {"model_id": model_id}

    async def allow(self, url: str) -> Mapping[str, Any]:
        self.asked.append(("allow", url))
        return {"origin": url}


def application(recording: Recording, gate: Gate) -> Starlette:
    entry = Entry(gate, InFlightResponses(LIMITS).bodies)
    return rest_application(model_settings_routes(cast(Any, recording), cast(Any, recording), entry), Paths(("/_ui",)))


async def ask(recording: Recording, gate: Gate, method: str, target: str, body: object = None) -> Exchange:
    return await send_request(application(recording, gate), method, target, body)


@pytest.mark.parametrize(
    ("method", "target", "body", "needed", "asked"),
    [
        ("GET", SETTINGS, None, [GET, GET_CONNECTOR], ("shown", CALLER, "a1", True)),
        ("PUT", SETTINGS, {"name": "n"}, [UPDATE], ("change", CALLER, "a1", ModelChange("n"))),
        (
            "PUT", SETTINGS, {"credential": {"k": "v"}}, [UPDATE, *OF_CONNECTOR],
            ("change", CALLER, "a1", ModelChange(credential={"k": "v"})),
        ),
        (
            "PUT", SETTINGS, {"parameters": {"k": 1}}, [UPDATE, *OF_CONNECTOR],
            ("change", CALLER, "a1", ModelChange(parameters={"k": 1})),
        ),
        ("POST", SERVERS, {"url": "http://a"}, [CHANGE_SETTINGS, GET_SETTINGS], ("allow", "http://a")),
    ],
)  # fmt: skip
async def test_a_request_needs_what_the_api_needs_for_the_same(
    method: str, target: str, body: object, needed: list[str], asked: tuple[Any, ...]
) -> None:
    recording, gate = Recording(), RecordingGate()
    response = await ask(recording, gate, method, target, body)
    assert (response.status, response.headers["cache-control"]) == (200, "no-store")
    assert (gate.asked, recording.asked) == ([(action,) for action in needed], [asked])
    for action in needed:
        refused = Recording()
        response = await ask(refused, PickyGate(action), method, target, body)
        if action == GET_CONNECTOR:
            assert refused.asked == [("shown", CALLER, "a1", False)]
        else:
            assert (response.status, response.reason()) == (403, f"no permissions for [{action}]")
            assert refused.asked == []


@pytest.mark.parametrize(
    ("method", "target", "body", "reason"),
    [
        ("PUT", SETTINGS, {"nmae": "x"}, "Unknown member [nmae]; a change has name, description, parameters"),
        ("PUT", SETTINGS, {"name": " "}, "name must be a string that is not blank"),
        ("PUT", SETTINGS, {"name": None}, "name must be a string"),
        ("PUT", SETTINGS, {"settings": []}, "settings must be an object"),
        ("PUT", SETTINGS, {"credential": {"key": 1}}, "credential [key] must be a string"),
        ("POST", SERVERS, {"url": "10.0.0.5:8000"}, "The body is one [url] with its scheme"),
        ("POST", SERVERS, {"url": "http://a", "x": 1}, "The body is one [url] with its scheme"),
        ("POST", SERVERS, {}, "The body is one [url] with its scheme"),
        ("PUT", SETTINGS + "?x=1", {}, ""),
        ("PUT", SETTINGS, [1], ""),
    ],
)
async def test_a_body_that_is_none_is_refused(method: str, target: str, body: object, reason: str) -> None:
    recording = Recording()
    response = await ask(recording, RecordingGate(), method, target, body)
    assert response.status == 400
    assert response.reason().startswith(reason)
    assert recording.asked == []
