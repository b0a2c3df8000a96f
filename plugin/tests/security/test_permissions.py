"""What patterns of roles allow, and the roles that are shipped."""

import pytest

from opensearch_ml_stream.plugin.security.permissions import (
    OPENSEARCH_ROLES,
    SHIPPED_ROLES,
    STATIC_ACTION_GROUPS,
    Permissions,
    actions_of,
)
from opensearch_ml_stream.rest_handlers import actions

ACTIONS = {value for name, value in vars(actions).items() if name.isupper() and isinstance(value, str)} - {actions._ML}


@pytest.mark.parametrize(
    ("pattern", "action", "allowed"),
    [
        ("cluster:admin/opensearch/ml/*", actions.PREDICT, True),
        ("cluster:admin/opensearch/ml/*", actions.PREDICT_STREAM, True),
        (actions.PREDICT, actions.PREDICT, True),
        (actions.PREDICT, actions.PREDICT_STREAM, False),
        ("*", actions.CONNECTOR_CREATE, True),
        ("cluster:admin/opensearch/ml/predic?", actions.PREDICT, True),
        ("cluster.admin/opensearch/ml/predict", actions.PREDICT, False),
        ("/cluster:admin/opensearch/ml/(models|tasks)/get/", actions.MODEL_GET, True),
        ("/cluster:admin/opensearch/ml/(models|tasks)/get/", actions.CONNECTOR_GET, False),
        ("/(?=look)behind/", actions.MODEL_GET, False),
        ("/a)|(.*/", actions.MODEL_GET, False),
    ],
)
def test_a_pattern_matches_the_whole_name_of_an_action(pattern: str, action: str, allowed: bool) -> None:
    assert Permissions([pattern]).allow(action) is allowed
    assert Permissions(["nothing", pattern]).allow(action) is allowed


def test_no_patterns_allow_nothing() -> None:
    assert not Permissions([]).allow(actions.PREDICT)


def test_action_groups_may_name_others_and_themselves() -> None:
    groups = {"a": ("b", "one"), "b": ("a", "two")}
    assert {"one", "two"} <= actions_of(["a"], groups)


def _allowed(role: str) -> set[str]:
    permissions = Permissions(actions_of(SHIPPED_ROLES[role], STATIC_ACTION_GROUPS))
    return {action for action in ACTIONS if permissions.allow(action)}


def test_the_shipped_roles_allow_what_their_names_say() -> None:
    assert _allowed("ml_full_access") == ACTIONS - {actions.PASS_THROUGH}
    reading = {action for action in ACTIONS if action.endswith(("/get", "/search", "/nodes"))}
    assert _allowed("ml_read_access") == reading | {actions.METRICS_GET, actions.SETTINGS_GET}
    assert _allowed("ml_predict_access") == {actions.PREDICT, actions.PREDICT_STREAM}
    assert _allowed("pass_through_access") == {actions.PASS_THROUGH}


def test_opensearchs_own_role_for_reading_allows_nothing_of_the_cluster_or_the_sidecar_itself() -> None:
    permissions = Permissions(actions_of(OPENSEARCH_ROLES["ml_read_access"], STATIC_ACTION_GROUPS))
    reading = {action for action in ACTIONS if action.endswith(("/get", "/search", "/nodes"))}
    assert {action for action in ACTIONS if permissions.allow(action)} == reading
