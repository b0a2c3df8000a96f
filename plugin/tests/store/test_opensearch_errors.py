"""What the store makes of a cluster that refuses, fails or cannot be reached: our errors, without a user's text."""

from collections.abc import Awaitable, Callable

import pytest
from opensearchpy import ConnectionError as NoConnection
from opensearchpy import ConnectionTimeout

from opensearch_ml_stream.connectors.errors import Conflict, InvalidRequest, MLStreamError, Unavailable
from opensearch_ml_stream.plugin.store import Index, opensearch_store
from opensearch_ml_stream.plugin.store.opensearch_store import OpenSearchStore
from tests.store.canned_cluster import Canned, CannedCluster, refusal

Call = Callable[[OpenSearchStore], Awaitable[object]]

READS: list[Call] = [
    lambda store: store.get(Index.MODEL, "m"),
    lambda store: store.changed(Index.MODEL, "m", 0, 1),
    lambda store: store.search(Index.MODEL, {}),
    lambda store: store.percolate("words", {"text": "sk-secret"}),
    lambda store: store.ping(),
]
WRITES: list[Call] = [
    lambda store: store.create(Index.MODEL, {"name": "sk-secret"}),
    lambda store: store.put(Index.MODEL, "m", {"name": "sk-secret"}),
    lambda store: store.delete(Index.MODEL, "m"),
]
SCRIPT: Call = lambda store: store.run_painless("return 1", {"text": "sk-secret"})  # noqa: E731
SETTINGS: Call = lambda store: store.cluster.settings()  # noqa: E731
FAILURES = [
    (401, "OpenSearch does not accept the user and password of the store's URL (401)"),
    (403, "OpenSearch does not let the store's user {action} (403); it needs permission to create, read and write "
          "the indices .plugins-ml-*"),
    (429, "OpenSearch failed to {action} (429 some_exception); see its log"),
    (500, "OpenSearch failed to {action} (500 some_exception); see its log"),
    (503, "OpenSearch failed to {action} (503 some_exception); see its log"),
]  # fmt: skip


async def error_of(call: Call, *responses: Canned) -> tuple[MLStreamError, CannedCluster]:
    cluster = CannedCluster(list(responses))
    with pytest.raises(MLStreamError) as raised:
        await call(cluster.store())
    assert "sk-secret" not in raised.value.reason
    assert raised.value.__suppress_context__ and raised.value.__cause__ is None
    return raised.value, cluster


@pytest.mark.parametrize(("status", "reason"), FAILURES)
@pytest.mark.parametrize(
    ("action", "call"),
    [*[("read", call) for call in READS], *[("write", call) for call in WRITES], ("script", SCRIPT)],
)
async def test_a_cluster_that_refuses_or_fails_is_unavailable_and_asked_once(
    status: int, reason: str, action: str, call: Call
) -> None:
    error, cluster = await error_of(call, refusal(status, "some_exception", "sk-secret"))
    assert isinstance(error, Unavailable)
    assert error.reason == reason.format(action=action)
    assert len([path for path in cluster.paths() if not path.startswith("HEAD")]) == 1


@pytest.mark.parametrize("call", [*READS, *WRITES, SCRIPT, SETTINGS])
async def test_a_cluster_that_does_not_respond_in_time_is_not_asked_again(call: Call) -> None:
    error, cluster = await error_of(call, Canned(error=ConnectionTimeout("TIMEOUT", "sk-secret", None)))
    assert isinstance(error, Unavailable)
    assert error.reason.startswith("OpenSearch did not respond to a ")
    assert error.reason.endswith(" within 10 s; check the cluster's load")
    assert len([path for path in cluster.paths() if not path.startswith("HEAD")]) == 1


@pytest.mark.parametrize(("calls", "times"), [(READS, 2), (WRITES, 1), ([SCRIPT], 1), ([SETTINGS], 1)])
async def test_only_reads_are_sent_again_over_a_new_connection(calls: list[Call], times: int) -> None:
    for call in calls:
        broken = Canned(error=NoConnection("N/A", "Cannot connect to host", None))
        error, cluster = await error_of(call, broken, broken)
        assert isinstance(error, Unavailable)
        assert error.reason.startswith("OpenSearch cannot be reached (Cannot connect to host); check that it runs")
        assert len([path for path in cluster.paths() if not path.startswith("HEAD")]) == times


async def test_a_read_whose_second_connection_holds_succeeds() -> None:
    broken = Canned(error=NoConnection("N/A", "reset", None))
    cluster = CannedCluster([broken, Canned({"found": False})])
    assert await cluster.store().get(Index.MODEL, "m") is None
    assert len(cluster.sent) == 2


@pytest.mark.parametrize("call", [READS[0], WRITES[2], SCRIPT])
async def test_a_server_that_is_no_opensearch_is_named_as_such(call: Call) -> None:
    error, _ = await error_of(call, Canned("<html>sk-secret", content_type="text/html"))
    assert isinstance(error, Unavailable)
    assert error.reason == (
        "The server at the store's URL does not respond as OpenSearch does; check host, port and path"
    )


async def test_an_error_that_is_no_json_has_no_reason_to_quote() -> None:
    error, _ = await error_of(READS[2], Canned("sk-secret", 502, "text/plain"))
    assert error.reason == "OpenSearch failed to read (502 status_exception); see its log"


async def test_a_version_conflict_is_a_conflict() -> None:
    conflict = refusal(409, "version_conflict_engine_exception", "[m]: version conflict")
    error, _ = await error_of(WRITES[1], conflict)
    assert isinstance(error, Conflict)
    assert (error.reason, error.type) == ("[m]: version conflict", "version_conflict_engine_exception")


async def test_a_field_of_the_wrong_type_is_named_without_its_value() -> None:
    reason = "failed to parse field [x] of type [long]. Preview of field's value: 'sk-secret'"
    error, _ = await error_of(WRITES[1], refusal(400, "mapper_parsing_exception", reason))
    assert isinstance(error, InvalidRequest)
    assert error.reason == "failed to parse field [x] of type [long]"
    assert error.type == "mapper_parsing_exception"


STARTING = refusal(503, "illegal_index_shard_state_exception", "CurrentState[RECOVERING] operations only allowed when")


async def test_a_read_waits_for_an_index_that_another_is_just_creating(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opensearch_store, "_START_SECONDS", 0)
    cluster = CannedCluster([STARTING, STARTING, Canned({"found": False})])
    assert await cluster.store().get(Index.MODEL, "m") is None
    assert len(cluster.sent) == 3


CLOSED = refusal(400, "index_closed_exception", "closed")
ALIAS = refusal(400, "illegal_argument_exception", "no write index is defined for alias [x]. The write index may be")
ALIASES = refusal(400, "illegal_argument_exception", "alias [x] has more than one index associated with it [a, b]")
STRICT = refusal(400, "strict_dynamic_mapping_exception", "mapping set to strict, dynamic introduction of [a] within")


@pytest.mark.parametrize(
    ("call", "fault"),
    [*[(call, CLOSED) for call in (*READS[:3], *WRITES)], (READS[0], ALIASES), (WRITES[0], ALIAS), (WRITES[1], STRICT)],
)
async def test_a_fault_of_the_cluster_is_no_fault_of_the_caller(call: Call, fault: Canned) -> None:
    error, _ = await error_of(call, fault)
    assert isinstance(error, Unavailable)
    assert error.reason.endswith("and that no template makes their mappings strict")


MODEL_INDEX = {"aliases": {}, "mappings": {"dynamic": "true"}}
NOT_READY: list[tuple[dict[str, object], str]] = [
    ({".plugins-ml-model": {"settings": {"index": {"verified_before_close": "true"}}}}, "is closed"),
    ({".plugins-ml-model": {"aliases": {}, "mappings": {"dynamic": "strict"}}}, "has a strict mapping"),
    ({"a": {"aliases": {".plugins-ml-model": {}}}, "b": {"aliases": {".plugins-ml-model": {}}}}, "is an alias without"),
    ({"a": {"aliases": {".plugins-ml-model": {"is_write_index": False}}}}, "is an alias without"),
]
READY: list[dict[str, object]] = [
    {},
    {".plugins-ml-model": MODEL_INDEX},
    {"a": {"aliases": {".plugins-ml-model": {}, "other": {"is_write_index": False}}}},
    {"a": {"aliases": {".plugins-ml-model": {}}}, "b": {"aliases": {".plugins-ml-model": {"is_write_index": True}}}},
]
INFO = Canned({"version": {"number": "3.6.0"}})


@pytest.mark.parametrize(("indices", "why"), NOT_READY)
async def test_a_store_whose_index_cannot_be_used_is_not_ready(indices: dict[str, object], why: str) -> None:
    with pytest.raises(Unavailable, match=rf"^OpenSearch's index \.plugins-ml-model {why}"):
        await CannedCluster([INFO, Canned(indices)]).store().ping()


@pytest.mark.parametrize("described", [*[Canned(indices) for indices in READY], refusal(403, "security_exception", "")])
async def test_a_store_whose_indices_can_be_used_or_may_not_be_seen_is_ready(described: Canned) -> None:
    await CannedCluster([INFO, described]).store().ping()


async def test_the_innermost_cause_of_a_bad_search_is_told() -> None:
    inner = {"type": "parsing_exception", "reason": "unknown query [x]"}
    outer = {"error": {"root_cause": [inner], "type": "x_content_parse_exception", "reason": "outer"}, "status": 400}
    error, _ = await error_of(READS[2], Canned(outer, 400))
    assert (type(error), error.reason, error.type) == (InvalidRequest, "unknown query [x]", "parsing_exception")


@pytest.mark.parametrize("info", [{"error": "a string"}, {"error": {"root_cause": []}}])
async def test_an_error_without_a_reason_says_so(info: object) -> None:
    error, _ = await error_of(READS[2], Canned(info, 400))
    assert error.reason == "OpenSearch gave no reason"


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (
            refusal(400, "script_exception", "compile error", caused_by={"reason": "unexpected token ['}']"}),
            "Painless script: compile error: unexpected token ['}']",
        ),
        (
            refusal(
                400, "script_exception", "runtime error", caused_by={"type": "null_pointer", "reason": "sk-secret"}
            ),
            "Painless script: runtime error: null_pointer",
        ),
        (refusal(400, "script_exception", "runtime error"), "Painless script: runtime error: unknown"),
        (
            refusal(400, "illegal_argument_exception", "script_lang not supported [painless]"),
            "OpenSearch cannot run Painless scripts (script_lang not supported [painless]); its module lang-painless "
            "is needed",
        ),
        (
            Canned({"error": "no"}, 400),
            "OpenSearch cannot run Painless scripts (OpenSearch gave no reason); its module lang-painless is needed",
        ),
    ],
)
async def test_a_script_that_fails_says_why_without_its_input(refused: Canned, reason: str) -> None:
    error, _ = await error_of(SCRIPT, refused)
    assert (type(error), error.reason) == (InvalidRequest, reason)
