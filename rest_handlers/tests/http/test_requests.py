"""Flags, content types, headers and query parameters of a request, and the format that they choose."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, NotAcceptable
from opensearch_ml_stream.connectors.wire_format import NDJSON, SSE, WireFormat
from opensearch_ml_stream.rest_handlers.http.requests import (
    check_query,
    header,
    is_json,
    is_yaml,
    json_body,
    query,
    read_flag,
    wire_format,
)


def scope(query_string: str = "", **headers: str) -> dict[str, Any]:
    pairs = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    return {"type": "http", "path": "/path", "query_string": query_string.encode(), "headers": pairs}


@pytest.mark.parametrize(("value", "flag"), [("", True), ("true", True), ("false", False)])
def test_a_flag_without_a_value_is_true(value: str, flag: bool) -> None:
    assert read_flag(value) is flag


@pytest.mark.parametrize("value", ["yes", "True", "1", " true"])
def test_a_flag_that_is_neither_true_nor_false_is_refused(value: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_flag(value)
    assert refused.value.reason == f"Failed to parse value [{value}] as only [true] or [false] are allowed."


@pytest.mark.parametrize(
    ("content_type", "json"),
    [
        ("application/json", True),
        ("Application/JSON; charset=UTF-8", True),
        (" application/json ;q=1", True),
        ("application/vnd.opensearch+json;compatible-with=7", True),
        ("application/x-ndjson", True),
        ("application/yaml", False),
        ("application/jsonp", False),
        ("text/plain", False),
        ("text/x+json", False),
        ("text/plain; application/json", False),
        ("", False),
    ],
)
def test_only_json_is_taken_for_json(content_type: str, json: bool) -> None:
    assert is_json(content_type) is json


def test_a_yaml_body_becomes_json() -> None:
    assert is_yaml("Application/YAML; charset=UTF-8")
    assert json_body(scope(content_type="application/json"), b"a: 1") == b"a: 1"
    assert json_body(scope(content_type="application/yaml"), b"a: 1") == b'{"a":1}'
    assert json_body(scope(content_type="application/yaml"), b"") == b""


def test_a_content_type_that_is_neither_json_nor_yaml_is_not_acceptable() -> None:
    for headers, name in (({"content_type": "text/plain"}, "text/plain"), ({}, "")):
        with pytest.raises(NotAcceptable) as refused:
            json_body(scope(**headers), b"{}")
        assert refused.value.body() == {"error": f"Content-Type header [{name}] is not supported", "status": 406}


def test_the_first_header_of_a_name_counts() -> None:
    request = scope(accept="é")
    request["headers"].append((b"accept", b"second"))
    assert (header(request, b"accept"), header(request, b"accept-language")) == ("é", "")


@pytest.mark.parametrize(
    ("query_string", "parameters"),
    [
        ("", {}),
        ("pretty", {"pretty": ""}),
        ("pretty=&a=1&a=2", {"pretty": "", "a": "2"}),
        ("a=%C3%A9+x%26", {"a": "é x&"}),
    ],
)
def test_a_query_is_read_as_names_with_their_last_values(query_string: str, parameters: dict[str, str]) -> None:
    assert query(scope(query_string)) == parameters


def test_parameters_of_all_routes_and_of_the_route_are_accepted() -> None:
    everywhere = "pretty&human=true&error_trace=false&filter_path=a&source={}&source_content_type=application/json"
    check_query(scope(), query(scope(everywhere)))
    check_query(scope(), {"deploy": "any"}, frozenset({"deploy"}))


@pytest.mark.parametrize(
    ("query_string", "reason"),
    [
        ("prety", "request [/path] contains unrecognized parameter: [prety] -> did you mean [pretty]?"),
        ("deploy=true", "request [/path] contains unrecognized parameter: [deploy]"),
        ("zap&pretty&deploy", "request [/path] contains unrecognized parameters: [deploy], [zap]"),
        ("pretty=1", "Failed to parse value [1] as only [true] or [false] are allowed."),
        ("human=no", "Failed to parse value [no] as only [true] or [false] are allowed."),
        ("error_trace=x", "Failed to parse value [x] as only [true] or [false] are allowed."),
        ("filter_path=a," + "*" * 21, "A name in filter_path or _source may have 20 stars; one has 21"),
    ],
)
def test_unknown_parameters_and_bad_flags_are_refused_by_name(query_string: str, reason: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_query(scope(), query(scope(query_string)))
    assert refused.value.reason == reason


INTERFACE = {"_llm_interface": "openai/v1/chat/completions"}


@pytest.mark.parametrize(
    ("accept", "query_parameters", "model_parameters", "expected"),
    [
        (None, {}, {}, NDJSON),
        ("*/*", {}, {}, NDJSON),
        ("application/x-ndjson", {}, {}, NDJSON),
        ("text/event-stream", {}, {}, SSE),
        ("Text/Event-Stream; q=1", {}, {}, SSE),
        ("application/json, text/event-stream", {}, {}, SSE),
        ("application/x-ndjson, text/event-stream", {}, {}, SSE),
        ("application/json, application/x-ndjson", {}, {}, NDJSON),
        ("application/json", {}, {}, None),
        ("Application/JSON; charset=utf-8, application/json ", {}, {}, None),
        ("application/json, */*", {}, {}, NDJSON),
        (None, {}, INTERFACE, SSE),
        ("*/*", {}, INTERFACE, SSE),
        ("application/x-ndjson", {}, INTERFACE, NDJSON),
        ("application/json", {}, INTERFACE, None),
        (None, {"stream": "false"}, INTERFACE, None),
        ("text/event-stream", {"stream": "false"}, {}, None),
        ("application/json", {"stream": "true"}, {}, None),
        (None, {"stream": "true"}, {}, NDJSON),
        (None, {"stream": ""}, {}, NDJSON),
        (None, {"format": "sse"}, {}, SSE),
        (None, {"format": "json"}, INTERFACE, NDJSON),
        (None, {"format": "ndjson"}, INTERFACE, NDJSON),
        ("text/event-stream", {"format": "json"}, {}, NDJSON),
        ("application/json", {"format": "sse", "stream": "false"}, {}, SSE),
    ],
)
def test_the_client_chooses_the_format(
    accept: str | None,
    query_parameters: dict[str, str],
    model_parameters: dict[str, str],
    expected: WireFormat | None,
) -> None:
    scope: dict[str, Any] = {"headers": [] if accept is None else [(b"accept", accept.encode())]}
    assert wire_format(scope, query_parameters, model_parameters) is expected


@pytest.mark.parametrize("name", ["xml", "", "SSE"])
def test_an_unknown_format_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        wire_format({"headers": []}, {"format": name}, {})
    assert refused.value.reason == f"Unknown format [{name}]; use sse or json"
