"""Requests of predictions in every shape that clients and proxies give them."""

import gzip
import json

import httpx
import pytest
from integration_tests.support.background_provider import background_provider
from integration_tests.support.connector_bodies import openai
from integration_tests.support.fake_provider import json_response, openai_stream
from integration_tests.support.sidecars import Sidecar
from opensearchpy import OpenSearch

QUESTION = {"parameters": {"inputs": "Was ist das, “ünï”?"}}
BODY = json.dumps(QUESTION).encode()
JSON = {"Content-Type": "application/json"}
GZIP = {**JSON, "Content-Encoding": "gzip"}
PATHS = ["_predict", "_predict/stream"]


def post(sidecar: Sidecar, path: str, content: bytes, headers: dict[str, str]) -> httpx.Response:
    return sidecar.client.post(f"/_plugins/_ml/models/{path}", content=content, headers=headers)


@pytest.mark.parametrize("path", PATHS)
def test_a_packed_body_and_a_slash_at_the_end_of_the_path_make_no_difference(sidecar: Sidecar, path: str) -> None:
    completion = {"choices": [{"message": {"content": "ok"}}]}
    script = openai_stream(["ok"]) if path.endswith("stream") else json_response(completion)
    with background_provider(script) as provider:
        model_id = sidecar.create_model(openai(provider.url))
        response = post(sidecar, f"{model_id}/{path}/", gzip.compress(BODY), GZIP)
    assert response.status_code == 200, response.text
    assert provider.requests[0].json()["messages"][0]["content"] == QUESTION["parameters"]["inputs"]


@pytest.mark.parametrize("query", ["", "?pretty=true"])
def test_a_misspelt_parameter_is_not_refused_and_gets_a_hint(sidecar: Sidecar, query: str) -> None:
    completion = {"choices": [{"message": {"content": "ok"}}]}
    with background_provider(json_response(completion)) as provider:
        model_id = sidecar.create_model(openai(provider.url))
        path = f"/_plugins/_ml/models/{model_id}/_predict{query}"
        right, misspelt = (
            sidecar.client.post(path, json={"parameters": {"inputs": "hi", **more}}).json()
            for more in ({"color": "red"}, {"modle": "gpt-9"})
        )
    hint = "The connector has no place for the parameter [modle]; did you mean [model]?"
    assert "warnings" not in right
    assert misspelt == {**right, "warnings": [hint]}


def test_a_stream_says_so_in_its_terminal_object(sidecar: Sidecar) -> None:
    with background_provider(openai_stream(["ok"])) as provider:
        model_id = sidecar.create_model(openai(provider.url))
        path = f"/_plugins/_ml/models/{model_id}/_predict/stream"
        body = {"parameters": {"inputs": "hi", "modle": "gpt-9"}}
        first, last = sidecar.client.post(path, json=body).text.splitlines()
    assert "warnings" not in first
    data = json.loads(last)["inference_results"][0]["output"][0]["dataAsMap"]
    assert data["warnings"] == ["The connector has no place for the parameter [modle]; did you mean [model]?"]


def test_a_management_request_may_be_packed(sidecar: Sidecar) -> None:
    client = OpenSearch(sidecar.url, http_compress=True)
    body = {"name": "g", "description": "made by a client that packs its requests"}
    made = client.transport.perform_request("POST", "/_plugins/_ml/model_groups/_register", body=body)
    assert made["status"] == "CREATED"


@pytest.mark.parametrize("path", PATHS)
def test_a_small_body_that_unpacks_to_more_than_the_limit_is_a_413(sidecar: Sidecar, path: str) -> None:
    bomb = gzip.compress(b" " * (10 * 2**20 + 1))  # the limit, and one more
    response = post(sidecar, f"m/{path}", bomb, GZIP)
    assert (response.status_code, response.json()["error"]["type"]) == (413, "content_too_long_exception")


@pytest.mark.parametrize(
    ("content", "coding", "words"),
    [
        (BODY, "gzip", "is not gzip"),
        (gzip.compress(BODY)[:-9], "gzip", "not one whole gzip stream"),
        (gzip.compress(BODY) + b"x", "gzip", "not one whole gzip stream"),
        (BODY, "br", r"Content-Encoding [br] is not supported; use gzip"),
    ],
    ids=["plain", "cut", "longer", "brotli"],
)
def test_a_body_that_cannot_be_unpacked_is_a_400_with_the_reason(
    sidecar: Sidecar, content: bytes, coding: str, words: str
) -> None:
    response = post(sidecar, "m/_predict/stream", content, {**JSON, "Content-Encoding": coding})
    assert response.status_code == 400
    assert words in response.json()["error"]["reason"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("content_type", ["", "text/plain"])
def test_a_prediction_that_is_not_json_by_its_content_type_is_a_406(
    sidecar: Sidecar, path: str, content_type: str
) -> None:
    response = post(sidecar, f"m/{path}", BODY, {"Content-Type": content_type} if content_type else {})
    assert response.status_code == 406
    assert response.json() == {"error": f"Content-Type header [{content_type}] is not supported", "status": 406}


@pytest.mark.parametrize("path", PATHS)
def test_an_unknown_query_parameter_of_a_prediction_is_refused_by_name(sidecar: Sidecar, path: str) -> None:
    response = post(sidecar, f"m/{path}?foo=1&pretty", BODY, JSON)
    message = f"request [/_plugins/_ml/models/m/{path}] contains unrecognized parameter: [foo]"
    assert (response.status_code, response.json()["error"]["reason"]) == (400, message)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_a_prediction_by_another_method_than_post_is_a_405(sidecar: Sidecar, path: str, method: str) -> None:
    response = sidecar.client.request(method, f"/_plugins/_ml/models/m/{path}")
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")
    uri = f"/_plugins/_ml/models/m/{path}"
    message = f"Incorrect HTTP method for uri [{uri}] and method [{method}], allowed: [POST]"
    assert response.json() == {"error": message, "status": 405}


def test_no_client_is_redirected(sidecar: Sidecar) -> None:
    assert sidecar.client.get("/_health/live/").status_code == 400
