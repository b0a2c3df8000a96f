"""What is read of an inference's request, and what is said of one that is wrong."""

import gzip
import json
from urllib.parse import urlencode

import pytest

from opensearch_ml_stream.connectors.errors import NotFound
from tests.asgi_exchange import Exchange, send_request
from tests.v2.http.scripted_inferences import BODY, TENSORS, ScriptedInferences, V2Sidecar

PATHS = pytest.mark.parametrize("path", ["/v2/models/m1/infer", "/v2/models/m1/infer_stream"])


async def post(path: str, body: bytes, headers: dict[str, str]) -> tuple[Exchange, ScriptedInferences]:
    inferences = ScriptedInferences(error=NotFound("as far as it goes"))
    sidecar = V2Sidecar(inferences)
    exchange = await Exchange("POST", path, body, headers).run(sidecar.application)
    assert exchange.complete and sidecar.in_flight.bodies.reserved == 0
    return exchange, inferences


@PATHS
@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/octet-stream", "application/x-www-form-urlencoded", "application/x-zap", None],
)
async def test_the_content_type_is_what_the_client_likes(path: str, content_type: str | None) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    exchange, inferences = await post(path, BODY, headers)
    assert exchange.status == 404
    assert inferences.requests[0].inputs[0].data == ["Why?"]


@PATHS
@pytest.mark.parametrize("content_type", ["text/plain", "Text/Plain; charset=utf-8", "multipart/form-data"])
async def test_what_a_form_of_a_web_page_can_send_is_refused(path: str, content_type: str) -> None:
    exchange, inferences = await post(path, BODY, {"content-type": content_type})
    error = f"Content-Type header [{content_type}] is not supported; send application/json"
    assert (exchange.status, exchange.json(), inferences.calls) == (406, {"error": error}, [])


@PATHS
async def test_what_an_urlencoded_form_says_is_no_request(path: str) -> None:
    form = urlencode({BODY.decode(): ""}).encode()
    exchange, inferences = await post(path, form, {"content-type": "application/x-www-form-urlencoded"})
    assert (exchange.status, inferences.calls) == (422, [])


@PATHS
@pytest.mark.parametrize(
    "headers", [{"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}]
)
async def test_a_foreign_web_page_is_refused_in_the_protocols_words(path: str, headers: dict[str, str]) -> None:
    exchange, inferences = await post(path, BODY, headers)
    assert (exchange.status, inferences.calls) == (403, [])
    assert exchange.json()["error"].startswith("A web page")


@PATHS
async def test_a_request_may_be_compressed(path: str) -> None:
    _, inferences = await post(path, gzip.compress(BODY), {"content-encoding": "gzip"})
    assert inferences.requests[0].inputs[0].data == ["Why?"]


@PATHS
@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (b"{", 422, "The request body is not JSON"),
        (b"", 422, "The request body is not JSON"),
        (b"{}", 422, "inputs: Field required"),
        (b" " * 1001, 413, "The request body is larger than 1000 bytes"),
    ],
)
async def test_a_body_that_is_no_request_is_refused(path: str, body: bytes, status: int, reason: str) -> None:
    exchange, inferences = await post(path, body, {})
    assert (exchange.status, inferences.calls) == (status, [])
    assert exchange.json()["error"].startswith(reason)
    assert ("detail" in exchange.json()) == (status == 422)


@PATHS
async def test_a_model_may_read_the_headers_but_no_credentials(path: str) -> None:
    headers = {
        "user-agent": "httpx", "x-foo": "bar", "traceparent": "00-1", "ce-id": "e1", "seldon-model": "m1",
        "authorization": "Basic YTpi", "cookie": "a=b", "x-api-key": "sk", "proxy-authorization": "x",
        "x-forwarded-for": "10.0.0.1", "forwarded": "for=10.0.0.1", "x-real-ip": "10.0.0.1", "x-proxy-user": "root",
        "x-proxy-roles": "admin", "x-tenant-id": "t1", "x-auth-token": "s", "api-key": "s", "x-amz-security-token": "s",
    }  # fmt: skip
    body = json.dumps({**TENSORS, "parameters": {"headers": {"x-api-key": "forged"}, "a": 1}}).encode()
    _, inferences = await post(path, body, headers)
    shown = {"user-agent": "httpx", "x-foo": "bar", "traceparent": "00-1", "ce-id": "e1", "seldon-model": "m1"}
    assert inferences.requests[0].parameters == {"headers": shown, "a": 1}


async def infer(headers: dict[str, str], body: object = TENSORS, path: str = "/v2/models/m1/infer") -> dict[str, str]:
    exchange = await send_request(V2Sidecar(ScriptedInferences()).application, "POST", path, body, headers)
    assert exchange.status == 200
    return exchange.headers


async def test_plain_headers_of_the_clients_own_come_back() -> None:
    headers = await infer({"x-foo": "bar", "x-correlation": "c 1", "X-Opaque-Id": "me"})
    assert (headers["x-foo"], headers["x-correlation"], headers["x-opaque-id"]) == ("bar", "c 1", "me")


@pytest.mark.parametrize(
    "name",
    [
        "x-accel-redirect", "x-accel-expires", "x-sendfile", "x-sendfile-temporary", "x-lighttpd-send-file",
        "x-litespeed-location", "x-reproxy-url", "x-appengine-blobkey", "x-envoy-immediate-health-check-fail",
        "x-permitted-cross-domain-policies", "x-xss-protection", "x-robots-tag", "x-ua-compatible", "x-sourcemap",
        "x-apikey", "x-api-key", "x-token", "x-csrftoken", "x-forwarded-for", "location", "set-cookie", "refresh",
    ],
)  # fmt: skip
async def test_a_header_that_a_proxy_or_browser_obeys_or_that_is_a_secret_does_not_come_back(name: str) -> None:
    assert name not in await infer({name: "/etc/passwd"})


async def test_headers_do_not_come_back_without_bounds() -> None:
    many = {f"x-h{number}": "v" for number in range(20)}
    headers = await infer({**many, "x-long": "v" * 257, "x-frame-options": "ALLOWALL", "x-none": "é"})
    assert [name for name in headers if name.startswith("x-h")] == [f"x-h{number}" for number in range(8)]
    assert not {"x-long", "x-frame-options", "x-none"} & headers.keys()
    assert headers["x-content-type-options"] == "nosniff"


async def test_a_response_is_a_cloud_event_as_mlserver_writes_them() -> None:
    headers = await infer({}, path="/v2/models/a model é/infer")
    assert {name: value for name, value in headers.items() if name.startswith("ce-")} == {
        "ce-specversion": "0.3",
        "ce-source": "io.seldon.serving.deployment.opensearch-ml-stream",
        "ce-type": "io.seldon.serving.inference.response",
        "ce-inferenceservicename": "opensearch-ml-stream",
        "ce-modelid": "a%20model%20%C3%A9",
        "ce-endpoint": "a%20model%20%C3%A9",
        "ce-id": "r1",
        "ce-requestid": "r1",
    }


async def test_the_response_to_a_cloud_event_is_one_as_kserve_writes_them() -> None:
    event = {"ce-specversion": "1.0", "ce-source": "me", "ce-type": "ask", "ce-id": "e1"}
    headers = await infer(event, {**TENSORS, "id": 'a"\r\n%'})
    time = headers.pop("ce-time")
    assert time.endswith("+00:00") and time > "2026"
    assert {name: value for name, value in headers.items() if name.startswith("ce-")} == {
        "ce-specversion": "1.0",
        "ce-source": "io.kserve.inference.m1",
        "ce-type": "io.kserve.inference.response",
        "ce-id": "a%22%0D%0A%25",
    }


@pytest.mark.parametrize(
    ("length", "accepted", "coded"), [(2000, "gzip", True), (2000, "gzip;q=0", False), (10, "gzip", False)]
)
async def test_a_whole_response_is_compressed_where_that_is_worth_it(length: int, accepted: str, coded: bool) -> None:
    sidecar = V2Sidecar(ScriptedInferences(text="x" * length))
    path = "/v2/models/m1/infer"
    exchange = await send_request(sidecar.application, "POST", path, TENSORS, {"accept-encoding": accepted})
    assert exchange.headers.get("content-encoding") == ("gzip" if coded else None)
    assert exchange.headers["content-length"] == str(len(exchange.body))
    body = gzip.decompress(exchange.body) if coded else exchange.body
    assert json.loads(body)["outputs"][0]["data"] == ["x" * length]
    assert ("vary" in exchange.headers) == (length > 1000)


@PATHS
@pytest.mark.parametrize("length", ["0", "-1", "x", "1e2", "9" * 16])
async def test_a_length_of_the_json_that_is_none_is_refused_before_the_body_is_read(path: str, length: str) -> None:
    exchange, inferences = await post(path, BODY, {"inference-header-content-length": length})
    assert (exchange.status, inferences.calls) == (400, [])
    assert exchange.json()["error"].startswith("Inference-Header-Content-Length must be the length of the JSON")


@pytest.mark.parametrize("coding", ["", "gzip"])
async def test_contents_come_behind_the_json_and_go_back_there(coding: str) -> None:
    tensor = {"name": "prompt", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": 8}}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    body = head + b"\4\0\0\0Why?"
    inferences = ScriptedInferences()
    headers = {"inference-header-content-length": str(len(head)), "content-type": "application/octet-stream"}
    headers |= {"content-encoding": coding} if coding else {}
    sent = gzip.compress(body) if coding else body
    exchange = await Exchange("POST", "/v2/models/m1/infer", sent, headers).run(V2Sidecar(inferences).application)
    assert inferences.requests[0].inputs[0].data == ["Why?"]
    assert exchange.headers["content-type"] == "application/octet-stream"
    length = int(exchange.headers["inference-header-content-length"])
    assert exchange.body[length:] == b"\7\0\0\0Because"
    (output,) = json.loads(exchange.body[:length])["outputs"]
    assert output["parameters"] == {"content_type": "str", "binary_data_size": 11} and "data" not in output
