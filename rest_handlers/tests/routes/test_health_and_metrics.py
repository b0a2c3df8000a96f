"""Health, metrics and the root, as an operator's tools call them."""

import asyncio

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, Unauthorized, Unavailable
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.application import rest_application
from opensearch_ml_stream.rest_handlers.callers import Gate, OpenGate
from opensearch_ml_stream.rest_handlers.routes.health_and_metrics import operation_routes
from tests.asgi_exchange import Exchange, send_request
from tests.recording_gate import RecordingGate
from tests.virtual_time import in_virtual_time

HERE, AWAY = ("127.0.0.1", 4000), ("192.0.2.7", 4000)
REFUSED = Forbidden("no permissions", type="security_exception")


async def ask(
    target: str,
    method: str = "GET",
    store_error: Exception | None = None,
    gate: Gate = RecordingGate(),  # noqa: B008  # nothing is read from it
    client: tuple[str, int] | None = AWAY,
) -> Exchange:
    async def ping() -> None:
        if store_error is not None:
            raise store_error

    routes = operation_routes(ping, lambda: b"mlstream_streams_open 1.0\n", "1.2.3", gate)
    exchange = Exchange(method, target, headers={"X-Opaque-Id": "me"})
    exchange.scope["client"] = client
    await exchange.run(rest_application(routes))
    return exchange


@pytest.mark.parametrize(
    ("target", "body"),
    [
        ("/_health/live", {"status": "live"}),
        ("/_health/ready", {"status": "ready"}),
    ],
)
async def test_an_operator_gets_one_object(target: str, body: dict[str, str]) -> None:
    exchange = await ask(target)
    assert (exchange.status, exchange.json(), exchange.headers["x-opaque-id"]) == (200, body, "me")


async def test_the_root_has_all_that_the_clients_of_opensearch_require_of_one() -> None:
    root = (await ask("/")).json()
    version = root.pop("version")
    assert root == {
        "name": "opensearch-ml-stream",
        "cluster_name": "opensearch-ml-stream",
        "cluster_uuid": "_na_",
        "sidecar_version": "1.2.3",
        "tagline": "Streaming predictions for OpenSearch",
    }
    # What InfoResponse of opensearch-java and InfoResp of opensearch-go read.
    texts = (
        "build_date build_hash build_type distribution lucene_version minimum_index_compatibility_version "
        "minimum_wire_compatibility_version number"
    )
    assert {name: type(value) for name, value in version.items()} == {
        **dict.fromkeys(texts.split(), str),
        "build_snapshot": bool,
    }
    assert (version["distribution"], version["number"]) == ("opensearch", "3.6.0")


async def test_while_the_store_is_away_the_sidecar_is_live_but_not_ready() -> None:
    error = Unavailable("The store does not respond")
    exchange = await ask("/_health/ready", store_error=error)
    assert (exchange.status, exchange.json()) == (503, error.body())
    assert (await ask("/_health/live", store_error=error)).status == 200


@in_virtual_time
async def test_a_store_that_hangs_is_told_within_two_seconds() -> None:
    async def ping() -> None:
        await asyncio.sleep(1000)

    exchange = await send_request(
        rest_application(operation_routes(ping, bytes, "1.2.3", OpenGate())), "GET", "/_health/ready"
    )
    assert (exchange.status, exchange.reason()) == (503, "The store did not respond within 1.5 s")
    assert exchange.send_times[0] < 2


async def test_metrics_are_prometheus_text() -> None:
    exchange = await ask("/metrics")
    assert (exchange.status, exchange.body) == (200, b"mlstream_streams_open 1.0\n")
    assert exchange.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


@pytest.mark.parametrize("target", ["/_health/live/", "/metrics/", "/_health"])
async def test_no_client_is_sent_elsewhere(target: str) -> None:
    exchange = await ask(target)
    assert (exchange.status, exchange.json()) == (
        400,
        {"error": f"no handler found for uri [{target}] and method [GET]"},
    )


@pytest.mark.parametrize("target", ["/", "/_health/live", "/_health/ready", "/metrics"])
async def test_operations_are_got(target: str) -> None:
    exchange = await ask(target, "POST")
    assert (exchange.status, set(exchange.headers["allow"].split(", "))) == (405, {"GET", "HEAD"})
    assert (await ask(target, "HEAD")).status == 200


@pytest.mark.parametrize("target", ["/_health/live", "/_health/ready"])
async def test_everyone_may_ask_for_the_health(target: str) -> None:
    assert (await ask(target, gate=RecordingGate(REFUSED))).status == 200


async def test_metrics_need_a_permission_unless_they_are_asked_for_on_this_machine() -> None:
    gate = RecordingGate(REFUSED)
    assert (await ask("/metrics", gate=gate)).status == 403
    assert gate.asked == [(actions.METRICS_GET,)]
    assert (await ask("/metrics", gate=gate, client=HERE)).status == 200
    assert (await ask("/metrics", gate=gate, client=None)).status == 403


async def test_the_version_needs_no_more_than_a_login() -> None:
    gate = RecordingGate()
    await ask("/", gate=gate)
    assert gate.asked == [()]
    assert (await ask("/", gate=RecordingGate(Unauthorized()))).status == 401


async def test_why_the_store_does_not_respond_is_for_operators() -> None:
    error = Unavailable("http://secret-host:9200 refused the connection")
    ready = "/_health/ready"
    stranger = await ask(ready, store_error=error, gate=RecordingGate(REFUSED))
    assert (stranger.status, stranger.reason()) == (503, "The store does not respond")
    assert (await ask(ready, store_error=error, gate=RecordingGate(REFUSED), client=HERE)).reason() == error.reason
    assert (await ask(ready, store_error=error)).reason() == error.reason


@pytest.mark.parametrize(
    ("method", "accept", "page", "status"),
    [
        ("GET", "text/html,application/xhtml+xml,*/*;q=0.8", "_ui/", 302),
        ("GET", "text/html", "", 200),
        ("GET", "*/*", "_ui/", 200),
        ("GET", "application/json", "_ui/", 200),
        ("HEAD", "text/html", "_ui/", 200),
    ],
)
async def test_a_browser_is_sent_to_the_page_that_there_is(method: str, accept: str, page: str, status: int) -> None:
    async def ping() -> None:
        return

    routes = operation_routes(ping, bytes, "1.2.3", OpenGate(), page=page)
    exchange = await send_request(rest_application(routes), method, "/", headers={"accept": accept})
    assert exchange.status == status
    assert exchange.headers.get("location") == ("_ui/" if status == 302 else None)


async def test_what_a_server_that_is_ready_cannot_do_is_for_operators() -> None:
    async def ping() -> None:
        pass

    routes = operation_routes(ping, bytes, "1.2.3", RecordingGate(REFUSED), problems=lambda: (None, "The disk is full"))
    seen = []
    for client in (HERE, AWAY):
        exchange = Exchange("GET", "/_health/ready")
        exchange.scope["client"] = client
        await exchange.run(rest_application(routes))
        seen.append((exchange.status, exchange.json()))
    assert seen == [(200, {"status": "ready", "details": ["The disk is full"]}), (200, {"status": "ready"})]
