"""`/profile` and `/stats`: what their paths and bodies ask the use cases for."""

from typing import Any

import pytest
from starlette.applications import Starlette

from opensearch_ml_stream.rest_handlers.application import rest_application
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyMemory
from opensearch_ml_stream.rest_handlers.resource_endpoint import Entry
from opensearch_ml_stream.rest_handlers.routes.monitoring import profile_routes, stats_routes
from tests.asgi_exchange import send_request
from tests.recording_gate import CALLER, RecordingGate
from tests.recording_services import RecordingProfiles, RecordingStats

BASE = "/_plugins/_ml"
BY_NODE = {"view": "node"}


@pytest.fixture
def profiles() -> RecordingProfiles:
    return RecordingProfiles()


@pytest.fixture
def stats() -> RecordingStats:
    return RecordingStats()


@pytest.fixture
def gate() -> RecordingGate:
    return RecordingGate()


@pytest.fixture
def application(profiles: RecordingProfiles, stats: RecordingStats, gate: RecordingGate) -> Starlette:
    entry = Entry(gate, BodyMemory(1000, 10_000))
    return rest_application([*profile_routes(profiles, entry), *stats_routes(stats, entry)])


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("/profile", {"return_all_models": True, "return_all_tasks": True}),
        ("/profile/models", {"return_all_models": True}),
        ("/profile/models/a,b", {"model_ids": ["a", "b"]}),
        ("/profile/tasks", {"return_all_tasks": True}),
        ("/profile/tasks/t", {"task_ids": ["t"]}),
    ],
)
async def test_the_path_of_a_profile_says_what_is_asked_for_unless_a_body_does(
    application: Starlette, profiles: RecordingProfiles, path: str, slash: str, asked: dict[str, Any]
) -> None:
    exchange = await send_request(application, "GET", BASE + path + slash)
    assert (exchange.status, exchange.json()) == (200, {"done": True})
    await send_request(application, "GET", BASE + path + slash, {})
    await send_request(application, "GET", BASE + path + slash + "?view=model", {"node_ids": ["n"]})
    assert profiles.calls == [
        ("profiles.get", asked, BY_NODE),
        ("profiles.get", asked, BY_NODE),
        ("profiles.get", {"node_ids": ["n"]}, {"view": "model"}),
    ]
    assert profiles.callers == [CALLER] * 3


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize(
    ("path", "names", "nodes"),
    [
        ("/stats", [], []),
        ("/stats/a,b", ["a", "b"], []),
        ("/n1,n2/stats", [], ["n1", "n2"]),
        ("/n1/stats/a", ["a"], ["n1"]),
    ],
)
async def test_the_path_of_stats_says_what_is_asked_for_unless_a_body_does(
    application: Starlette, stats: RecordingStats, path: str, slash: str, names: list[str], nodes: list[str]
) -> None:
    exchange = await send_request(application, "GET", BASE + path + slash)
    assert (exchange.status, exchange.json()) == (200, {"done": True})
    await send_request(application, "GET", BASE + path + slash, {"models": ["m"]})
    assert stats.calls == [("stats.named", names, nodes), ("stats.selected", {"models": ["m"]})]
    assert stats.callers == [CALLER] * 2


@pytest.mark.parametrize("path", ["/profile", "/profile/models/m", "/stats", "/n/stats/a"])
async def test_only_get_and_known_parameters_are_taken(application: Starlette, path: str) -> None:
    assert (await send_request(application, "POST", BASE + path)).status == 405
    exchange = await send_request(application, "GET", f"{BASE}{path}?zap=1")
    assert exchange.reason() == f"request [{BASE}{path}] contains unrecognized parameter: [zap]"


@pytest.mark.parametrize(("path", "action"), [("/profile", "profile/nodes"), ("/stats", "stats/nodes")])
async def test_both_need_the_action_that_ml_commons_has_for_them(
    application: Starlette, gate: RecordingGate, path: str, action: str
) -> None:
    await send_request(application, "GET", BASE + path)
    assert gate.asked == [("cluster:admin/opensearch/ml/" + action,)]
