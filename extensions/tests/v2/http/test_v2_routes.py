"""Every route of `/v2`: what it calls, what it returns, and what its caller must be allowed."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, NotFound, Unauthorized
from opensearch_ml_stream.rest_handlers import actions
from tests.asgi_exchange import SECURITY_HEADERS, send_request
from tests.recording_gate import CALLER, RecordingGate
from tests.v2.http.scripted_inferences import INDEX, METADATA, TENSORS, ScriptedInferences, V2Sidecar

INFER = {
    "id": "r1",
    "parameters": {"finish_reason": "stop"},
    "outputs": [
        {
            "name": "output",
            "shape": [1, 1],
            "datatype": "BYTES",
            "parameters": {"content_type": "str"},
            "data": ["Because"],
        }
    ],
}
WHOLE, STREAM = (actions.PREDICT,), (actions.PREDICT_STREAM, actions.PREDICT)
READY = (actions.MODEL_GET, actions.PREDICT, actions.PREDICT_STREAM)
SERVER = {
    "name": "opensearch-ml-stream",
    "version": "1.2.3",
    "extensions": ["binary_tensor_data", "generate", "model_repository"],
}

# method, path, body, the call of the use case, the response's body (None: empty), the actions that allow it
ROUTES: list[tuple[str, str, Any, tuple[Any, ...] | None, Any, tuple[str, ...] | None]] = [
    ("GET", "/v2", None, None, SERVER, ()),
    ("GET", "/v2/health/live", None, None, {"live": True}, None),
    ("GET", "/v2/health/ready", None, None, {"ready": True}, None),
    ("GET", "/v2/models/m1", None, ("metadata", CALLER, "m1", None), METADATA, (actions.MODEL_GET,)),
    ("GET", "/v2/models/m1/versions/7", None, ("metadata", CALLER, "m1", "7"), METADATA, (actions.MODEL_GET,)),
    ("GET", "/v2/models/m1/ready", None, ("check_ready", CALLER, "m1", None), {"name": "m1", "ready": True}, READY),
    (
        "GET", "/v2/models/m1/versions/7/ready", None, ("check_ready", CALLER, "m1", "7"),
        {"name": "m1", "ready": True}, READY,
    ),
    ("POST", "/v2/models/m1/infer", TENSORS, ("prepare", CALLER, "m1", None), {"model_name": "m1", **INFER}, WHOLE),
    ("POST", "/v2/models/m1/generate", TENSORS, ("prepare", CALLER, "m1", None), {"model_name": "m1", **INFER}, WHOLE),
    (
        "POST", "/v2/models/m1/versions/7/infer", TENSORS, ("prepare", CALLER, "m1", "7"),
        {"model_name": "m1", "model_version": "7", **INFER}, WHOLE,
    ),
    (
        "POST", "/v2/models/m1/versions/7/generate", TENSORS, ("prepare", CALLER, "m1", "7"),
        {"model_name": "m1", "model_version": "7", **INFER}, WHOLE,
    ),
    ("POST", "/v2/repository/index", None, ("index", CALLER, False), INDEX, (actions.MODEL_SEARCH,)),
    ("POST", "/v2/repository/index", {"ready": None}, ("index", CALLER, False), INDEX, (actions.MODEL_SEARCH,)),
    ("POST", "/v2/repository/index", {"ready": True}, ("index", CALLER, True), INDEX, (actions.MODEL_SEARCH,)),
    ("POST", "/v2/repository/models/m1/load", None, ("load", CALLER, "m1"), None, (actions.MODEL_DEPLOY,)),
    ("POST", "/v2/repository/models/m1/load", {"a": {}}, ("load", CALLER, "m1"), None, (actions.MODEL_DEPLOY,)),
    ("POST", "/v2/repository/models/m1/unload", None, ("unload", CALLER, "m1"), None, (actions.MODEL_UNDEPLOY,)),
]  # fmt: skip
STREAMS = ["/v2/models/m1/infer_stream", "/v2/models/m1/versions/7/generate_stream"]
EVERY_ROUTE = pytest.mark.parametrize(("method", "path", "body", "call", "response", "allowing"), ROUTES)


@EVERY_ROUTE
@pytest.mark.parametrize("end", ["", "/", "?pretty=true&zap=1&format=yaml", "/?filter_path=x"])
async def test_a_route_calls_its_use_case_and_returns_what_that_returns(
    method: str,
    path: str,
    body: Any,
    call: tuple[Any, ...] | None,
    response: Any,
    allowing: tuple[str, ...] | None,
    end: str,
) -> None:
    inferences = ScriptedInferences()
    sidecar = V2Sidecar(inferences)
    exchange = await send_request(sidecar.application, method, path + end, body)
    assert exchange.status == 200 and exchange.complete
    assert (exchange.json() if exchange.body else None) == response
    assert inferences.calls == ([] if call is None else [call])
    assert sidecar.gate.asked == ([] if allowing is None else [allowing])
    assert exchange.headers.get("content-type") == (None if response is None else "application/json")
    assert exchange.headers.items() >= {**SECURITY_HEADERS, "cache-control": "no-store"}.items()


@EVERY_ROUTE
async def test_another_method_is_not_allowed(
    method: str, path: str, body: Any, call: object, response: Any, allowing: object
) -> None:
    for other in ("PUT", "GET" if method == "POST" else "POST"):
        exchange = await send_request(V2Sidecar(ScriptedInferences()).application, other, path)
        assert (exchange.status, exchange.headers["allow"]) == (405, method)
        assert isinstance(exchange.json()["error"], str)


@pytest.mark.parametrize("path", STREAMS)
async def test_a_stream_is_for_those_who_may_stream_or_predict(path: str) -> None:
    inferences = ScriptedInferences(error=NotFound("Model m1 not found"))
    sidecar = V2Sidecar(inferences)
    exchange = await send_request(sidecar.application, "POST", path, TENSORS)
    assert (exchange.status, exchange.json()) == (404, {"error": "Model m1 not found"})
    assert sidecar.gate.asked == [STREAM]
    assert [call[0] for call in inferences.calls] == ["prepare"]
    assert (await send_request(sidecar.application, "GET", path)).status == 405


@pytest.mark.parametrize(
    ("path", "name", "version"),
    [
        ("meta-llama/Llama-3-8B/infer", "meta-llama/Llama-3-8B", None),
        ("meta-llama/Llama-3-8B/versions/2/infer/", "meta-llama/Llama-3-8B", "2"),
        ("a b+c.é/infer", "a b+c.é", None),
        ("infer/infer", "infer", None),
        ("versions/versions/versions/infer", "versions", "versions"),
    ],
)
async def test_a_model_may_have_any_name(path: str, name: str, version: str | None) -> None:
    inferences = ScriptedInferences()
    exchange = await send_request(V2Sidecar(inferences).application, "POST", "/v2/models/" + path, TENSORS)
    assert exchange.status == 200
    assert inferences.calls == [("prepare", CALLER, name, version)]


@pytest.mark.parametrize(
    "path", ["/v2/zap", "/v2/models", "/v2/models/", "/v2/models/../infer", "/v2/models/m1/docs", "/v2/repository/m1"]
)
async def test_a_path_that_is_not_there_is_404(path: str) -> None:
    inferences = ScriptedInferences()
    exchange = await send_request(V2Sidecar(inferences).application, "GET", path)
    assert (exchange.status, exchange.json()) == (
        404,
        {"error": f"no handler found for uri [{path}] and method [GET]"},
    )
    assert inferences.calls == []


@pytest.mark.parametrize(
    ("path", "word", "instead"),
    [
        ("m1/config", "configurations", "/v2/models/{name}"),
        ("m1/versions/7/config", "configurations", "/v2/models/{name}"),
        ("m1/stats/", "statistics", "/metrics"),
        ("m1/versions/7/stats", "statistics", "/metrics"),
        ("stats", "statistics", "/metrics"),
    ],
)
async def test_where_triton_has_more_a_404_says_what_there_is_instead(path: str, word: str, instead: str) -> None:
    sidecar = V2Sidecar(ScriptedInferences(error=NotFound("Model not found")))
    exchange = await send_request(sidecar.application, "GET", f"/v2/models/{path}")
    assert exchange.status == 404 and sidecar.gate.asked == [(actions.MODEL_GET,)]
    assert exchange.json()["error"].startswith(f"This server has no model {word} as Triton has them")
    assert instead in exchange.json()["error"]


async def test_a_model_may_be_called_as_what_triton_has() -> None:
    inferences = ScriptedInferences()
    exchange = await send_request(V2Sidecar(inferences).application, "GET", "/v2/models/acme/stats")
    assert (exchange.status, exchange.json()) == (200, METADATA)
    assert inferences.calls == [("metadata", CALLER, "acme/stats", None)]


@pytest.mark.parametrize("path", ["/v20/health/live", "/v2x", "/x/v2"])
async def test_a_path_that_only_begins_alike_is_none_of_the_protocols(path: str) -> None:
    exchange = await send_request(V2Sidecar(ScriptedInferences()).application, "GET", path)
    assert exchange.status == 400


async def test_metadata_may_be_asked_for_by_head() -> None:
    exchange = await send_request(V2Sidecar(ScriptedInferences()).application, "HEAD", "/v2/models/m1")
    assert exchange.status == 200


async def test_while_the_store_is_away_the_server_is_live_but_not_ready_and_does_not_say_why() -> None:
    sidecar = V2Sidecar(ScriptedInferences())
    sidecar.is_store_away = True
    ready = await send_request(sidecar.application, "GET", "/v2/health/ready")
    assert (ready.status, ready.json()) == (503, {"error": "The store does not respond"})
    assert (await send_request(sidecar.application, "GET", "/v2/health/live")).status == 200


@pytest.mark.parametrize("path", ["/v2/health/live", "/v2/health/ready"])
async def test_a_probe_may_ask_for_health_under_any_host_name_and_without_a_login(path: str) -> None:
    sidecar = V2Sidecar(ScriptedInferences(), gate=RecordingGate(Unauthorized()))
    exchange = await send_request(sidecar.application, "GET", path, headers={"host": "probe.example"})
    assert exchange.status == 200


@EVERY_ROUTE
@pytest.mark.parametrize("error", [Unauthorized(), Forbidden("no permissions")])
async def test_who_may_not_call_is_told_so_in_the_protocols_words(
    method: str,
    path: str,
    body: Any,
    call: object,
    response: Any,
    allowing: tuple[str, ...] | None,
    error: Unauthorized | Forbidden,
) -> None:
    inferences = ScriptedInferences()
    sidecar = V2Sidecar(inferences, gate=RecordingGate(error))
    exchange = await send_request(sidecar.application, method, path, body)
    if allowing is None:
        assert exchange.status == 200
        return
    assert (exchange.status, exchange.json(), inferences.calls) == (error.status, {"error": error.reason}, [])
    assert exchange.headers.get("www-authenticate") == (error.challenge if isinstance(error, Unauthorized) else None)


@pytest.mark.parametrize("ready", [1, "true", []])
async def test_ready_is_true_or_false(ready: object) -> None:
    sidecar = V2Sidecar(ScriptedInferences())
    exchange = await send_request(sidecar.application, "POST", "/v2/repository/index", {"ready": ready})
    assert exchange.status == 422
    assert exchange.json() == {
        "error": "ready: Input should be a valid boolean",
        "detail": [{"type": "bool_type", "loc": ["body", "ready"], "msg": "Input should be a valid boolean"}],
    }
