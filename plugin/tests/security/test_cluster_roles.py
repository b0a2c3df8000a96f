"""What the roles of the cluster allow, and what holds where they cannot be read."""

import logging

import pytest

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.plugin import refreshing_cache
from opensearch_ml_stream.plugin.security.cluster_gate import (
    ROLES_FRESH_SECONDS,
    ROLES_STALE_SECONDS,
    ClusterRoles,
    RolePermissions,
)
from opensearch_ml_stream.rest_handlers.actions import (
    METRICS_GET,
    MODEL_GET,
    PREDICT,
    PREDICT_STREAM,
    SETTINGS_GET,
    SETTINGS_UPDATE,
)
from tests.security.scripted_plugin import ScriptedPlugin

EVERY_ACTION = {PREDICT, PREDICT_STREAM, MODEL_GET, SETTINGS_GET, SETTINGS_UPDATE, METRICS_GET}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(refreshing_cache, "monotonic", lambda: now[0])
    return now


async def allowed(roles: ClusterRoles, *names: str) -> set[str]:
    granted = (await roles.permissions()).granted_to(names)
    return {action for action in EVERY_ACTION if any(permissions.allow(action) for permissions in granted)}


async def test_patterns_action_groups_and_unknown_roles_are_read_as_the_security_plugin_does() -> None:
    roles = ClusterRoles(ScriptedPlugin(), {"predictor": ("*",), "own": ("*",)})
    assert await allowed(roles, "predictor") == {PREDICT_STREAM}
    assert await allowed(roles, "ml_full_access") == EVERY_ACTION - {SETTINGS_UPDATE}
    assert await allowed(roles, "all_access") == EVERY_ACTION
    assert await allowed(roles, "odd", "own_index", "own", "no such") == set()


def test_action_groups_that_name_each_other_come_to_an_end() -> None:
    roles = RolePermissions({"r": ("a",)}, {"a": ("b",), "b": ("a", PREDICT)})
    assert [permissions.allow(PREDICT) for permissions in roles.granted_to(["r", "r"])] == [True, True]


async def test_a_changed_role_is_in_force_within_thirty_seconds(clock: list[float]) -> None:
    plugin = ScriptedPlugin()
    roles = ClusterRoles(plugin, {})
    assert await allowed(roles, "predictor") == {PREDICT_STREAM}
    plugin.group_actions = {"predicting": {"allowed_actions": [MODEL_GET]}}
    assert await allowed(roles, "predictor") == {PREDICT_STREAM}
    clock[0] += ROLES_FRESH_SECONDS
    assert await allowed(roles, "predictor") == {MODEL_GET}


async def test_roles_hold_for_a_minute_while_the_cluster_does_not_respond(clock: list[float]) -> None:
    plugin = ScriptedPlugin()
    roles = ClusterRoles(plugin, {})
    await roles.permissions()
    plugin.down = True
    clock[0] += ROLES_STALE_SECONDS - 1
    assert await allowed(roles, "predictor") == {PREDICT_STREAM}
    clock[0] += 1
    with pytest.raises(Unavailable):
        await roles.permissions()


async def test_where_roles_cannot_be_read_those_of_opensearch_and_of_the_settings_hold(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    plugin = ScriptedPlugin()
    plugin.may_read_roles = False
    roles = ClusterRoles(plugin, {"own": (PREDICT, "cluster_monitor"), "ml_read_access": (MODEL_GET,)})
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert await allowed(roles, "own") == {PREDICT, SETTINGS_GET, METRICS_GET}
            clock[0] += ROLES_FRESH_SECONDS
    assert await allowed(roles, "ml_full_access") == EVERY_ACTION - {SETTINGS_UPDATE}
    assert await allowed(roles, "all_access") == EVERY_ACTION
    assert await allowed(roles, "ml_read_access") == {MODEL_GET}
    assert await allowed(roles, "predictor") == set()
    assert [record.message.count("opensearch_ml_stream.role_permissions") for record in caplog.records] == [1]
    plugin.may_read_roles = True
    clock[0] += ROLES_FRESH_SECONDS
    assert await allowed(roles, "predictor") == {PREDICT_STREAM}


async def test_where_roles_cannot_be_read_that_for_reading_allows_no_more_than_opensearchs() -> None:
    plugin = ScriptedPlugin()
    plugin.may_read_roles = False
    assert await allowed(ClusterRoles(plugin, {}), "ml_read_access") == {MODEL_GET}
