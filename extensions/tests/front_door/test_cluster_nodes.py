"""`/profile` and `/stats` with the cluster's nodes beside the sidecar's."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from starlette.applications import Starlette

from opensearch_ml_stream.connectors.errors import Forbidden, MLStreamError, Unavailable
from opensearch_ml_stream.extensions.front_door import cluster_nodes
from opensearch_ml_stream.extensions.front_door.cluster_nodes import ClusterNodes, merged
from opensearch_ml_stream.rest_handlers.application import rest_application
from opensearch_ml_stream.rest_handlers.callers import OpenGate, Scope
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory
from opensearch_ml_stream.rest_handlers.resource_endpoint import Entry
from opensearch_ml_stream.rest_handlers.routes.monitoring import profile_routes, stats_routes
from tests.asgi_exchange import send_request
from tests.front_door.scripted_cluster import ScriptedCluster
from tests.recording_services import RecordingProfiles, RecordingStats

BASE = "/_plugins/_ml"
OWN = {"done": True}


def application(cluster: Any) -> Starlette:
    entry = Entry(OpenGate(), BodyMemory(1000, 10_000))
    nodes = ClusterNodes(cluster)
    return rest_application(
        [
            *profile_routes(RecordingProfiles(), entry, nodes),
            *stats_routes(RecordingStats(), entry, nodes),
        ]
    )


@pytest.mark.parametrize(
    ("target", "asked"),
    [
        ("/profile", "/profile"), ("/profile/models/a,b?view=model&pretty=true", "/profile/models/a,b?view=model"),
        ("/profile/tasks/", "/profile/tasks/"), ("/profile/models/ü b", "/profile/models/%C3%BC%20b"),
        ("/stats?filter_path=n*", "/stats"), ("/n1/stats/x", "/n1/stats/x"),
    ],
)  # fmt: skip
async def test_the_cluster_is_asked_the_same_and_its_nodes_are_added(target: str, asked: str) -> None:
    cluster = ScriptedCluster(response={"nodes": {"n1": {"a": 1}}, "done": False})
    exchange = await send_request(application(cluster), "GET", BASE + target)
    assert exchange.json() == ({"nodes": {"n1": {"a": 1}}} | ({} if "filter_path" in target else OWN))
    assert cluster.fetched == [(BASE + asked, b"")]


async def test_a_body_that_selects_is_sent_to_the_cluster_too() -> None:
    cluster = ScriptedCluster()
    await send_request(application(cluster), "GET", BASE + "/stats", {"models": ["m"]})
    await send_request(application(cluster), "GET", BASE + "/profile", {"node_ids": ["n"]})
    assert cluster.fetched == [(f"{BASE}/stats", b'{"models":["m"]}'), (f"{BASE}/profile", b'{"node_ids":["n"]}')]


@pytest.mark.parametrize(
    "cluster",
    [
        ScriptedCluster(403), ScriptedCluster(400, {"error": "no handler found"}), ScriptedCluster(200, b"not JSON"),
        ScriptedCluster(200, []), ScriptedCluster(error=Unavailable("down")), ScriptedCluster(error=Forbidden("no")),
    ],
)  # fmt: skip
async def test_a_cluster_that_refuses_or_says_nothing_leaves_the_sidecars_alone(cluster: ScriptedCluster) -> None:
    for path in ("/profile", "/stats"):
        exchange = await send_request(application(cluster), "GET", BASE + path)
        assert (exchange.status, exchange.json()) == (200, OWN)


async def test_a_cluster_that_does_not_respond_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    class SilentCluster:
        async def fetch(self, scope: Scope, path: str, body: bytes = b"") -> tuple[int, bytes]:
            await asyncio.Event().wait()
            raise MLStreamError("never")

    monkeypatch.setattr(cluster_nodes, "WAIT_SECONDS", 0.01)
    exchange = await send_request(application(SilentCluster()), "GET", BASE + "/stats")
    assert exchange.json() == OWN


@pytest.mark.parametrize(
    ("own", "other", "both"),
    [
        ({"a": 1}, {"a": 2, "b": 3}, {"a": 1, "b": 3}),
        ({"nodes": {"s": {"x": 1}}}, {"nodes": {"n": {"x": 2}}}, {"nodes": {"s": {"x": 1}, "n": {"x": 2}}}),
        ({"w": ["s"]}, {"w": ["n", "s"]}, {"w": ["s", "n"]}),
        ({"a": {"b": 1}}, {"a": [1]}, {"a": {"b": 1}}),
        ({}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
)
def test_of_what_both_have_the_sidecars_counts(
    own: Mapping[str, Any], other: Mapping[str, Any], both: Mapping[str, Any]
) -> None:
    assert merged(own, other) == both
