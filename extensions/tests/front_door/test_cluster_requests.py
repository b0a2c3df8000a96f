"""Which requests go on to the cluster, for whom, and how its response comes back."""

from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.routing import Match, Route
from starlette.types import Scope

from opensearch_ml_stream.connectors.errors import Forbidden, Unauthorized
from opensearch_ml_stream.extensions.front_door.cluster_requests import ClusterRequests
from opensearch_ml_stream.rest_handlers.application import rest_application
from opensearch_ml_stream.rest_handlers.base_path import Paths
from opensearch_ml_stream.rest_handlers.callers import OpenGate
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory
from opensearch_ml_stream.rest_handlers.resource_endpoint import Entry, Operation, ParsedRequest, resource_routes
from opensearch_ml_stream.rest_handlers.routes.health_and_metrics import operation_routes
from tests.asgi_exchange import SECURITY_HEADERS, Exchange, send_request
from tests.front_door.scripted_cluster import PassingRecordingGate, ScriptedCluster

BASE = "/_plugins/_ml"
AS_IT_IS = {"content-type": "application/json", "vary": "Accept", "Referrer-Policy": "origin"}

PATHS = Paths(("/v2", "/generate-stream", "/_ui"))


@pytest.fixture
def cluster() -> ScriptedCluster:
    return ScriptedCluster()


@pytest.fixture
def gate() -> PassingRecordingGate:
    return PassingRecordingGate()


@pytest.fixture
def application(cluster: ScriptedCluster, gate: PassingRecordingGate) -> Starlette:
    async def get(request: ParsedRequest) -> dict[str, str]:
        """Get a thing."""
        return {"of": "sidecar"}

    async def ping() -> None:
        return

    requests = ClusterRequests(cast(Any, cluster), gate)
    things = {"GET": Operation(get, "things/get")}
    routes = [
        *resource_routes("/things/{id}", things, Entry(gate, BodyMemory(1000, 10_000), requests)),
        *resource_routes("/own/{id}", things, Entry(gate, BodyMemory(1000, 10_000))),
        *operation_routes(ping, bytes, "1.2.3", OpenGate(), requests),
    ]
    return rest_application(routes, PATHS, other_server=requests)


@pytest.mark.parametrize(
    "line",
    [
        "GET /", "HEAD /", "PUT /", "POST /", "OPTIONS /",
        "GET /index/_search?q=a%20b", "PUT /index", "DELETE /a,b", "POST /_bulk",
        "HEAD /index/_doc/1", "OPTIONS /index", "GET /metrics/_search", "GET /_cat/indices", "GET /_healthy",
        "PATCH /_plugins/_x", "GET /v2x",
        f"GET {BASE}/tools", f"POST {BASE}/agents/_register", f"POST {BASE}/_train/kmeans",
        f"POST {BASE}/agents/a/_execute/stream", f"POST {BASE}/things/a", f"HEAD {BASE}/things/a",
    ],
)  # fmt: skip
async def test_what_is_not_the_sidecars_goes_on_as_it_came(
    application: Starlette, cluster: ScriptedCluster, line: str
) -> None:
    method, target = line.split(" ")
    exchange = await send_request(application, method, target, b"\x00body", {"x-opaque-id": "1"})
    path, _, query = target.partition("?")
    (sent,) = cluster.sent
    assert (sent.method, sent.path, sent.query, sent.body) == (method, path, query, b"\x00body")
    assert sent.headers == {"content-type": "application/json", "x-opaque-id": "1"}
    assert (exchange.status, exchange.headers, exchange.json()) == (200, AS_IT_IS, {"of": "cluster"})


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET /_health/live", 200), ("GET /metrics", 200), ("POST /metrics", 405), ("GET /_health/x", 400),
        ("GET /_health", 400), ("GET /_ui/x", 400), ("GET /v2/x", 400), ("GET /generate-stream", 400),
        (f"GET {BASE}/things/a", 200), (f"OPTIONS {BASE}/things/a", 200), (f"POST {BASE}/own/a", 405),
    ],
)  # fmt: skip
async def test_what_is_the_sidecars_never_goes_on(
    application: Starlette, cluster: ScriptedCluster, line: str, status: int
) -> None:
    method, target = line.split(" ")
    exchange = await send_request(application, method, target)
    assert (exchange.status, cluster.sent) == (status, [])


@pytest.mark.parametrize(("error", "status"), [(Unauthorized(), 401), (Forbidden("no"), 403)])
@pytest.mark.parametrize("line", ["GET /", "POST /index/_search", f"POST {BASE}/things/a"])
async def test_the_gate_says_who_may_and_what_goes_on_of_the_headers(
    cluster: ScriptedCluster, line: str, error: Unauthorized | Forbidden, status: int
) -> None:
    method, target = line.split(" ")
    for raised in (None, error):
        gate = PassingRecordingGate(raised)
        application = ClusterRequests(cast(Any, cluster), gate)
        exchange = await send_request(application, method, target, headers={"authorization": "Bearer k", "a": "b"})
        assert exchange.status == (200 if raised is None else status)
        assert gate.asked == [("pass",)]
    assert [sent.headers for sent in cluster.sent] == [{"a": "b"}]


@pytest.mark.parametrize(
    "headers", [{"origin": "http://sidecar"}, {"sec-fetch-site": "same-origin"}, {"accept": "text/html,*/*"}]
)
async def test_a_browser_is_told_the_sidecars_security_headers_too(
    application: Starlette, headers: dict[str, str]
) -> None:
    exchange = await send_request(application, "GET", "/index", headers=headers)
    assert exchange.headers == {"content-type": "application/json", "vary": "Accept", **SECURITY_HEADERS}


async def test_nothing_but_a_request_goes_on(application: Starlette, cluster: ScriptedCluster) -> None:
    exchange = Exchange("GET", "/index")
    exchange.scope["type"] = "websocket"
    await exchange.run(application)
    assert cluster.sent == []


async def test_requests_of_the_cluster_are_not_looked_for_among_the_routes(
    cluster: ScriptedCluster, gate: PassingRecordingGate
) -> None:
    looked_for: list[str] = []

    class Watched(Route):
        def matches(self, scope: Scope) -> tuple[Match, Scope]:
            looked_for.append(scope["path"])
            return super().matches(scope)

    requests = ClusterRequests(cast(Any, cluster), gate)
    application = rest_application([Watched("/metrics", requests)], PATHS, other_server=requests)
    for path in ("/index/_search", "/metrics-2", "/metrics", f"{BASE}/agents/a"):
        await send_request(application, "POST", path)
    assert looked_for == ["/metrics", f"{BASE}/agents/a"]
    assert len(cluster.sent) == 4


def test_no_route_may_be_where_requests_go_on() -> None:
    with pytest.raises(ValueError, match="Requests for /page would go on to another server"):
        rest_application([Route("/page", OpenGate)])
