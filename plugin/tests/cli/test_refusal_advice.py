"""The advice behind a 403: which shipped roles have the action that is missing."""

import pytest

from opensearch_ml_stream.plugin.cli.refusal_advice import refusal_advice
from opensearch_ml_stream.rest_handlers import actions


def missing(action: str) -> str:
    return f"no permissions for [{action}] and User [name=app, backend_roles=[], requestedTenant=null]"


@pytest.mark.parametrize(
    ("action", "roles"),
    [
        (actions.MODEL_GET, "ml_full_access and ml_read_access"),
        (actions.PREDICT_STREAM, "ml_full_access and ml_predict_access"),
        (actions.CONNECTOR_CREATE, "ml_full_access"),
        (actions.SETTINGS_GET, "ml_full_access and ml_read_access"),
    ],
)
def test_the_roles_that_have_a_missing_action_are_named(action: str, roles: str) -> None:
    advice = refusal_advice(403, missing(action), "http://s", "the key")
    assert advice == f"of the roles that come with the sidecar, it is in {roles}"


@pytest.mark.parametrize(
    ("status", "reason"),
    [(403, missing("indices:data/read/search")), (403, "remote inference is disabled"), (404, "x")],
)
def test_no_role_is_named_where_none_would_do(status: int, reason: str) -> None:
    assert refusal_advice(status, reason, "http://s", None) == ""
