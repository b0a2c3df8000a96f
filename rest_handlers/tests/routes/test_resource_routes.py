"""Every management route, with the service method that it calls and its arguments."""

from typing import Any

import pytest
from starlette.applications import Starlette

from opensearch_ml_stream.connectors.errors import Forbidden, MLStreamError, NotFound, Unavailable
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.application import rest_application
from opensearch_ml_stream.rest_handlers.callers import Caller, Scope
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory
from opensearch_ml_stream.rest_handlers.resource_endpoint import Entry
from opensearch_ml_stream.rest_handlers.routes.resources import management_routes
from tests.asgi_exchange import send_request
from tests.recording_gate import CALLER, RecordingGate
from tests.recording_services import RecordingServices

BASE = "/_plugins/_ml"
BODY = {"name": "n", "more": [1]}
BODY_OF_VERSION = {**BODY, "name": "m1", "version": "7"}
OTHERS = {"dashboards": False}
DASHBOARDS = {"user-agent": "Mozilla/5.0 OpenSearch Dashboards"}

# method, path below the base path, whether there is a body (None: it may be left out), the call of the service
ROUTES: list[tuple[str, str, bool | None, tuple[Any, ...]]] = [
    ("POST", "/connectors/_create", True, ("connectors.create", BODY)),
    ("GET", "/connectors/c1", False, ("connectors.get", "c1", OTHERS)),
    ("GET", "/connectors/c1?return_content=true", False, ("connectors.get", "c1", OTHERS)),
    ("PUT", "/connectors/c1", True, ("connectors.update", "c1", BODY)),
    ("DELETE", "/connectors/c1", False, ("connectors.delete", "c1")),
    ("GET", "/connectors/_search", None, ("connectors.search", BODY, OTHERS)),
    ("POST", "/connectors/_search", None, ("connectors.search", BODY, OTHERS)),
    ("POST", "/models/_register", True, ("models.register", BODY, {"deploy": False})),
    ("POST", "/models/_upload", True, ("models.register", BODY, {"deploy": False})),
    ("POST", "/models/_register?deploy=true", True, ("models.register", BODY, {"deploy": True})),
    ("POST", "/models/_register?deploy", True, ("models.register", BODY, {"deploy": True})),
    ("POST", "/models/_register?deploy=false", True, ("models.register", BODY, {"deploy": False})),
    ("POST", "/models/m1/7/_register", True, ("models.register", BODY_OF_VERSION, {"deploy": False})),
    ("POST", "/models/m1/7/_upload", True, ("models.register", BODY_OF_VERSION, {"deploy": False})),
    ("GET", "/models/m1", False, ("models.get", "m1", OTHERS)),
    ("GET", "/models/m1?return_content=true", False, ("models.get", "m1", OTHERS)),
    ("PUT", "/models/m1", True, ("models.update", "m1", BODY)),
    ("DELETE", "/models/m1", False, ("models.delete", "m1")),
    ("GET", "/models/_search", None, ("models.search", BODY, OTHERS)),
    ("POST", "/models/_search", None, ("models.search", BODY, OTHERS)),
    ("POST", "/models/m1/_deploy", None, ("models.deploy", "m1", BODY)),
    ("POST", "/models/m1/_load", None, ("models.deploy", "m1", BODY)),
    ("POST", "/models/m1/_undeploy", None, ("models.undeploy", "m1", BODY)),
    ("POST", "/models/m1/_unload", None, ("models.undeploy", "m1", BODY)),
    ("POST", "/models/_undeploy", None, ("models.undeploy_many", BODY)),
    ("POST", "/models/_unload", None, ("models.undeploy_many", BODY)),
    ("POST", "/model_groups/_register", True, ("model_groups.register", BODY)),
    ("GET", "/model_groups/g1", False, ("model_groups.get", "g1")),
    ("PUT", "/model_groups/g1", True, ("model_groups.update", "g1", BODY)),
    ("DELETE", "/model_groups/g1", False, ("model_groups.delete", "g1")),
    ("GET", "/model_groups/_search", None, ("model_groups.search", BODY, OTHERS)),
    ("POST", "/model_groups/_search", None, ("model_groups.search", BODY, OTHERS)),
    ("GET", "/tasks/t1", False, ("tasks.get", "t1")),
    ("DELETE", "/tasks/t1", False, ("tasks.delete", "t1")),
    ("POST", "/tasks/t1/_cancel", None, ("tasks.cancel", "t1")),
    ("POST", "/tasks/t1/_cancel_batch", None, ("tasks.cancel", "t1")),
    ("GET", "/tasks/_search", None, ("tasks.search", BODY, OTHERS)),
    ("POST", "/tasks/_search", None, ("tasks.search", BODY, OTHERS)),
    ("POST", "/controllers/m1", True, ("controllers.create", "m1", BODY)),
    ("GET", "/controllers/m1", False, ("controllers.get", "m1")),
    ("GET", "/controllers/m1?return_content=true", False, ("controllers.get", "m1")),
    ("PUT", "/controllers/m1", True, ("controllers.update", "m1", BODY)),
    ("DELETE", "/controllers/m1", False, ("controllers.delete", "m1")),
    ("GET", "/config/c1", False, ("configs.get", "c1")),
]  # fmt: skip
EVERY_ROUTE = pytest.mark.parametrize(
    ("method", "target", "has_body", "call"), ROUTES, ids=lambda value: value if isinstance(value, str) else ""
)


@pytest.fixture
def services() -> RecordingServices:
    return RecordingServices()


@pytest.fixture
def gate() -> RecordingGate:
    return RecordingGate()


@pytest.fixture
def application(services: RecordingServices, gate: RecordingGate) -> Starlette:
    return rest_application(management_routes(services, Entry(gate, BodyMemory(1000, 10_000))))


@EVERY_ROUTE
@pytest.mark.parametrize("slash", ["", "/"])
async def test_a_route_calls_its_service_and_returns_what_that_returns(
    application: Starlette,
    services: RecordingServices,
    method: str,
    target: str,
    has_body: bool | None,
    call: tuple[Any, ...],
    slash: str,
) -> None:
    path, question, query = target.partition("?")
    body = None if has_body is False else BODY
    exchange = await send_request(application, method, BASE + path + slash + question + query, body)
    assert (exchange.status, exchange.json()) == (200, {"done": True})
    assert (services.calls, services.callers) == ([call], [CALLER])
    assert exchange.complete


@EVERY_ROUTE
async def test_a_body_is_missed_where_it_is_required(
    application: Starlette,
    services: RecordingServices,
    method: str,
    target: str,
    has_body: bool | None,
    call: tuple[Any, ...],
) -> None:
    exchange = await send_request(application, method, BASE + target)
    if has_body:
        assert (exchange.status, exchange.reason(), services.calls) == (400, "request body is required", [])
    else:
        assert exchange.status == 200
        assert services.calls == [tuple({} if part is BODY else part for part in call)]


@pytest.mark.parametrize(
    ("target", "call"),
    [
        ("/connectors/c1", ("connectors.get", "c1")),
        ("/connectors/_search", ("connectors.search", {})),
        ("/models/m1", ("models.get", "m1")),
        ("/models/_search", ("models.search", {})),
        ("/model_groups/_search", ("model_groups.search", {})),
        ("/tasks/_search", ("tasks.search", {})),
    ],
)
async def test_opensearch_dashboards_is_known_by_its_user_agent(
    application: Starlette, services: RecordingServices, target: str, call: tuple[Any, ...]
) -> None:
    await send_request(application, "GET", BASE + target, headers=DASHBOARDS)
    assert services.calls == [(*call, {"dashboards": True})]


@EVERY_ROUTE
async def test_an_unknown_parameter_is_refused_by_name(
    application: Starlette,
    services: RecordingServices,
    method: str,
    target: str,
    has_body: bool | None,
    call: tuple[Any, ...],
) -> None:
    path = target.partition("?")[0]
    exchange = await send_request(application, method, f"{BASE}{path}?zap=1", BODY)
    assert (exchange.status, services.calls) == (400, [])
    assert exchange.reason() == f"request [{BASE}{path}] contains unrecognized parameter: [zap]"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/connectors/_create", "POST"),
        ("/connectors/_search", "GET, POST"),
        ("/connectors/c1", "DELETE, GET, PUT"),
        ("/models/_register", "POST"),
        ("/models/_search", "GET, POST"),
        ("/models/_undeploy", "POST"),
        ("/models/m1", "DELETE, GET, PUT"),
        ("/models/m1/_deploy", "POST"),
        ("/models/m1/_undeploy", "POST"),
        ("/models/m1/7/_upload", "POST"),
        ("/model_groups/_register", "POST"),
        ("/model_groups/_search", "GET, POST"),
        ("/model_groups/g1", "DELETE, GET, PUT"),
        ("/tasks/_search", "GET, POST"),
        ("/tasks/t1", "DELETE, GET"),
        ("/tasks/t1/_cancel", "POST"),
        ("/controllers/m1", "DELETE, GET, POST, PUT"),
        ("/config/c1", "GET"),
    ],
)
@pytest.mark.parametrize("method", ["PATCH", "HEAD"])
async def test_another_method_is_not_allowed(
    application: Starlette, services: RecordingServices, path: str, allowed: str, method: str
) -> None:
    exchange = await send_request(application, method, BASE + path)
    text = f"Incorrect HTTP method for uri [{BASE}{path}] and method [{method}], allowed: [{allowed}]"
    assert (exchange.status, exchange.headers["allow"]) == (405, allowed)
    assert (exchange.json(), services.calls) == ({"error": text, "status": 405}, [])


async def test_options_names_the_methods_of_a_path(application: Starlette, services: RecordingServices) -> None:
    exchange = await send_request(application, "OPTIONS", BASE + "/connectors/c1")
    assert (exchange.status, exchange.headers["allow"], exchange.body) == (200, "DELETE, GET, PUT", b"")
    assert services.calls == []


@pytest.mark.parametrize("error", [NotFound("no such connector"), Unavailable("the store does not respond")])
async def test_an_error_of_a_service_is_the_response(
    application: Starlette, services: RecordingServices, error: MLStreamError
) -> None:
    services.error = error
    exchange = await send_request(application, "GET", BASE + "/connectors/c1")
    assert (exchange.status, exchange.json()) == (error.status, error.body())


@pytest.mark.parametrize("value", ["yes", "1"])
async def test_deploy_is_true_or_false(application: Starlette, services: RecordingServices, value: str) -> None:
    exchange = await send_request(application, "POST", f"{BASE}/models/_register?deploy={value}", BODY)
    reason = f"Failed to parse value [{value}] as only [true] or [false] are allowed."
    assert (exchange.status, exchange.reason(), services.calls) == (400, reason, [])


@pytest.mark.parametrize("path", ["", "/connectors", "/models", "/models/m1/_zap", "/models/m1/7", "/tasks/t1/x/y"])
async def test_other_paths_have_no_handler(application: Starlette, path: str) -> None:
    exchange = await send_request(application, "GET", BASE + path)
    assert exchange.status == 400
    assert exchange.json() == {"error": f"no handler found for uri [{BASE}{path}] and method [GET]"}


@pytest.mark.parametrize("path", ["_register", "_upload", "m/7/_register", "m/7/_upload"])
@pytest.mark.parametrize(
    ("body", "makes_connector"),
    [
        (b'{"connector":{"name":"c"}}', True),
        (b'{"connector":{}}', True),
        (b'{"connector":"c"}', True),
        (b'{"connector":{"name":"c"},"connector_id":""}', True),
        (b'{"connector":{"name":"c"},"connector_id":null}', True),
        (b'{"connector":{"name":"c"},"connector_id":"c1"}', False),
        (b'{"connector":null,"connector_id":"c1"}', False),
    ],
)
async def test_a_model_with_a_connector_inside_needs_what_a_connector_needs(
    application: Starlette, gate: RecordingGate, path: str, body: bytes, makes_connector: bool
) -> None:
    await send_request(application, "POST", f"{BASE}/models/{path}", body)
    assert gate.asked == [(actions.MODEL_REGISTER,), (actions.CONNECTOR_CREATE,)][: 1 + makes_connector]


async def test_without_the_right_to_make_connectors_no_model_with_one_is_registered(
    services: RecordingServices,
) -> None:
    class Gate(RecordingGate):
        async def admit(self, scope: Scope, *asked: str) -> Caller:
            if actions.CONNECTOR_CREATE in asked:
                raise Forbidden("no permissions")
            return await super().admit(scope, *asked)

    application = rest_application(management_routes(services, Entry(Gate(), BodyMemory(1000, 10_000))))
    exchange = await send_request(application, "POST", f"{BASE}/models/_register", b'{"connector":{"name":"c"}}')
    assert (exchange.status, services.calls) == (403, [])
