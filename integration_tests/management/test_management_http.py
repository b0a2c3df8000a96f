"""How the management API reads requests and formats its responses, whatever they are about."""

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import pytest
from integration_tests.management.management_server import (
    CONNECTOR,
    SECRET,
    SETTINGS,
    Api,
    make_connector,
    management_api,
    open_test_registry,
    served,
)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from opensearch_ml_stream.plugin.store import Store
from opensearch_ml_stream.rest_handlers.http.exception_handlers import exception_handlers


@pytest.fixture
async def api(store: Store) -> AsyncIterator[Api]:
    async with management_api(open_test_registry(store)) as opened:
        yield opened


async def test_an_empty_or_wrong_body_is_refused_with_the_reason(api: Api) -> None:
    for method, path in (("POST", "/connectors/_create"), ("POST", "/models/_register"), ("PUT", "/models/x")):
        assert await api.refused(method, path) == (400, "request body is required")
    headers = {"Content-Type": "application/json"}
    for content in (
        '{"name":',
        '{"name": 1, "name": 2}',
        "[]",
        "{}{}",
        '{"name": "\\ud800"}',
        "[" * 15_000,
        b'{"name": "\xff"}',
    ):
        response = await api("POST", "/connectors/_create", content=content, headers=headers)
        assert response.status_code == 400, content[:20]


async def test_comments_in_a_body_are_skipped(api: Api) -> None:
    content = "/* mine */ " + json.dumps(CONNECTOR) + " // end"
    await api.ok("POST", "/connectors/_create", content=content, headers={"Content-Type": "application/json"})


async def test_a_body_in_many_pieces_is_one_request(api: Api) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for byte in json.dumps(CONNECTOR).encode():
            yield bytes([byte])

    await api.ok("POST", "/connectors/_create", content=pieces(), headers={"Content-Type": "application/json"})


async def test_a_body_beyond_the_limit_is_a_413_with_and_without_an_announced_length(api: Api) -> None:
    large = json.dumps({"name": "x" * SETTINGS.max_body_size})

    async def pieces() -> AsyncIterator[bytes]:
        yield large.encode()

    for content in (large, pieces()):
        headers = {"Content-Type": "application/json"}
        status, reason = await api.refused("POST", "/connectors/_create", content=content, headers=headers)
        assert status == 413 and str(SETTINGS.max_body_size) in reason


async def test_a_body_that_is_not_json_by_its_content_type_is_a_406(api: Api) -> None:
    response = await api("POST", "/connectors/_create", content="{}", headers={"Content-Type": "text/plain"})
    assert response.status_code == 406
    assert response.json() == {"error": "Content-Type header [text/plain] is not supported", "status": 406}


async def test_a_body_may_stand_in_the_query(api: Api) -> None:
    await make_connector(api)
    query = {"source": '{"query": {"match_all": {}}, "size": 0}', "source_content_type": "application/json"}
    response = await api.ok("GET", "/connectors/_search", params=query)
    assert (response["hits"]["total"]["value"], response["hits"]["hits"]) == (1, [])
    assert (await api.refused("GET", "/connectors/_search", params={"source": "{}"}))[0] == 400


async def test_responses_are_pretty_filtered_and_marked_and_errors_are_whole(api: Api) -> None:
    path = f"/connectors/{await make_connector(api)}"
    query = {"pretty": "", "human": "true", "error_trace": "true", "filter_path": "name,protocol"}
    good = await api("GET", path, params=query, headers={"X-Opaque-Id": "me"})
    assert good.text == '{\n  "name" : "c",\n  "protocol" : "http"\n}\n'
    assert good.headers["X-Opaque-Id"] == "me"
    assert good.headers["Content-Type"] == "application/json; charset=UTF-8"
    bad = await api("GET", "/models/nope?pretty&filter_path=status", headers={"X-Opaque-Id": "me"})
    assert (bad.status_code, list(bad.json())) == (404, ["error", "status"])
    assert bad.text.startswith('{\n  "error" : {\n')
    assert bad.headers["X-Opaque-Id"] == "me"


async def test_an_unknown_query_parameter_is_refused_by_name(api: Api) -> None:
    status, reason = await api.refused("GET", "/connectors/x?foo=1&pretty")
    assert status == 400
    assert reason == "request [/_plugins/_ml/connectors/x] contains unrecognized parameter: [foo]"
    assert (await api.refused("GET", "/connectors/x?pretty=maybe"))[0] == 400


async def test_unknown_paths_and_methods_get_opensearchs_own_responses(api: Api) -> None:
    unknown = await api("POST", "/connectors/x/_zap?pretty=false")
    assert unknown.status_code == 400
    text = "no handler found for uri [/_plugins/_ml/connectors/x/_zap?pretty=false] and method [POST]"
    assert unknown.json() == {"error": text}
    wrong = await api("PATCH", "/connectors/x")
    assert (wrong.status_code, wrong.headers["Allow"]) == (405, "DELETE, GET, PUT")
    text = "Incorrect HTTP method for uri [/_plugins/_ml/connectors/x] and method [PATCH], allowed: [DELETE, GET, PUT]"
    assert wrong.json() == {"error": text, "status": 405}


async def test_a_slash_at_the_end_of_a_path_does_not_matter(api: Api) -> None:
    connector_id = await make_connector(api)
    assert (await api.ok("GET", f"/connectors/{connector_id}/"))["name"] == "c"


async def test_an_unexpected_error_does_not_show_its_message() -> None:
    async def fail(request: Request) -> Response:
        raise RuntimeError(SECRET)

    app = Starlette(routes=[Route("/", fail)], exception_handlers=exception_handlers())
    async with served(app) as url, httpx.AsyncClient(verify=False) as http:
        response = await http.get(url)
    assert (response.status_code, response.json()["status"]) == (500, 500)
    assert SECRET not in response.text


@pytest.mark.parametrize("id", ["%2e%2e", "%2e"])
async def test_an_id_cannot_lead_out_of_its_index(api: Api, id: str) -> None:
    connector_id = await make_connector(api)
    assert (await api.refused("DELETE", f"/connectors/{id}"))[0] == 400
    assert (await api("GET", f"/connectors/{connector_id}")).status_code == 200


async def test_a_client_that_disconnects_in_the_middle_of_its_body_harms_no_other(api: Api) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", httpx.URL(api.url).port)
    head = "POST /_plugins/_ml/connectors/_create HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
    writer.write((head + "Content-Type: application/json\r\n\r\n{").encode())
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await api.ok("GET", "/connectors/_search"))["hits"]["total"]["value"] == 0


@pytest.mark.parametrize("depth", [320, 700])
async def test_a_search_nested_without_end_is_refused(api: Api, depth: int) -> None:
    content = '{"query":' + '{"bool":{"must":[' * depth + '{"match_all":{}}' + "]}}" * depth + "}"
    headers = {"Content-Type": "application/json"}
    status, reason = await api.refused("POST", "/models/_search", content=content, headers=headers)
    assert (status, reason) == (400, "The request body is nested too deeply")
