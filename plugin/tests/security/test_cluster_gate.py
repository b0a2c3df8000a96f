"""Users of OpenSearch: who is let in, for how long, and how often the cluster is asked."""

import asyncio

import pytest

from opensearch_ml_stream.connectors.errors import Forbidden, Throttled, Unauthorized, Unavailable
from opensearch_ml_stream.plugin import refreshing_cache
from opensearch_ml_stream.plugin.refreshing_cache import AHEAD, PATIENCE_SECONDS
from opensearch_ml_stream.plugin.security.caller_headers import TrustedProxy
from opensearch_ml_stream.plugin.security.cluster_gate import (
    FRESH_SECONDS,
    MAX_QUESTIONS,
    MAX_WAITING,
    REFUSED_SECONDS,
    STALE_SECONDS,
    ClusterGate,
)
from opensearch_ml_stream.rest_handlers.actions import CONNECTOR_CREATE, MODEL_GET, PREDICT, PREDICT_STREAM
from opensearch_ml_stream.rest_handlers.callers import Caller, Scope
from tests.security.scripted_plugin import ScriptedPlugin, request_of


@pytest.fixture
async def cluster() -> ScriptedPlugin:
    return ScriptedPlugin()


@pytest.fixture
def gate(cluster: ScriptedPlugin) -> ClusterGate:
    return ClusterGate(cluster)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(refreshing_cache, "monotonic", lambda: now[0])
    return now


async def test_the_cluster_says_who_calls_and_its_roles_what_they_may_do(gate: ClusterGate) -> None:
    ann = await gate.admit(request_of("ann"), CONNECTOR_CREATE)
    assert ann == Caller("ann", frozenset({"team-a"}), frozenset({"own_index", "ml_full_access"}))
    assert (await gate.admit(request_of("admin"), CONNECTOR_CREATE)).is_admin


async def test_an_action_group_stands_for_its_actions(gate: ClusterGate) -> None:
    assert (await gate.admit(request_of("pat"), PREDICT, PREDICT_STREAM)).name == "pat"
    with pytest.raises(Forbidden):
        await gate.admit(request_of("pat"), MODEL_GET)


async def test_a_missing_permission_is_worded_as_opensearch_does(gate: ClusterGate) -> None:
    with pytest.raises(Forbidden) as refused:
        await gate.admit(request_of("nobody"), PREDICT)
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


@pytest.mark.parametrize("headers", [request_of("ann", "wrong"), {"headers": []}])
async def test_what_the_cluster_refuses_is_unauthorized_as_in_opensearch(gate: ClusterGate, headers: Scope) -> None:
    with pytest.raises(Unauthorized) as refused:
        await gate.admit(headers, PREDICT)
    assert refused.value.challenge == 'Basic realm="OpenSearch Security"'


async def test_a_request_without_credentials_is_not_sent_on(gate: ClusterGate, cluster: ScriptedPlugin) -> None:
    with pytest.raises(Unauthorized):
        await gate.admit({"headers": [(b"x-api-key", b"mls_1_2"), (b"cookie", b"a=b")]}, PREDICT)
    assert cluster.asked == []


async def test_the_cluster_is_asked_once_for_all_who_call_at_the_same_time(
    gate: ClusterGate, cluster: ScriptedPlugin
) -> None:
    callers = await asyncio.gather(*(gate.admit(request_of("ann"), PREDICT) for _ in range(50)))
    assert {caller.name for caller in callers} == {"ann"}
    assert (len(cluster.asked), cluster.role_reads) == (1, 1)


async def test_a_user_who_was_removed_is_refused_within_seconds(
    gate: ClusterGate, cluster: ScriptedPlugin, clock: list[float]
) -> None:
    await gate.admit(request_of("ann"), PREDICT)
    del cluster.users["ann"]
    assert (await gate.admit(request_of("ann"), PREDICT)).name == "ann"
    clock[0] += FRESH_SECONDS
    with pytest.raises(Unauthorized):
        await gate.admit(request_of("ann"), PREDICT)
    clock[0] += REFUSED_SECONDS
    cluster.down = True
    with pytest.raises(Unavailable):  # what was remembered of ann does not come back
        await gate.admit(request_of("ann"), PREDICT)


async def test_wrong_credentials_cost_the_cluster_one_question_in_five_seconds(
    gate: ClusterGate, cluster: ScriptedPlugin, clock: list[float]
) -> None:
    for _ in range(3):
        with pytest.raises(Unauthorized):
            await gate.admit(request_of("ann", "wrong"), PREDICT)
    assert len(cluster.asked) == 1
    clock[0] += REFUSED_SECONDS
    cluster.users["ann"] = cluster.users["nobody"]
    with pytest.raises(Unauthorized):
        await gate.admit(request_of("ann", "wrong"), PREDICT)
    assert len(cluster.asked) == 2


async def test_those_let_in_go_on_for_thirty_seconds_while_the_cluster_is_down_and_nobody_else_comes_in(
    gate: ClusterGate, cluster: ScriptedPlugin, clock: list[float]
) -> None:
    await gate.admit(request_of("ann"), PREDICT)
    cluster.down = True
    clock[0] += STALE_SECONDS - 0.1
    assert (await gate.admit(request_of("ann"), PREDICT)).name == "ann"
    with pytest.raises(Unavailable):
        await gate.admit(request_of("admin"), PREDICT)
    clock[0] += 0.1
    with pytest.raises(Unavailable):
        await gate.admit(request_of("ann"), PREDICT)


async def test_nobody_who_is_known_waits_for_a_cluster_that_hangs_until_their_time_ends(
    gate: ClusterGate, cluster: ScriptedPlugin, clock: list[float]
) -> None:
    """The questions that began before ann was no longer fresh are the only ones, and she goes on beside them."""
    await gate.admit(request_of("ann"), PREDICT)
    cluster.may_answer.clear()
    clock[0] += FRESH_SECONDS * AHEAD
    while clock[0] < 1000 + STALE_SECONDS:
        assert (await gate.admit(request_of("ann"), PREDICT)).name == "ann"
        clock[0] += PATIENCE_SECONDS
    assert len(cluster.asked) == 2
    late = asyncio.create_task(gate.admit(request_of("ann"), PREDICT))
    await asyncio.sleep(0)
    assert not late.done()
    cluster.may_answer.set()
    assert (await late).name == "ann"


async def test_one_who_was_silent_is_looked_at_before_they_go_on_and_waits_no_longer_than_is_worth_it(
    gate: ClusterGate, cluster: ScriptedPlugin, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ann", "pat"):
        await gate.admit(request_of(name), PREDICT_STREAM)
    clock[0] += FRESH_SECONDS + 1
    cluster.may_answer.clear()
    monkeypatch.setattr(refreshing_cache, "PATIENCE_SECONDS", 0.01)
    assert (await gate.admit(request_of("ann"), PREDICT)).name == "ann"  # waited, which shows that the cluster hangs
    monkeypatch.setattr(refreshing_cache, "PATIENCE_SECONDS", 3600)
    assert (await gate.admit(request_of("pat"), PREDICT_STREAM)).name == "pat"  # so she does not


async def test_one_who_is_not_known_is_refused_after_the_setting_while_the_cluster_hangs(
    cluster: ScriptedPlugin,
) -> None:
    gate = ClusterGate(cluster, seconds=0.01)
    cluster.may_answer.clear()
    strangers = [gate.admit(request_of("ann", f"{number}"), PREDICT) for number in range(MAX_QUESTIONS + 1)]
    outcomes = await asyncio.gather(*strangers, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {Unavailable}, "the one who waits for a turn, too"


async def test_no_caller_is_told_where_the_cluster_is(
    gate: ClusterGate, cluster: ScriptedPlugin, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.down = True
    with pytest.raises(Unavailable) as refused:
        await gate.admit(request_of("ann"), PREDICT)
    assert "down" not in refused.value.reason
    assert "down" in caplog.text


async def test_many_wrong_credentials_at_once_are_refused_and_those_let_in_are_not(
    gate: ClusterGate, cluster: ScriptedPlugin, clock: list[float]
) -> None:
    await gate.admit(request_of("ann"), PREDICT)
    clock[0] += FRESH_SECONDS
    cluster.may_answer.clear()
    guesses = [
        asyncio.create_task(gate.admit(request_of("ann", f"guess {number}"), PREDICT))
        for number in range(MAX_QUESTIONS + MAX_WAITING)
    ]
    for _ in range(5):
        await asyncio.sleep(0)  # until each has asked, or waits
    assert len(cluster.asked) == 1 + MAX_QUESTIONS
    with pytest.raises(Throttled) as refused:
        await gate.admit(request_of("ann", "one guess more"), PREDICT)
    assert (refused.value.status, refused.value.retry_after) == (429, "1")
    known = asyncio.create_task(gate.admit(request_of("ann"), PREDICT))
    await asyncio.sleep(0)
    cluster.may_answer.set()
    assert (await known).name == "ann"
    assert all(isinstance(error, Unauthorized) for error in await asyncio.gather(*guesses, return_exceptions=True))
    assert (await gate.admit(request_of("admin"), PREDICT)).name == "admin"


async def test_the_same_user_name_from_a_proxy_and_by_a_password_are_two_callers(cluster: ScriptedPlugin) -> None:
    gate = ClusterGate(cluster, proxy=TrustedProxy("x-proxy-user", "", ()))
    assert (await gate.admit(request_of("ann"), PREDICT)).name == "ann"
    with pytest.raises(Unauthorized):  # from no address that is trusted
        await gate.admit({"headers": [(b"x-proxy-user", b"ann")], "client": ("127.0.0.1", 1)}, PREDICT)
    assert len(cluster.asked) == 1


def test_a_proxy_that_names_users_may_do_so_for_a_request_that_a_web_page_made(cluster: ScriptedPlugin) -> None:
    assert ClusterGate(cluster).asks_for_login
    assert not ClusterGate(cluster, proxy=TrustedProxy("x-proxy-user", "", ())).asks_for_login


async def test_the_same_login_as_itself_and_as_another_user_are_two_callers(
    gate: ClusterGate, cluster: ScriptedPlugin
) -> None:
    other = {"headers": [*request_of("ann")["headers"], (b"opendistro_security_impersonate_as", b"pat")]}
    for _ in range(2):
        assert (await gate.admit(request_of("ann"), MODEL_GET)).name == "ann"
        assert (await gate.admit(other, PREDICT_STREAM)).name == "pat"
        with pytest.raises(Forbidden, match=r"name=pat"):
            await gate.admit(other, MODEL_GET)
    assert len(cluster.asked) == 2


async def test_who_may_not_be_another_user_is_told_so(gate: ClusterGate) -> None:
    other = {"headers": [*request_of("pat")["headers"], (b"opendistro_security_impersonate_as", b"ann")]}
    with pytest.raises(Forbidden, match="'pat' is not allowed to impersonate as 'ann'"):
        await gate.admit(other)
