"""What all management routes share: bodies, ids, query parameters, and the shape of the response."""

import json
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, MLStreamError, Unauthorized
from opensearch_ml_stream.rest_handlers.application import rest_application
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory
from opensearch_ml_stream.rest_handlers.resource_endpoint import (
    Entry,
    Operation,
    ParsedRequest,
    RequestBody,
    resource_routes,
)
from tests.asgi_exchange import JSON_HEADERS, Exchange, send_request
from tests.recording_gate import RecordingGate

PATH = "/_plugins/_ml/things"
LIMIT = 100_000


class Things:
    """An application of one path in which each operation notes its request and returns its body."""

    def __init__(self, response: Any = None, refusal: MLStreamError | None = None) -> None:
        self.requests: list[ParsedRequest] = []
        operations = {
            "GET": Operation(self._handle, "get", RequestBody.OPTIONAL, frozenset({"flag"})),
            "PUT": Operation(self._handle, "put", RequestBody.REQUIRED),
            "POST": Operation(self._handle, "post", RequestBody.REQUIRED),
            "DELETE": Operation(self._handle, "delete"),
        }
        self._response = response
        self.gate = RecordingGate(refusal)
        entry = Entry(self.gate, BodyMemory(LIMIT, 10 * LIMIT))
        self.application = rest_application(resource_routes("/things/{id}", operations, entry))

    async def _handle(self, request: ParsedRequest) -> dict[str, Any]:
        self.requests.append(request)
        if isinstance(self._response, Exception):
            raise self._response
        return {"body": request.body}


async def put(body: object, headers: dict[str, str] | None = None) -> Exchange:
    return await send_request(Things().application, "PUT", PATH + "/1", body, headers)


async def test_a_request_is_parsed_into_path_query_and_body() -> None:
    things = Things()
    exchange = await send_request(things.application, "GET", PATH + "/1?flag=true&pretty=false", {"a": 1})
    assert exchange.json() == {"body": {"a": 1}}
    (request,) = things.requests
    assert (request.id, request.path, request.body) == ("1", {"id": "1"}, {"a": 1})
    assert request.query == {"flag": "true", "pretty": "false"}
    assert request.dashboards is False
    assert (request.flag("flag"), request.flag("pretty"), request.flag("absent")) == (True, False, False)


@pytest.mark.parametrize(
    ("content", "reason", "type"),
    [
        (b"", "request body is required", "parse_exception"),
        (b" \n", "request body is required", "parse_exception"),
        (b"[]", "The request body must be a JSON object", "parse_exception"),
        (b'{"a":', "The request body is not JSON: Expecting value at line 1, column 6", "json_e_o_f_exception"),
        (b'{"a": 1, "a": 2}', "Duplicate field 'a'", "json_parse_exception"),
        (b'{"a": "\xff"}', "The request body is not UTF-8 at byte 7", "parse_exception"),
        (b'{"a": "\\ud800"}', "The request body holds half of a surrogate pair", "parse_exception"),
        (b"[" * 20_000, "The request body is nested too deeply", "json_parse_exception"),
        (b'{"a":' * 15_000, "The request body is nested too deeply", "json_parse_exception"),
    ],
    ids=["empty", "blank", "array", "cut", "twice", "bytes", "surrogate", "deep arrays", "deep objects"],
)
async def test_a_body_that_cannot_be_used_is_refused_with_the_reason(content: bytes, reason: str, type: str) -> None:
    exchange = await put(content, JSON_HEADERS)
    assert (exchange.status, exchange.reason(), exchange.json()["error"]["type"]) == (400, reason, type)


async def test_a_body_that_is_nested_too_deeply_to_be_written_is_refused() -> None:
    def nested(depth: int) -> bytes:
        return b'{"a":' * depth + b"1" + b"}" * depth

    statuses = {(await put(nested(depth))).status for depth in (10, 300, *range(800, 1000, 5), 16_000)}
    assert statuses == {200, 400}


async def test_an_operation_that_needs_more_depth_than_the_parser_refuses_the_body() -> None:
    exchange = await send_request(Things(RecursionError()).application, "PUT", PATH + "/1", {"a": 1})
    assert (exchange.status, exchange.reason()) == (400, "The request body is nested too deeply")


async def test_comments_and_what_follows_the_object_are_skipped() -> None:
    exchange = await put(b'/* mine */ {"a": 1} }', JSON_HEADERS)
    assert exchange.json() == {"body": {"a": 1}}


@pytest.mark.parametrize("method", ["PUT", "GET"])
@pytest.mark.parametrize("content_type", ["text/plain", ""])
async def test_a_body_that_is_not_json_by_its_content_type_is_not_acceptable(method: str, content_type: str) -> None:
    things = Things()
    exchange = await Exchange(method, PATH + "/1", b"{}", {"content-type": content_type}).run(things.application)
    assert (exchange.status, things.requests) == (406, [])
    assert exchange.json() == {"error": f"Content-Type header [{content_type}] is not supported", "status": 406}


async def test_an_operation_without_a_body_ignores_what_it_is_sent() -> None:
    things = Things()
    exchange = await send_request(things.application, "DELETE", PATH + "/1", b"what", {"content-type": "text/plain"})
    assert (exchange.status, things.requests[0].body) == (200, {})


async def test_a_body_in_pieces_and_one_beyond_the_limit() -> None:
    pieces = [b'{"a"', b": ", b"1}"]
    exchange = await Exchange("PUT", PATH + "/1", pieces, JSON_HEADERS).run(Things().application)
    assert exchange.json() == {"body": {"a": 1}}
    exchange = await put({"a": "x" * LIMIT})
    assert (exchange.status, exchange.json()["error"]["type"]) == (413, "content_too_long_exception")


async def test_a_client_that_disconnects_within_its_body_changes_nothing() -> None:
    things = Things()
    exchange = await Exchange("PUT", PATH + "/1", b"{}", JSON_HEADERS, cut=True).run(things.application)
    assert (exchange.status, exchange.body, things.requests) == (400, b"", [])


@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_a_body_may_be_in_the_query(method: str) -> None:
    source = "source=%7B%22a%22%3A%22%C3%BC%22%7D&source_content_type="
    exchange = await send_request(Things().application, method, f"{PATH}/1?{source}application/json")
    assert exchange.json() == {"body": {"a": "ü"}}
    for query in (source + "text/plain", "source=%7B%7D"):
        exchange = await send_request(Things().application, method, f"{PATH}/1?{query}")
        assert exchange.status == 400
        assert exchange.reason() == (
            "The parameter [source] needs [source_content_type], and it must be application/json"
        )


@pytest.mark.parametrize("content_type", ["", "application/x-www-form-urlencoded", "text/plain", "multipart/form-data"])
async def test_a_post_that_any_web_page_can_send_has_no_body_in_its_query(content_type: str) -> None:
    things = Things()
    target = PATH + "/1?source=%7B%22a%22%3A1%7D&source_content_type=application/json"
    headers = {"content-type": content_type} if content_type else {}
    exchange = await send_request(things.application, "POST", target, headers=headers)
    assert (exchange.status, things.requests) == (406, [])
    exchange = await send_request(things.application, "POST", target, headers=JSON_HEADERS)
    assert (exchange.status, exchange.json()) == (200, {"body": {"a": 1}})


async def test_a_body_of_its_own_comes_before_one_in_the_query() -> None:
    target = PATH + "/1?source=%7B%22a%22%3A2%7D&source_content_type=application/json"
    assert (await send_request(Things().application, "PUT", target, {"a": 1})).json() == {"body": {"a": 1}}


@pytest.mark.parametrize("id", [".", ".."])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_an_id_cannot_lead_out_of_its_index(method: str, id: str) -> None:
    things = Things()
    exchange = await send_request(things.application, method, f"{PATH}/{id}", {"a": 1})
    assert (exchange.status, exchange.reason(), things.requests) == (400, "An id cannot be [.] or [..]", [])
    assert (await send_request(things.application, "GET", PATH + "/...")).status == 200


async def test_the_response_is_pretty_and_filtered_and_has_the_opaque_id() -> None:
    headers = {"X-Opaque-Id": "me"}
    target = PATH + "/1?pretty&filter_path=body.a&human=true"
    exchange = await send_request(Things().application, "PUT", target, {"a": 1, "b": 2}, headers)
    assert exchange.body == b'{\n  "body" : {\n    "a" : 1\n  }\n}\n'
    assert (exchange.headers["x-opaque-id"], exchange.headers["content-type"]) == (
        "me",
        "application/json; charset=UTF-8",
    )
    exchange = await send_request(Things().application, "PUT", PATH + "/1?filter_path=status", b"[]", headers)
    assert (exchange.status, list(json.loads(exchange.body)), exchange.headers["x-opaque-id"]) == (
        400,
        ["error", "status"],
        "me",
    )


async def test_patterns_that_are_refused_are_refused_before_anything_is_done() -> None:
    things = Things()
    exchange = await send_request(things.application, "PUT", PATH + "/1?filter_path=" + "*" * 21, {"a": 1})
    assert (exchange.status, things.requests) == (400, [])


async def test_a_defect_is_a_500_that_does_not_tell_what_happened() -> None:
    exchange = Exchange("GET", PATH + "/1")
    with pytest.raises(RuntimeError):
        await exchange.run(Things(RuntimeError("a secret")).application)
    assert exchange.status == 500 and b"secret" not in exchange.body


async def test_the_gate_is_asked_for_the_action_before_the_body_is_read() -> None:
    things = Things(refusal=Forbidden("no permissions", type="security_exception"))
    exchange = await send_request(things.application, "PUT", PATH + "/1", b"no JSON at all")
    assert (exchange.status, exchange.json()["error"]["type"]) == (403, "security_exception")
    assert (things.gate.asked, things.requests) == ([("put",)], [])


async def test_an_unknown_caller_gets_the_error_body_of_opensearch_and_a_challenge() -> None:
    exchange = await send_request(Things(refusal=Unauthorized()).application, "GET", PATH + "/1")
    assert (exchange.status, exchange.json()) == (401, Unauthorized().body())
    assert exchange.headers["content-type"] == "application/json; charset=UTF-8"
    assert exchange.headers["www-authenticate"].startswith("Basic realm=")
