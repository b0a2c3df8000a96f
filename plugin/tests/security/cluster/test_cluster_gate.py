"""Users of OpenSearch: the responses are those of OpenSearch 3.4.0 with its security plugin."""

import base64
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, Unauthorized, Unavailable
from opensearch_ml_stream.plugin.security.cluster import cluster_roles
from opensearch_ml_stream.plugin.security.cluster.cluster_gate import ClusterGate
from opensearch_ml_stream.rest_handlers.actions import CONNECTOR_CREATE, MODEL_GET, PREDICT, PREDICT_STREAM
from opensearch_ml_stream.rest_handlers.callers import Caller, Scope

ROLES: dict[str, dict[str, Any]] = {
    "all_access": {"cluster_permissions": ["*"]},
    "ml_full_access": {"cluster_permissions": ["cluster:admin/opensearch/ml/*", "cluster_monitor"]},
    "predictor": {"cluster_permissions": ["predicting"]},
    "odd": {"cluster_permissions": None},
}
GROUPS: dict[str, dict[str, Any]] = {"predicting": {"allowed_actions": [PREDICT_STREAM], "type": "cluster"}}
USERS = {
    "admin": {"backend_roles": ["admin"], "roles": ["own_index", "all_access"]},
    "ann": {"backend_roles": ["team-a"], "roles": ["own_index", "ml_full_access"]},
    "pat": {"backend_roles": [], "roles": ["own_index", "predictor", "odd"]},
    "nobody": {"backend_roles": [], "roles": ["own_index"]},
}


class Cluster:
    """A cluster's security plugin, whose users have their names as passwords."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_read_roles = True
        self.down = False

    async def is_installed(self) -> bool:
        """Return that it is there."""
        return True

    async def auth_info(self, headers: Mapping[str, str]) -> Mapping[str, Any] | None:
        """Return what `authinfo` says."""
        authorization = headers["authorization"]
        self.asked.append(authorization)
        if self.down:
            raise Unavailable("down")
        name, _, password = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        return {"user_name": name, **USERS[name]} if password == name else None

    async def roles(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the roles."""
        if not self.may_read_roles:
            raise Forbidden("No permission to access REST API")
        return ROLES

    async def action_groups(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the action groups."""
        return GROUPS


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def gate(cluster: Cluster) -> ClusterGate:
    return ClusterGate(cluster, {"predictor": (PREDICT,)})


def scope(name: str, password: str | None = None) -> Scope:
    credentials = base64.b64encode(f"{name}:{name if password is None else password}".encode())
    return {"headers": [(b"authorization", b"Basic " + credentials)]}


async def test_the_cluster_says_who_calls_and_its_roles_what_they_may_do(gate: ClusterGate) -> None:
    ann = await gate.admit(scope("ann"), CONNECTOR_CREATE)
    assert ann == Caller("ann", frozenset({"team-a"}), frozenset({"own_index", "ml_full_access"}))
    assert (await gate.admit(scope("admin"), CONNECTOR_CREATE)).is_admin


async def test_an_action_group_stands_for_its_actions(gate: ClusterGate) -> None:
    assert (await gate.admit(scope("pat"), PREDICT, PREDICT_STREAM)).name == "pat"
    with pytest.raises(Forbidden):
        await gate.admit(scope("pat"), MODEL_GET)


async def test_a_missing_permission_is_worded_as_opensearch_does(gate: ClusterGate) -> None:
    with pytest.raises(Forbidden) as refused:
        await gate.admit(scope("nobody"), PREDICT)
    assert refused.value.body() == {
        "error": {
            "root_cause": [
                {"type": "security_exception", "reason": refused.value.reason},
            ],
            "type": "security_exception",
            "reason": "no permissions for [cluster:admin/opensearch/ml/predict] and User [name=nobody, "
            "backend_roles=[], requestedTenant=null]",
        },
        "status": 403,
    }


@pytest.mark.parametrize("headers", [scope("ann", "wrong"), {"headers": []}])
async def test_what_the_cluster_refuses_is_unauthorized(gate: ClusterGate, headers: Scope) -> None:
    with pytest.raises(Unauthorized):
        await gate.admit(headers, PREDICT)


async def test_the_cluster_is_asked_once_in_thirty_seconds(gate: ClusterGate, cluster: Cluster) -> None:
    for _ in range(3):
        await gate.admit(scope("ann"), PREDICT)
        with pytest.raises(Unauthorized):
            await gate.admit(scope("ann", "wrong"), PREDICT)
    assert len(cluster.asked) == 2


async def test_nobody_is_let_in_while_the_cluster_cannot_say_who_calls(gate: ClusterGate, cluster: Cluster) -> None:
    cluster.down = True
    with pytest.raises(Unavailable):
        await gate.admit(scope("ann"), PREDICT)


async def test_roles_of_the_settings_hold_where_the_clusters_cannot_be_read(
    cluster: Cluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_roles, "FRESH_SECONDS", 0.0)
    gate = ClusterGate(cluster, {"predictor": (PREDICT,)})
    cluster.may_read_roles = False
    with caplog.at_level(logging.WARNING):
        for name in ("pat", "ann", "admin"):
            assert (await gate.admit(scope(name), PREDICT)).name == name
    assert [record.message.count("opensearch_ml_stream.role_permissions") for record in caplog.records] == [1]
    with pytest.raises(Forbidden):
        await gate.admit(scope("pat"), PREDICT_STREAM)
