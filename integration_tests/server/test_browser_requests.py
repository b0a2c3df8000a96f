"""Requests byte for byte as browsers send them, to a real server: what a page of another origin can do, and cannot."""

import json
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from integration_tests.server.shared_sidecars import LISTED_HOST, LISTED_ORIGIN
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import openai_stream
from integration_tests.support.sidecars import Sidecar

EVIL = "http://evil.example"
CONNECTOR = {
    "name": "planted",
    "version": "1",
    "protocol": "http",
    "credential": {"k": "v"},
    "actions": [{"action_type": "predict", "method": "POST", "url": "http://127.0.0.1:1/x", "request_body": "{}"}],
}
CREATE = "/_plugins/_ml/connectors/_create"
CREATE_IN_QUERY = f"{CREATE}?source={quote(json.dumps(CONNECTOR))}&source_content_type=application/json"


def sent(sidecar: Sidecar, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> httpx.Response:
    """The response to exactly these headers, besides Content-Length: httpx would add its own."""
    url = httpx.URL(sidecar.url)
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if body or method == "POST":
        lines.append(f"Content-Length: {len(body)}")
    with socket.create_connection((url.host, url.port or 80), timeout=20) as connection:
        connection.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode() + body)
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, content = received.partition(b"\r\n\r\n")
    status, *pairs = head.decode("latin-1").split("\r\n")
    fields = dict(line.split(": ", 1) for line in pairs if not line.lower().startswith("transfer-encoding"))
    return httpx.Response(int(status.split()[1]), headers=fields, content=content)


def own_host(sidecar: Sidecar) -> str:
    return sidecar.url.removeprefix("http://")


def connectors(sidecar: Sidecar) -> int:
    found = sidecar.client.get("/_plugins/_ml/connectors/_search").json()
    return int(found["hits"]["total"]["value"])


FORM = {"Content-Type": "application/x-www-form-urlencoded"}
TEXT = {"Content-Type": "text/plain;charset=UTF-8"}
PAGE = {"Origin": EVIL, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
OLD_BROWSER: dict[str, str] = {}  # tells nothing of where a request comes from
REQUESTS: list[tuple[str, str, Mapping[str, str], bytes]] = [
    ("POST", CREATE_IN_QUERY, FORM, b""),
    ("POST", CREATE_IN_QUERY, {}, b""),
    ("POST", CREATE_IN_QUERY, TEXT, b"x"),
    ("POST", CREATE, TEXT, json.dumps(CONNECTOR).encode()),
    ("POST", CREATE, FORM, json.dumps(CONNECTOR).encode()),
    ("POST", CREATE, {"Content-Type": "multipart/form-data; boundary=x"}, json.dumps(CONNECTOR).encode()),
    ("POST", CREATE, {}, json.dumps(CONNECTOR).encode()),
]


@pytest.mark.parametrize("page", [PAGE, OLD_BROWSER, {"Origin": "null"}], ids=["page", "old browser", "sandboxed"])
def test_no_page_can_write_by_a_request_that_browsers_send_without_asking(
    strict: Sidecar, page: Mapping[str, str]
) -> None:
    before = connectors(strict)
    for method, target, headers, body in REQUESTS:
        response = sent(strict, method, target, {"Host": own_host(strict), **page, **headers}, body)
        assert response.status_code == (403 if page else 406), (target, headers)
    assert connectors(strict) == before


@pytest.mark.parametrize("target", ["/_plugins/_ml/models/_undeploy", "/_plugins/_ml/models/m/_deploy", CREATE])
def test_no_page_can_post_without_a_body(strict: Sidecar, target: str) -> None:
    for page in (PAGE, {"Origin": EVIL}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert sent(strict, "POST", target, {"Host": own_host(strict), **page, **FORM}).status_code == 403


def test_an_image_or_a_link_on_another_site_reads_nothing(strict: Sidecar) -> None:
    for mode in ("no-cors", "navigate"):
        headers = {"Host": own_host(strict), "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode}
        response = sent(strict, "GET", "/_plugins/_ml/connectors/_search", headers)
        assert (response.status_code, "hits" in response.text) == (403, False)


@pytest.mark.parametrize("target", ["/_plugins/_ml/connectors/_search", "/_plugins/_ml/_settings", "/metrics", "/"])
def test_a_name_rebound_to_this_address_reaches_nothing(strict: Sidecar, target: str) -> None:
    host = f"evil.example:{own_host(strict).rpartition(':')[2]}"
    headers = {"Host": host, "Sec-Fetch-Site": "same-origin"}
    response = sent(strict, "GET", target, headers)
    assert response.status_code == 421
    assert "opensearch_ml_stream.allowed_hosts" in response.json()["error"]["reason"]
    body = json.dumps({"persistent": {"plugins.ml_commons.connector.private_ip_enabled": True}}).encode()
    headers |= {"Origin": f"http://{host}", "Content-Type": "application/json"}
    assert sent(strict, "PUT", "/_plugins/_ml/_settings", headers, body).status_code == 421


def test_probes_and_listed_names_are_served(strict: Sidecar) -> None:
    assert sent(strict, "GET", "/_health/live", {"Host": "any.name"}).status_code == 200
    assert sent(strict, "GET", "/_health/ready", {"Host": "any.name"}).status_code == 200
    for host in (LISTED_HOST, "ML.example.com.:80", "[::1]:9510", "10.1.2.3", "localhost"):
        assert sent(strict, "GET", "/", {"Host": host}).status_code == 200


def test_a_listed_page_asks_beforehand_and_then_reads_a_stream(strict: Sidecar) -> None:
    with background_provider(openai_stream(["Hello", " world"], 0)) as provider:
        model_id = strict.create_model(openai(provider.url))
        target = f"/_plugins/_ml/models/{model_id}/_predict/stream"
        page = {
            "Host": own_host(strict),
            "Origin": LISTED_ORIGIN,
            "Sec-Fetch-Site": "cross-site",
            "Sec-Fetch-Mode": "cors",
        }
        wanted = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
        preflight = sent(strict, "OPTIONS", target, {**page, **wanted})
        assert preflight.status_code == 204
        assert preflight.headers["Access-Control-Allow-Origin"] == LISTED_ORIGIN
        assert preflight.headers["Access-Control-Allow-Headers"] == "content-type"
        assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
        body: dict[str, Any] = {"parameters": {"inputs": "hi"}}
        headers = {**page, "Content-Type": "application/json"}
        stream = sent(strict, "POST", target, headers, json.dumps(body).encode())
        assert (stream.status_code, stream.headers["Access-Control-Allow-Origin"]) == (200, LISTED_ORIGIN)
        assert "Hello" in stream.text and stream.headers["Vary"] == "Origin"
        failed = sent(strict, "POST", target + "?format=xml", headers, json.dumps(body).encode())
        assert (failed.status_code, failed.headers["Access-Control-Allow-Origin"]) == (400, LISTED_ORIGIN)
        unlisted = sent(strict, "OPTIONS", target, {**page, "Origin": EVIL, **wanted})
        assert (unlisted.status_code, "Access-Control-Allow-Origin" in unlisted.headers) == (403, False)
