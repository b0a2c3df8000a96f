"""What an application responds to exceptions of its routes, and to paths and methods that it does not have."""

import re
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import MLStreamError, NotFound, Unavailable
from opensearch_ml_stream.rest_handlers.application import rest_application
from opensearch_ml_stream.rest_handlers.http.exception_handlers import (
    ONLY_THERE,
    exception_handlers,
    http_error,
    mlstream_error,
    only_in_ml_commons,
)
from opensearch_ml_stream.rest_handlers.http.responses import ERROR_FORM, plain_error_body
from tests.asgi_exchange import Exchange, send_request

DEFECT = {"type": "exception", "reason": "Internal error; the server's log says more"}


def raising(error: Exception) -> Starlette:
    async def fail(request: Request) -> Response:
        raise error

    return Starlette(routes=[Route("/", fail, methods=["GET"])], exception_handlers=exception_handlers())


@pytest.mark.parametrize("error", [NotFound("no such model"), Unavailable("away"), MLStreamError("x", type="y")])
async def test_an_error_of_ours_has_its_own_status_and_body(error: MLStreamError) -> None:
    exchange = await send_request(raising(error), "GET", "/")
    assert (exchange.status, exchange.json()) == (error.status, error.body())


async def test_a_defect_is_a_500_that_does_not_tell_what_happened() -> None:
    exchange = Exchange()
    with pytest.raises(RuntimeError, match="a prompt"):  # on its way to the server's log
        await exchange.run(raising(RuntimeError("a prompt")))
    assert (exchange.status, exchange.json()) == (500, {"error": {"root_cause": [DEFECT], **DEFECT}, "status": 500})


async def test_an_exception_that_is_not_ours_is_a_defect_for_each_handler() -> None:
    request = Request(Exchange().scope)
    assert (await mlstream_error(request, RuntimeError("a prompt"))).status_code == 500
    assert (await http_error(request, RuntimeError("a prompt"))).status_code == 400


async def test_a_client_that_disconnected_is_not_a_defect() -> None:
    exchange = await send_request(raising(ClientDisconnect()), "GET", "/")
    assert (exchange.status, exchange.body) == (400, b"")


@pytest.mark.parametrize("target", ["/nowhere", "/nowhere?pretty=false&a=b"])
async def test_a_path_that_is_not_there_has_no_handler(target: str) -> None:
    exchange = await send_request(raising(NotFound("never")), "PUT", target)
    assert exchange.status == 400
    assert exchange.json() == {"error": f"no handler found for uri [{target}] and method [PUT]"}


async def test_a_method_that_a_path_does_not_have_is_not_allowed() -> None:
    exchange = await send_request(raising(NotFound("never")), "DELETE", "/?pretty=false")
    text = "Incorrect HTTP method for uri [/?pretty=false] and method [DELETE], allowed: [{}]"
    allowed = exchange.headers["allow"]
    assert set(allowed.split(", ")) == {"GET", "HEAD"}
    assert (exchange.status, exchange.json()) == (405, {"error": text.format(allowed), "status": 405})


async def test_a_method_that_a_path_does_not_have_is_an_error_in_the_form_of_the_path() -> None:
    refused = raising(HTTPException(405, headers={"Allow": "POST"}))

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        await refused({**scope, ERROR_FORM: plain_error_body}, receive, send)

    exchange = await send_request(application, "GET", "/")
    text = "Incorrect HTTP method for uri [/] and method [GET], allowed: [POST]"
    assert (exchange.status, exchange.headers["allow"], exchange.json()) == (405, "POST", {"error": text})


async def test_a_refusal_without_the_allowed_methods_names_none() -> None:
    exchange = await send_request(raising(HTTPException(405)), "GET", "/")
    assert (exchange.status, exchange.headers["allow"]) == (405, "")
    assert exchange.json()["error"].endswith("allowed: []")


@pytest.mark.parametrize(("target", "allow"), [("/", {"GET", "HEAD"}), ("/nowhere", set())])
async def test_the_methods_of_a_path_are_what_options_asks_for(target: str, allow: set[str]) -> None:
    exchange = await send_request(raising(NotFound("never")), "OPTIONS", target, headers={"X-Opaque-Id": "me"})
    assert (exchange.status, exchange.body, exchange.headers["x-opaque-id"]) == (200, b"", "me")
    assert {name for name in exchange.headers.get("allow", "").split(", ") if name} == allow


BASE = "/_plugins/_ml"
PAGE = (Path(__file__).parents[3] / "docs" / "ml-commons.md").read_text("utf-8").partition("\n## Not there\n")[2]
NAMED = [
    re.sub(r"\{\w+\}", "x", path)
    for line in PAGE.splitlines()
    if "`test_exception_handlers.py`" in line
    for path in re.findall(r"`[A-Z, ]*(/[\w/{}]+)`", line)
]


def test_the_page_names_a_route_of_every_kind_and_none_that_is_there() -> None:
    sentences = [only_in_ml_commons(BASE + path) for path in NAMED]
    assert None not in sentences
    assert len(set(sentences)) == len(ONLY_THERE)


@pytest.mark.parametrize("path", [*NAMED, "/agents/", "/memory/m1/messages"])
async def test_a_route_that_only_ml_commons_has_says_so(path: str) -> None:
    exchange = await send_request(rest_application([]), "POST", BASE + path, {})
    assert exchange.status == 400
    text = exchange.json()["error"]
    assert text.startswith(f"no handler found for uri [{BASE}{path}] and method [POST]: ML Commons has ")
    assert text.endswith(", the sidecar does not; with --pass-through such requests go to the cluster")


@pytest.mark.parametrize("path", ["/agent", "/models/m1", "/models/m1/chunk", "/insights", "/_training", "/x/agents"])
def test_other_paths_are_not_ml_commons_alone(path: str) -> None:
    assert only_in_ml_commons(BASE + path) is None
    assert only_in_ml_commons("/agents") is None
