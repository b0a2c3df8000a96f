"""Users x routes, where the users of a real cluster with the security plugin decide, and the roles that it ships."""

from collections.abc import Sequence

import httpx
import pytest
from integration_tests.server.grpc_port.grpc_clients import grpc_address
from integration_tests.server.security.grpc_rights import GrpcPort
from integration_tests.server.security.http_rights import HttpPort
from integration_tests.server.security.needs import ALL_OF_ML, BASE, MONITOR, READ_OF_ML, SETTINGS, STREAM
from integration_tests.server.security.rights import NOBODY, Login, Port, User, basic, broken_rights, wrongly_open
from integration_tests.support.secured.secured_cluster import PASSWORD, SERVICE_ACCOUNT, SecuredCluster
from integration_tests.support.sidecars import Sidecar

pytestmark = pytest.mark.secured

FULL = frozenset(ALL_OF_ML | MONITOR)  # the shipped ml_full_access; settings of a cluster are its admin's
USERS = [
    User("admin", FULL | SETTINGS),
    User("ml_full", FULL),
    User("ann", FULL, backend_roles="team-a"),
    User("bob", FULL, backend_roles="team-b"),
    User("ml_read", frozenset(READ_OF_ML)),
    User("streamer", frozenset(STREAM)),
    User("nobody", frozenset()),
    User(SERVICE_ACCOUNT, frozenset()),
]


@pytest.fixture(scope="module", params=["http", "grpc"])
def port(request: pytest.FixtureRequest, guarded: Sidecar) -> Port:
    return HttpPort(guarded.client) if request.param == "http" else GrpcPort(grpc_address(guarded))


@pytest.fixture(scope="module")
def rows(port: Port) -> Sequence[str]:
    return port.rows(basic("nobody"))


def test_every_route_and_every_method_has_a_row(port: Port, rows: Sequence[str]) -> None:
    assert set(rows) == port.needs.keys()


@pytest.mark.parametrize("user", USERS, ids=lambda user: user.name)
def test_a_user_may_do_what_the_table_says(port: Port, rows: Sequence[str], user: User) -> None:
    assert broken_rights(port, rows, user) == []


@pytest.mark.parametrize("login", [NOBODY, basic("admin", "wrong"), basic("unknown")], ids=["none", "wrong", "unknown"])
def test_who_does_not_log_in_well_gets_in_nowhere_but_where_everyone_does(
    port: Port, rows: Sequence[str], login: Login
) -> None:
    assert wrongly_open(port, rows, login) == []


@pytest.mark.parametrize(
    "authorization",
    [None, "Basic", "Basic xx", "Basic bm9ib2R5Ondyb25n", "Bearer of-nobody", "Digest x"],
    ids=["none", "scheme", "no-base64", "wrong-password", "bearer", "digest"],
)
def test_a_login_is_refused_as_opensearch_refuses_it(
    guarded: Sidecar, secured_cluster: SecuredCluster, authorization: str | None
) -> None:
    """But for the body, which is a text there and here the error that clients read."""
    headers = {} if authorization is None else {"Authorization": authorization}
    with secured_cluster.client(None) as opensearch:
        theirs = opensearch.get("/_cat/indices", headers=headers)
    ours = guarded.client.get(f"{BASE}/models/_search", headers=headers)
    error = {"type": "security_exception", "reason": theirs.text}
    assert ours.json() == {"error": {"root_cause": [error], **error}, "status": 401}
    assert _challenge(ours) == _challenge(theirs)


def test_a_right_is_refused_as_opensearch_refuses_it(guarded: Sidecar, secured_cluster: SecuredCluster) -> None:
    """Settings need the same action there."""
    with secured_cluster.client("bob") as opensearch:
        theirs = opensearch.put("/_cluster/settings", json={"transient": {"cluster.max_shards_per_node": None}})
    ours = guarded.client.put(f"{BASE}/_settings", auth=("bob", PASSWORD), json={})
    assert (ours.status_code, ours.text) == (theirs.status_code, theirs.text)
    assert (ours.status_code, ours.headers["content-type"]) == (403, theirs.headers["content-type"])


def _challenge(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.headers["www-authenticate"]
