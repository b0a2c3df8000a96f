"""JSON responses, good and bad, as the query and the headers of their requests want them."""

import json
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from opensearch_ml_stream.connectors.errors import InvalidRequest, NotAcceptable, Throttled
from opensearch_ml_stream.rest_handlers.http.responses import error_response, json_response
from tests.asgi_exchange import Exchange

BODY = {"name": "ü", "more": {"a": 1, "b": [2]}}


def request(query: str = "", headers: dict[str, str] | None = None) -> Request:
    return Request(Exchange("GET", f"/path?{query}", headers=headers).scope)


def content(response: Response) -> str:
    return bytes(response.body).decode()


@pytest.mark.parametrize("query", ["", "pretty=false"])
def test_json_is_compact_unless_it_is_asked_for_pretty(query: str) -> None:
    response = json_response(request(query), BODY)
    assert content(response) == '{"name":"ü","more":{"a":1,"b":[2]}}'
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json; charset=UTF-8")
    assert response.headers["content-length"] == str(len(response.body))


@pytest.mark.parametrize("query", ["pretty", "pretty=true"])
def test_pretty_json_is_as_opensearch_prints_it(query: str) -> None:
    assert content(json_response(request(query), {"a": 1, "b": {"c": "x"}})) == (
        '{\n  "a" : 1,\n  "b" : {\n    "c" : "x"\n  }\n}\n'
    )


@pytest.mark.parametrize(
    ("patterns", "rest"),
    [("name", {"name": "ü"}), ("more.b,name", {"name": "ü", "more": {"b": [2]}}), ("-more", {"name": "ü"}), ("", BODY)],
)
def test_filter_path_leaves_what_it_names(patterns: str, rest: Any) -> None:
    assert json.loads(content(json_response(request(f"filter_path={patterns}"), BODY))) == rest


def test_the_opaque_id_of_the_request_comes_back_and_headers_are_added() -> None:
    response = json_response(request("", {"X-Opaque-Id": "me"}), {}, 201, {"Allow": "GET"})
    assert response.status_code == 201
    assert (response.headers["x-opaque-id"], response.headers["allow"]) == ("me", "GET")
    assert "x-opaque-id" not in json_response(request(), {}).headers


@pytest.mark.parametrize("value", [2**70, "\ud83d"], ids=["large number", "half a surrogate pair"])
def test_what_the_fast_encoder_refuses_is_written_all_the_same(value: object) -> None:
    assert json.loads(content(json_response(request(), {"a": value}))) == {"a": value}


def test_an_error_has_its_status_and_opensearchs_whole_body_whatever_the_filter() -> None:
    response = error_response(request("filter_path=status", {"X-Opaque-Id": "me"}), InvalidRequest("wrong"))
    assert (response.status_code, content(response)) == (
        400,
        content(error_response(request(), InvalidRequest("wrong"))),
    )
    assert response.headers["x-opaque-id"] == "me"
    assert "retry-after" not in response.headers
    assert json.loads(content(error_response(request(), InvalidRequest("wrong")))) == {
        "error": {
            "root_cause": [{"type": "illegal_argument_exception", "reason": "wrong"}],
            "type": "illegal_argument_exception",
            "reason": "wrong",
        },
        "status": 400,
    }
    assert json.loads(content(error_response(request(), NotAcceptable("no")))) == {"error": "no", "status": 406}


def test_an_error_with_a_retry_time_has_a_retry_after_header() -> None:
    response = error_response(request(), Throttled("slow down", retry_after="3"))
    assert (response.status_code, response.headers["retry-after"]) == (429, "3")


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("format=yaml", {}),
        ("format=yaml", {"accept": "application/json"}),
        ("", {"accept": "application/yaml"}),
        ("", {"content-type": "application/yaml"}),
        ("", {"accept": "*/*", "content-type": "application/yaml"}),
    ],
)
def test_yaml_is_sent_to_who_asks_for_it(query: str, headers: dict[str, str]) -> None:
    response = json_response(request(query, headers), BODY)
    assert response.headers["content-type"] == "application/yaml; charset=UTF-8"
    assert content(response) == '---\nname: "ü"\nmore:\n  a: 1\n  b:\n  - 2\n'


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ("format=json", {"accept": "application/yaml"}),
        ("", {"accept": "application/json", "content-type": "application/yaml"}),
        ("", {"accept": "text/html", "content-type": "application/yaml"}),
    ],
)
def test_json_is_sent_to_who_does_not_ask_for_yaml(query: str, headers: dict[str, str]) -> None:
    assert json_response(request(query, headers), BODY).headers["content-type"].startswith("application/json")
