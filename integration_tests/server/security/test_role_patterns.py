"""What a role's permission allows at a sidecar is what it allows in OpenSearch itself, however it is written."""

from pathlib import Path

import pytest
from integration_tests.server.security.needs import BASE
from integration_tests.support.secured.cluster_users import cluster_users
from integration_tests.support.secured.secured_cluster import PASSWORD, SecuredCluster
from integration_tests.support.sidecars import running_sidecar

pytestmark = pytest.mark.secured

# `X` stands for the last part of an action's name: `settings` at the sidecar, `state` in OpenSearch.
ALLOW = [
    "cluster:monitor/X",
    "cluster:monitor/X*",
    "*monitor/X",
    "cluster?monitor/X",
    "*",
    r"/cluster:monitor\/X/",
    "/.*/",
    r"/(?i)CLUSTER:MONITOR\/X/",
    "cluster_monitor",
    "cluster_all",
    "unlimited",
    "group-of-groups",
]
REFUSE = [
    "CLUSTER:monitor/X",
    "cluster:monitor/?X",
    "cluster:monitor/X ",
    "cluster:monitor/[X]",
    "cluster:*:X",
    "!cluster:monitor/X",
    "/cluster:monitor/",
    "/cluster.*X",
    "cluster_composite_ops",
    "no-such-group",
]


def test_a_permission_allows_here_what_it_allows_in_opensearch(secured_cluster: SecuredCluster, tmp_path: Path) -> None:
    with cluster_users(secured_cluster) as users, secured_cluster.client(None) as opensearch:
        patterns = {users.name("user"): pattern for pattern in (*ALLOW, *REFUSE)}
        inner = users.name("group")
        users.put("actiongroups", {inner: {"allowed_actions": ["cluster:monitor/settings", "cluster:monitor/state"]}})
        users.put("actiongroups", {"group-of-groups": {"allowed_actions": [inner]}})
        users.put("roles", {name: {"cluster_permissions": _permissions(pattern)} for name, pattern in patterns.items()})
        users.add(patterns)
        users.put("rolesmapping", {name: {"users": [name]} for name in patterns})
        with running_sidecar(tmp_path, secured_cluster.store_url) as sidecar:
            for name, pattern in patterns.items():
                ours = sidecar.client.get(f"{BASE}/_settings", auth=(name, PASSWORD)).status_code
                theirs = opensearch.get("/_cluster/settings", auth=(name, PASSWORD)).status_code
                assert ours == theirs == (200 if pattern in ALLOW else 403), pattern


def _permissions(pattern: str) -> list[str]:
    return [pattern.replace("X", last) for last in ("settings", "state")]
