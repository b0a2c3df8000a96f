"""The cluster's settings over those of file and environment, under those of the sidecar alone."""

import logging

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.settings.dynamic import (
    REFUSED_LOOKS,
    ClusterSettings,
    DynamicSettings,
    refresh_settings,
)
from opensearch_ml_stream.plugin.store import Document, Index
from tests.registry.registry_setup import FakeCluster, StoreInCluster, closing

REMOTE = "plugins.ml_commons.remote_inference.enabled"
TASKS = "plugins.ml_commons.max_batch_inference_tasks"
ENDPOINTS = "plugins.ml_commons.trusted_connector_endpoints_regex"


async def test_a_setting_of_the_cluster_beats_the_file_and_is_beaten_by_the_sidecars_own() -> None:
    async with closing(StoreInCluster(":memory:")) as store:
        live = LiveSettings(Settings(max_batch_inference_tasks=5))
        own = DynamicSettings(store, live, lambda: 0)
        follower = ClusterSettings(store.cluster, live)
        store.cluster.changed_settings = {TASKS: "7", REMOTE: "false"}
        await refresh_settings(store, live, follower)
        assert (live.current.max_batch_inference_tasks, live.current.remote_inference_enabled) == (7, False)
        assert (own.defaults()[TASKS], own.defaults()[REMOTE]) == (7, False)
        await own.change({"persistent": {TASKS: 8}})
        assert (live.current.max_batch_inference_tasks, live.current.remote_inference_enabled) == (8, False)
        store.cluster.changed_settings = {}
        await own.change({"persistent": {TASKS: None}})
        await refresh_settings(store, live, follower)
        assert live.current == live.at_start


async def test_a_list_is_taken_and_what_the_sidecar_does_not_know_or_cannot_change_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    live = LiveSettings(Settings())
    values: dict[str, object] = {ENDPOINTS: ["^https://a\\.example/.*$"]}
    other: dict[str, object] = {"plugins.ml_commons.task_dispatch_policy": "least_load"}
    final: dict[str, object] = {"plugins.ml_commons.connector.restricted_ip_patterns": ["x"]}
    read = await ClusterSettings(FakeCluster(changed_settings={**values, **other, **final}), live).read()
    assert read.trusted_connector_endpoints_regex == ("^https://a\\.example/.*$",)
    assert read.restricted_ip_patterns == () and caplog.messages == []


async def test_a_value_that_the_sidecar_cannot_take_is_named_once_and_stops_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    live = LiveSettings(Settings())
    follower = ClusterSettings(FakeCluster(changed_settings={TASKS: "many", REMOTE: "false"}), live)
    for _ in range(3):
        live.of_cluster = await follower.read()
    assert live.of_cluster.remote_inference_enabled is False
    [message] = caplog.messages
    assert message.startswith(f"The cluster's setting {TASKS} is not followed: ")


async def test_a_cluster_that_refuses_is_asked_rarely_and_what_is_known_stays(caplog: pytest.LogCaptureFixture) -> None:
    live, cluster = LiveSettings(Settings()), FakeCluster(changed_settings={TASKS: "7"})
    follower = ClusterSettings(cluster, live)
    live.of_cluster = await follower.read()
    cluster.refusal = Forbidden("it needs the permission p")
    with caplog.at_level(logging.WARNING):
        for _ in range(2 * REFUSED_LOOKS):
            live.of_cluster = await follower.read()
    assert caplog.messages == ["Settings changed in the cluster are not followed: it needs the permission p"]
    assert live.of_cluster.max_batch_inference_tasks == 7
    cluster.refusal, cluster.changed_settings = None, {TASKS: "9"}
    for _ in range(REFUSED_LOOKS + 1):
        live.of_cluster = await follower.read()
    assert live.of_cluster.max_batch_inference_tasks == 9


async def test_a_setting_that_is_shown_is_in_force() -> None:
    """A reader between the two reads, of the cluster and of the store, sees neither half of a change."""
    async with closing(StoreInCluster(":memory:")) as store:
        live = LiveSettings(Settings())
        own = DynamicSettings(store, live, lambda: 0)
        store.cluster.changed_settings = {REMOTE: "false"}
        seen: list[tuple[object, bool]] = []

        class ObservedStore(StoreInCluster):
            async def get(self, index: Index, id: str) -> Document | None:
                seen.append((own.defaults()[REMOTE], live.current.remote_inference_enabled))
                return await store.get(index, id)

        async with closing(ObservedStore(":memory:")) as observed:
            await refresh_settings(observed, live, ClusterSettings(store.cluster, live))
        seen.append((own.defaults()[REMOTE], live.current.remote_inference_enabled))
        assert seen == [(True, True), (False, False)]
