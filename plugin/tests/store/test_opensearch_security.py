"""The security plugin of a cluster: the responses are those of OpenSearch 3.4.0."""

from typing import Any

import pytest
from opensearchpy import ConnectionError as NoConnection

from opensearch_ml_stream.connectors.errors import Forbidden, Unavailable
from opensearch_ml_stream.plugin.store import SecurityPlugin
from tests.store.canned_cluster import Canned, CannedCluster, refusal

HEALTH = {"message": None, "mode": "strict", "status": "UP", "settings": {"plugins.security.cache.ttl_minutes": 60}}
NO_ROUTE = Canned({"error": "no handler found for uri [/_plugins/_security/health] and method [GET]"}, 400)
DOWN = Canned(error=NoConnection("N/A", "refused", OSError("refused")))
UNAUTHORIZED = Canned("Unauthorized", 401, "text/plain; charset=UTF-8")
NOT_INITIALIZED = Canned("OpenSearch Security not initialized.", 503, "text/plain; charset=UTF-8")
ANN = {"user": "User [name=ann]", "user_name": "ann", "backend_roles": ["team-a"], "roles": ["ml_full_access"]}


def security(*responses: Canned) -> SecurityPlugin:
    return CannedCluster(list(responses)).store().security


@pytest.mark.parametrize(("response", "installed"), [(Canned(HEALTH), True), (NO_ROUTE, False)])
async def test_the_clusters_own_word_says_whether_there_is_a_plugin(response: Canned, installed: bool) -> None:
    assert await security(response).is_installed() is installed


@pytest.mark.parametrize(
    "response",
    [
        DOWN,
        Canned({**HEALTH, "message": "Not initialized", "status": "DOWN"}, 503),
        Canned({**HEALTH, "status": "DOWN"}),
        Canned("default backend - 404", 404, "text/plain"),
        Canned({"status": 404, "error": "Not Found"}, 404),
        Canned({"error": {"type": "illegal_argument_exception", "reason": "odd"}}, 400),
        Canned("<html>", 200, "text/html"),
        Canned({"ok": True}),
        Canned([]),
    ],
)
async def test_whatever_else_it_says_leaves_open_whether_there_is_a_plugin(response: Canned) -> None:
    with pytest.raises(Unavailable):
        await security(response).is_installed()


@pytest.mark.parametrize("status", [401, 403])
async def test_a_cluster_that_refuses_to_say_is_told_apart_by_a_setting(status: int) -> None:
    response = Canned({"Message": "Your request is not allowed."}, status)
    with pytest.raises(Unavailable, match=r"set opensearch_ml_stream\.security to opensearch or own"):
        await security(response).is_installed()


async def test_a_caller_is_asked_about_with_no_other_headers_than_those_given() -> None:
    cluster = CannedCluster([Canned(ANN)])
    assert await cluster.store().security.auth_info({"authorization": "Bearer x"}) == ANN
    [sent] = cluster.sent
    assert (sent.method, sent.path, sent.headers) == (
        "GET", "/_plugins/_security/authinfo", {"authorization": "Bearer x"},
    )  # fmt: skip


@pytest.mark.parametrize("response", [UNAUTHORIZED, refusal(403, "security_exception", "admin user is not permitted")])
async def test_a_caller_whom_the_cluster_refuses_is_nobody(response: Canned) -> None:
    assert await security(response).auth_info({}) is None


async def test_a_caller_who_may_not_be_another_user_is_told_so() -> None:
    reason = "'ann' is not allowed to impersonate as 'bob'"
    refused = Canned({"error": {"status": "error", "reason": reason}}, 403)
    with pytest.raises(Forbidden, match=reason):
        await security(refused).auth_info({"authorization": "x", "opendistro_security_impersonate_as": "bob"})
    assert await security(UNAUTHORIZED).auth_info({"opendistro_security_impersonate_as": "bob"}) is None


@pytest.mark.parametrize(
    "response", [DOWN, NO_ROUTE, NOT_INITIALIZED, Canned({}), Canned({"user_name": None}), Canned("<html>"),
                 Canned("nothing here", 404, "text/plain"), Canned({"error": "busy"}, 429)],
)  # fmt: skip
async def test_who_calls_is_unknown_while_the_cluster_does_not_say(response: Canned) -> None:
    with pytest.raises(Unavailable):
        await security(response).auth_info({})


async def test_roles_and_action_groups_are_read_without_what_is_of_indices() -> None:
    roles: dict[str, Any] = {"r": {"cluster_permissions": ["g"]}}
    groups: dict[str, Any] = {"g": {"allowed_actions": ["a"]}}
    cluster = CannedCluster([Canned(roles), Canned(groups)])
    plugin = cluster.store().security
    assert (await plugin.roles(), await plugin.action_groups()) == (roles, groups)
    assert [(sent.path, sent.params) for sent in cluster.sent] == [
        ("/_plugins/_security/api/roles", {"filter_path": "*.cluster_permissions"}),
        ("/_plugins/_security/api/actiongroups", {"filter_path": "*.allowed_actions"}),
    ]


async def test_a_service_account_that_may_not_read_roles_is_told_so() -> None:
    response = Canned({"status": "FORBIDDEN", "message": "No permission to access REST API"}, 403)
    with pytest.raises(Forbidden, match="GET /_plugins/_security/api/roles"):
        await security(response).roles()


@pytest.mark.parametrize("response", [DOWN, UNAUTHORIZED, NO_ROUTE, NOT_INITIALIZED, Canned({"r": 1}), Canned("x")])
async def test_roles_are_unknown_while_the_cluster_does_not_say(response: Canned) -> None:
    with pytest.raises(Unavailable):
        await security(response).roles()
