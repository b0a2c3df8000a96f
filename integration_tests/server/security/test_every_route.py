"""What holds for every route of the table, where nobody logs in: rules for browsers, and the limit of bodies."""

import gzip
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from integration_tests.server.security.http_rights import HttpPort, path_of
from integration_tests.server.security.rights import NOBODY
from integration_tests.server.shared_sidecars import MAX_BODY
from integration_tests.support.sidecars import Sidecar

EVIL = "http://evil.example"


@pytest.fixture(scope="module")
def routes(strict: Sidecar) -> list[str]:
    return HttpPort(strict.client).rows(NOBODY)


def ask(client: httpx.Client, route: str, **options: Any) -> httpx.Response:
    return client.request(route.split(" ")[0], path_of(route), **options)


@pytest.mark.parametrize(
    "headers",
    [{"Origin": EVIL}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}],
    ids=["origin", "sandboxed", "cross-site"],
)
def test_no_foreign_page_calls_any_route(strict: Sidecar, routes: list[str], headers: dict[str, str]) -> None:
    assert {ask(strict.client, route, headers=headers).status_code for route in routes} == {403}


def test_a_name_rebound_to_this_address_reaches_health_alone(strict: Sidecar, routes: list[str]) -> None:
    headers = {"Host": "evil.example"}
    served = {route for route in routes if ask(strict.client, route, headers=headers).status_code != 421}
    assert served == {route for route in routes if "health/" in route}


@pytest.mark.parametrize("form", ["whole", "chunked", "gzip"])
def test_no_route_reads_a_body_that_is_over_the_limit(strict: Sidecar, routes: list[str], form: str) -> None:
    def content() -> bytes | Iterator[bytes]:
        body = b'{"x":"' + b" " * MAX_BODY + b'"}'
        return iter([body]) if form == "chunked" else gzip.compress(body) if form == "gzip" else body

    headers = {"Content-Type": "application/json", **({"Content-Encoding": "gzip"} if form == "gzip" else {})}
    posts = [route for route in routes if route.startswith(("POST", "PUT"))]
    refused = {
        route for route in posts if ask(strict.client, route, content=content(), headers=headers).status_code == 413
    }
    assert refused == set(posts)
