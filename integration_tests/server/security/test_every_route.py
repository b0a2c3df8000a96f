"""What holds for every route of the table, where nobody logs in: rules for browsers, and the limit of bodies."""

import gzip
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from integration_tests.server.security.http_rights import HttpPort, path_of
from integration_tests.server.security.rights import NOBODY
from integration_tests.support.sidecars import Sidecar, running_sidecar

MAX_BODY = 65_536
SETTINGS = {
    "opensearch_ml_stream.max_body_size": str(MAX_BODY),
    "opensearch_ml_stream.generate_stream_model": "none-such",
}
EVIL = "http://evil.example"


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    with running_sidecar(tmp_path_factory.mktemp("surface"), settings=SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def routes(sidecar: Sidecar) -> list[str]:
    return HttpPort(sidecar.client).rows(NOBODY)


def ask(client: httpx.Client, route: str, **options: Any) -> httpx.Response:
    return client.request(route.split(" ")[0], path_of(route), **options)


@pytest.mark.parametrize(
    "headers",
    [{"Origin": EVIL}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}],
    ids=["origin", "sandboxed", "cross-site"],
)
def test_no_foreign_page_calls_any_route(sidecar: Sidecar, routes: list[str], headers: dict[str, str]) -> None:
    assert {ask(sidecar.client, route, headers=headers).status_code for route in routes} == {403}


def test_a_name_rebound_to_this_address_reaches_health_alone(sidecar: Sidecar, routes: list[str]) -> None:
    headers = {"Host": "evil.example"}
    served = {route for route in routes if ask(sidecar.client, route, headers=headers).status_code != 421}
    assert served == {route for route in routes if "health/" in route}


@pytest.mark.parametrize("form", ["whole", "chunked", "gzip"])
def test_no_route_reads_a_body_that_is_over_the_limit(sidecar: Sidecar, routes: list[str], form: str) -> None:
    def content() -> bytes | Iterator[bytes]:
        body = b'{"x":"' + b" " * MAX_BODY + b'"}'
        return iter([body]) if form == "chunked" else gzip.compress(body) if form == "gzip" else body

    headers = {"Content-Type": "application/json", **({"Content-Encoding": "gzip"} if form == "gzip" else {})}
    posts = [route for route in routes if route.startswith(("POST", "PUT"))]
    refused = {
        route for route in posts if ask(sidecar.client, route, content=content(), headers=headers).status_code == 413
    }
    assert refused == set(posts)
