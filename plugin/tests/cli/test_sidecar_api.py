"""Requests of the command line: what is sent, what is read, and which error each failure is."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.wire_format import NDJSON
from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed, RequestFailed, Unreachable
from opensearch_ml_stream.plugin.cli.login import Login
from opensearch_ml_stream.plugin.cli.predict_command import read_chunks
from opensearch_ml_stream.plugin.cli.sidecar_api import SidecarAPI, open_api_as, refusal_advice
from opensearch_ml_stream.plugin.cli.sidecar_options import SidecarOptions
from opensearch_ml_stream.plugin.security.presented_credentials import ApiKey, NameAndPassword
from opensearch_ml_stream.rest_handlers import actions
from tests.cli.in_memory_sidecar import ENDING, Body, InMemorySidecar, text

Handler = Callable[[httpx.Request], httpx.Response]


def api_over(handler: Handler, base_url: str = "http://sidecar:9510") -> SidecarAPI:
    return SidecarAPI(httpx.Client(transport=httpx.MockTransport(handler), base_url=base_url))


def responding(*arguments: Any, **options: Any) -> SidecarAPI:
    return api_over(lambda request: httpx.Response(*arguments, **options))


def failing(error: Exception) -> Handler:
    def handler(request: httpx.Request) -> httpx.Response:
        raise error

    return handler


def test_a_call_sends_json_below_the_base_path_and_returns_the_responses_object() -> None:
    requests: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json={"b": 2})

    assert api_over(handler).call("POST", "/models/x", {"a": 1}) == {"b": 2}
    assert (requests[0].method, requests[0].url.path) == ("POST", "/_plugins/_ml/models/x")
    assert json.loads(requests[0].content) == {"a": 1}


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({"json": {"error": {"type": "t", "reason": "no such thing"}}}, "no such thing"),
        ({"json": {"error": {"type": "t"}}}, "t"),
        ({"json": {"error": "no"}}, "no"),
        ({"text": '{"message":"x"}'}, '{"message":"x"}'),
        ({"json": ["x"]}, '["x"]'),
        ({"text": " <html>\n"}, "<html>"),
        ({"text": "x" * 300}, "x" * 200),
        ({"text": ""}, "Bad Request"),
    ],
)
def test_an_error_status_is_a_failed_request_with_the_reason_that_the_server_gives(
    response: dict[str, Any], reason: str
) -> None:
    with pytest.raises(RequestFailed) as raised:
        responding(400, **response).call("GET", "/x")
    assert str(raised.value) == f"{reason} (status 400)"
    assert (raised.value.status, raised.value.exit_code) == (400, 1)


@pytest.mark.parametrize("body", ["<html>", "[1]", "null"])
def test_a_good_status_without_a_json_object_is_not_the_sidecars(body: str) -> None:
    with pytest.raises(CommandFailed, match="sidecar:9510 does not respond in JSON; is it the sidecar"):
        responding(200, text=body).call("GET", "/x")


@pytest.mark.parametrize(
    ("error", "expected", "words"),
    [
        (httpx.ReadTimeout("x"), RequestFailed, r"http://sidecar:9510 did not respond in time \(status 408\)"),
        (httpx.RemoteProtocolError("x"), RequestFailed, r"broke before the response was complete \(status 424\)"),
        (httpx.ReadError("x"), RequestFailed, r"broke before the response was complete \(status 424\)"),
        (httpx.ConnectError("refused"), Unreachable, r"Cannot reach http://sidecar:9510 \(refused\)"),
        (httpx.ConnectTimeout("slow"), Unreachable, r"Cannot reach http://sidecar:9510 \(slow\)"),
    ],
)
def test_a_fault_of_the_connection_is_told_with_the_address_but_no_password(
    error: Exception, expected: type[CommandFailed], words: str
) -> None:
    with pytest.raises(expected, match=words) as raised:
        api_over(failing(error), "http://me:hunter2@sidecar:9510").call("GET", "/x")
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(("status", "ready"), [(200, True), (503, False)])
def test_a_sidecar_is_ready_when_its_health_check_says_so(status: int, ready: bool) -> None:
    assert responding(status).is_ready() is ready


def test_a_sidecar_that_cannot_be_reached_is_not_ready() -> None:
    assert api_over(failing(httpx.ConnectError("refused"))).is_ready() is False


def test_a_search_returns_the_hits() -> None:
    requests: list[Any] = []

    def handler(request: httpx.Request) -> httpx.Response:
        requests.append((request.url.path, json.loads(request.content)))
        return httpx.Response(200, json={"hits": {"hits": [{"_id": "1", "_source": {}}]}})

    assert api_over(handler).search("models", {"match_all": {}}) == [{"_id": "1", "_source": {}}]
    assert requests == [("/_plugins/_ml/models/_search", {"query": {"match_all": {}}, "size": 1000})]


def test_a_stream_is_yielded_chunk_by_chunk_and_closed() -> None:
    body = Body([text("a"), NDJSON.heartbeat, text("b"), ENDING])
    chunks = read_chunks(responding(200, stream=body).predict_stream("a/b", {"inputs": "hi"}))
    assert next(chunks).text == "a"
    assert not body.closed
    assert [chunk.text for chunk in chunks] == ["b", ""]
    assert body.closed


def test_a_stream_that_is_left_early_is_closed() -> None:
    body = Body([text("a"), ENDING])
    pieces = iter(responding(200, stream=body).predict_stream("m1", {}))
    next(pieces)
    pieces.close()  # type: ignore[attr-defined]
    assert body.closed


def test_a_streams_request_asks_for_json_lines_and_waits_for_heartbeats_only() -> None:
    requests: list[httpx.Request] = []

    def handler(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, stream=Body([ENDING]))

    assert list(api_over(handler).predict_stream("a/b", {"inputs": "hi"}))
    (request,) = requests
    assert request.url.raw_path == b"/_plugins/_ml/models/a%2Fb/_predict/stream"
    assert request.headers["accept"] == "application/x-ndjson"
    assert json.loads(request.content) == {"parameters": {"inputs": "hi"}}
    assert request.extensions["timeout"]["read"] == 60


def test_an_error_status_in_place_of_a_stream_is_a_failed_request() -> None:
    body = Body([b'{"error": {"reason": "busy"}}'])
    with pytest.raises(RequestFailed, match="busy"):
        next(responding(429, stream=body).predict_stream("m1", {}))
    assert body.closed


@pytest.mark.parametrize(
    ("pieces", "fault", "words"),
    [
        ((NDJSON.error(UpstreamError("overloaded")),), None, r"overloaded \(status 424\)"),
        ((), None, "The response is incomplete"),
        ((), httpx.RemoteProtocolError("cut"), "broke before the response was complete"),
        ((), httpx.ReadTimeout("silent"), "did not respond in time"),
    ],
)
def test_a_stream_that_breaks_off_fails_after_the_chunks_before_it(
    pieces: tuple[bytes, ...], fault: Exception | None, words: str
) -> None:
    chunks = read_chunks(responding(200, stream=Body([text("a"), *pieces], fault)).predict_stream("m1", {}))
    assert next(chunks).text == "a"
    with pytest.raises(RequestFailed, match=words):
        next(chunks)


@pytest.mark.parametrize(
    ("secret", "authorization"),
    [(NameAndPassword("me", "pass:word"), "Basic bWU6cGFzczp3b3Jk"), (ApiKey("k"), "Bearer k")],
)
def test_a_login_is_presented_with_every_request(
    sidecar: InMemorySidecar, secret: NameAndPassword | ApiKey, authorization: str
) -> None:
    with open_api_as(Login(secret, "it"), SidecarOptions("http://Sidecar:9510/prefix/")) as api:
        assert api.is_ready() is False
    (request,) = sidecar.requests
    assert str(request.url) == "http://sidecar:9510/prefix/_health/ready"
    assert request.headers["authorization"] == authorization


def test_without_a_login_none_is_presented(sidecar: InMemorySidecar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLSTREAM_API_KEY", "k")
    with open_api_as(None, SidecarOptions()) as api:
        api.is_ready()
    assert "authorization" not in sidecar.requests[0].headers


@pytest.mark.parametrize("method", ["call", "stream"])
def test_a_redirect_is_not_followed_since_the_login_is_for_this_sidecar_alone(
    sidecar: InMemorySidecar, method: str
) -> None:
    elsewhere = httpx.Response(307, headers={"location": "http://evil/"})
    sidecar.responses = {("GET", "/x"): elsewhere, ("POST", "/models/m1/_predict/stream"): elsewhere}
    with (
        open_api_as(Login(ApiKey("k"), "it"), SidecarOptions()) as api,
        pytest.raises(RequestFailed, match=r"http://127.0.0.1:9510 redirects to http://evil/") as raised,
    ):
        api.call("GET", "/x") if method == "call" else list(api.predict_stream("m1", {}))
    assert raised.value.status == 307
    assert [request.url.host for request in sidecar.requests] == ["127.0.0.1"]


@pytest.mark.parametrize(
    ("login", "words"),
    [
        (None, r"^Unauthorized \(status 401\); log in with `\S+ login --url http://s:1`, or set"),
        (Login(ApiKey("k"), "the key of X"), r"\(status 401\); the key of X is wrong, expired or revoked; log in with"),
    ],
)
def test_a_refused_login_is_named_with_what_to_do(sidecar: InMemorySidecar, login: Login | None, words: str) -> None:
    sidecar.responses["GET", "/x"] = httpx.Response(401, text="Unauthorized")
    with open_api_as(login, SidecarOptions("http://s:1")) as api, pytest.raises(RequestFailed, match=words):
        api.call("GET", "/x")


@pytest.mark.parametrize(
    ("response", "admitted"),
    [(httpx.Response(200, json={"name": "opensearch-ml-stream"}), True), (httpx.Response(401), False)],
)
def test_a_sidecar_says_whom_it_admits(sidecar: InMemorySidecar, response: httpx.Response, admitted: bool) -> None:
    sidecar.responses["GET", "/"] = response
    with open_api_as(None, SidecarOptions()) as api:
        assert api.admits() is admitted


def test_another_server_is_not_the_sidecar(sidecar: InMemorySidecar) -> None:
    sidecar.responses["GET", "/"] = {"cluster_name": "opensearch"}
    with open_api_as(None, SidecarOptions()) as api, pytest.raises(CommandFailed, match="is not the sidecar"):
        api.admits()


@pytest.mark.parametrize("root", [{"name": "node-1", "cluster_name": "c"}, httpx.Response(403, json={})])
@pytest.mark.parametrize(
    ("description", "admitted"),
    [({"info": {"title": "opensearch-ml-stream"}}, True), (httpx.Response(401), False)],
)
def test_a_sidecar_in_front_of_a_cluster_says_by_its_description_whom_it_admits(
    sidecar: InMemorySidecar, root: object, description: object, admitted: bool
) -> None:
    sidecar.responses |= {("GET", "/"): root, ("GET", "/openapi.json?filter_path=info.title"): description}
    with open_api_as(None, SidecarOptions()) as api:
        assert api.admits() is admitted


def missing(action: str) -> str:
    return f"no permissions for [{action}] and User [name=app, backend_roles=[], requestedTenant=null]"


@pytest.mark.parametrize(
    ("action", "roles"),
    [
        (actions.MODEL_GET, "ml_full_access and ml_read_access"),
        (actions.PREDICT_STREAM, "ml_full_access and ml_predict_access"),
        (actions.CONNECTOR_CREATE, "ml_full_access"),
        (actions.SETTINGS_GET, "ml_full_access and ml_read_access"),
    ],
)
def test_the_roles_that_have_a_missing_action_are_named(action: str, roles: str) -> None:
    advice = refusal_advice(403, missing(action), "http://s", "the key")
    assert advice == f"of the roles that come with the sidecar, it is in {roles}"


@pytest.mark.parametrize(
    ("status", "reason"),
    [(403, missing("indices:data/read/search")), (403, "remote inference is disabled"), (404, "x")],
)
def test_no_role_is_named_where_none_would_do(status: int, reason: str) -> None:
    assert refusal_advice(status, reason, "http://s", None) == ""
