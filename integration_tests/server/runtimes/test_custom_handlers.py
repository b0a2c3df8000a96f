"""Custom handlers of models over the server's own HTTP port: for as long as the model is loaded, under its limits."""

from integration_tests.server.runtimes.runtime_server import RuntimeServer
from integration_tests.support.conditions import eventually


def test_a_handler_is_reached_at_its_path_until_its_model_is_unloaded(server: RuntimeServer) -> None:
    client = server.sidecar.client
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
    assert client.post("/count", json=[1] * 100_000).status_code == 413
    client.post("/v2/repository/models/first/unload").raise_for_status()
    eventually(lambda: client.post("/count", json=[]).status_code == 400)
    assert client.post("/count", json=[]).json() == {"error": "no handler found for uri [/count] and method [POST]"}
    client.post("/v2/repository/models/first/load").raise_for_status()
    eventually(lambda: client.post("/count", json=[]).status_code == 200)


def test_the_servers_own_paths_are_never_a_handlers(server: RuntimeServer) -> None:
    client = server.sidecar.client
    assert "mlstream_" in client.get("/metrics").text
    assert client.get("/v2/own").status_code == 404
    warning = "runtime first: the custom handler GET /v2/own is not served: the path is the server's own"
    assert warning in server.log


def test_what_a_handler_raises_is_told_as_that_of_a_prediction(server: RuntimeServer) -> None:
    client = server.sidecar.client
    bodies: list[object] = [{"a": 1}, {}, []]
    told = [client.post("/fails", json=body) for body in bodies]
    assert [(one.status_code, one.json()["error"]) for one in told] == [
        (400, "cannot"),
        (424, "The runtime of model first raised ValueError: no such value"),
        (422, "body: Input should be a valid dictionary"),
    ]


def test_a_handler_is_called_under_the_limits_of_its_model(server: RuntimeServer) -> None:
    client = server.sidecar.client
    model = "/_plugins/_ml/models/runtime-limited"
    client.put(model, json={"rate_limiter": {"limit": "1", "unit": "HOURS"}}).raise_for_status()
    eventually(lambda: client.post("/limited", json=[]).status_code == 429)
    guardrails = {"type": "local_regex", "input_guardrail": {"regex": ["secret"]}}
    client.put(model, json={"guardrails": guardrails}).raise_for_status()
    eventually(lambda: client.post("/limited", json=[]).status_code == 400)
    assert "has guardrails" in client.post("/limited", json=[]).json()["error"]
    client.put(model, json={"is_enabled": False}).raise_for_status()
    eventually(lambda: client.post("/limited", json=[]).status_code == 403)
