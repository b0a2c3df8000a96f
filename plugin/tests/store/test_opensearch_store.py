"""The store in OpenSearch over canned responses: the requests that go out, and what is made of what comes back."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.plugin.store import Document, Index, Written
from opensearch_ml_stream.plugin.store.mappings import index_body
from tests.store.canned_cluster import Canned, CannedCluster, refusal

WRITTEN = {"_index": ".plugins-ml-model", "_id": "m", "_version": 1, "result": "created", "_seq_no": 7} | {
    "_primary_term": 2
}
NO_INDEX = refusal(404, "index_not_found_exception", "no such index [.plugins-ml-model]")


async def test_a_document_is_read_from_the_index_with_the_prefix() -> None:
    found = {"_id": "m", "found": True, "_version": 3, "_seq_no": 7, "_primary_term": 2, "_source": {"name": "n"}}
    cluster = CannedCluster([Canned(found)])
    assert await cluster.store("mine-").get(Index.MODEL, "m") == Document("m", {"name": "n"}, 3, 7, 2)
    assert cluster.paths() == ["GET /mine-.plugins-ml-model/_doc/m"]


@pytest.mark.parametrize("missing", [Canned({"_id": "m", "found": False}, 404), NO_INDEX])
async def test_a_missing_document_and_a_missing_index_are_none(missing: Canned) -> None:
    assert await CannedCluster([missing]).store().get(Index.MODEL, "m") is None


@pytest.mark.parametrize(
    ("response", "changed"),
    [
        (Canned({"_seq_no": 7, "_primary_term": 2}), False),
        (Canned({"_seq_no": 8, "_primary_term": 2}), True),
        (Canned({"_seq_no": 7, "_primary_term": 3}), True),
        (Canned({"found": False}, 404), True),
        (NO_INDEX, True),
    ],
)
async def test_changed_compares_without_asking_for_the_source(response: Canned, changed: bool) -> None:
    cluster = CannedCluster([response])
    assert await cluster.store().changed(Index.MODEL, "m", 7, 2) is changed
    assert cluster.sent[0].params == {"_source": "false", "filter_path": "found,_seq_no,_primary_term,error.type"}


async def test_a_new_document_is_created_never_overwritten_and_searchable_at_once() -> None:
    cluster = CannedCluster([Canned(WRITTEN, 201)])
    assert await cluster.store().create(Index.MODEL, {"name": "n"}, "m") == Written("m", 7, 2, WRITTEN)
    head, put = cluster.sent
    assert (head.method, head.path) == ("HEAD", "/.plugins-ml-model")
    assert (put.method, put.path, put.body) == ("PUT", "/.plugins-ml-model/_doc/m", {"name": "n"})
    assert put.params == {"refresh": "true", "op_type": "create"}


async def test_without_an_id_opensearch_makes_one() -> None:
    cluster = CannedCluster([Canned({**WRITTEN, "_id": "made"}, 201)])
    assert (await cluster.store().create(Index.MODEL, {})).id == "made"
    assert cluster.paths()[1] == "POST /.plugins-ml-model/_doc"


@pytest.mark.parametrize("guard", [{}, {"if_seq_no": 0, "if_primary_term": 1}])
async def test_a_put_is_guarded_if_the_caller_says_so(guard: dict[str, int]) -> None:
    cluster = CannedCluster([Canned(WRITTEN)])
    await cluster.store().put(Index.MODEL, "m", {"name": "n"}, **guard)
    *before, put = cluster.sent
    assert [request.method for request in before] == ([] if guard else ["HEAD"])  # what was read has an index
    sent = {name: value for name, value in put.params.items() if name != "refresh"}
    assert {name: int(value) for name, value in sent.items()} == guard


async def test_a_missing_index_is_created_with_its_mappings_before_a_write() -> None:
    cluster = CannedCluster([Canned({"acknowledged": True}), Canned(WRITTEN)], has_index=False)
    await cluster.store("p-").put(Index.CONFIG, "m", {})
    assert cluster.paths() == [
        "HEAD /p-.plugins-ml-config",
        "PUT /p-.plugins-ml-config",
        "PUT /p-.plugins-ml-config/_doc/m",
    ]
    assert cluster.sent[1].body == index_body(Index.CONFIG, "p-.plugins-ml-config")


async def test_an_index_whose_name_begins_with_a_dot_is_hidden_as_opensearch_wants_it() -> None:
    cluster = CannedCluster([Canned({"acknowledged": True}), Canned(WRITTEN)], has_index=False)
    await cluster.store().put(Index.DEPLOYMENT, "m", {})
    assert cluster.sent[1].body["settings"]["index"]["hidden"] is True


async def test_an_index_that_another_creates_at_the_same_time_is_as_good() -> None:
    exists = refusal(400, "resource_already_exists_exception", "index [x] already exists")
    cluster = CannedCluster([exists, Canned(WRITTEN)], has_index=False)
    assert (await cluster.store().put(Index.MODEL, "m", {})).id == "m"


async def test_an_index_that_cannot_be_created_is_named() -> None:
    full = refusal(400, "validation_exception", "this cluster has reached the shard limit")
    with pytest.raises(Unavailable) as raised:
        await CannedCluster([full], has_index=False).store().put(Index.MODEL, "m", {})
    expected = "Index .plugins-ml-model cannot be created in OpenSearch: this cluster has reached the shard limit"
    assert raised.value.reason == expected


@pytest.mark.parametrize(("status", "result"), [(200, "deleted"), (404, "not_found")])
async def test_a_delete_gives_opensearchs_own_response(status: int, result: str) -> None:
    cluster = CannedCluster([Canned({**WRITTEN, "result": result}, status)])
    assert (await cluster.store().delete(Index.MODEL, "m")).response["result"] == result
    assert cluster.paths() == ["DELETE /.plugins-ml-model/_doc/m"]
    assert cluster.sent[0].params == {"refresh": "true"}


async def test_a_delete_without_an_index_looks_like_one_without_the_document() -> None:
    deleted = await CannedCluster([NO_INDEX]).store("p-").delete(Index.MODEL, "m")
    assert deleted == Written("m", 0, 0, deleted.response)
    assert deleted.response == {
        "_index": "p-.plugins-ml-model",
        "_id": "m",
        "_version": 1,
        "result": "not_found",
        "forced_refresh": True,
        "_shards": {"total": 0, "successful": 0, "failed": 0},
        "_seq_no": 0,
        "_primary_term": 0,
    }


async def test_a_missing_index_has_no_hits() -> None:
    response = await CannedCluster([NO_INDEX]).store().search(Index.TASK, {})
    assert response["hits"] == {"total": {"value": 0, "relation": "eq"}, "max_score": 0.0, "hits": []}


async def test_a_search_asks_for_versions() -> None:
    response: dict[str, Any] = {"hits": {"total": {"value": 0}, "hits": []}}
    cluster = CannedCluster([Canned(response)])
    assert await cluster.store().search(Index.TASK, {"size": 3, "version": False}) == response
    [sent] = cluster.sent
    assert sent.path == "/.plugins-ml-task/_search"
    assert sent.params == {"allow_partial_search_results": "false"}
    assert sent.body == {"version": False, "seq_no_primary_term": True, "size": 3}


@pytest.mark.parametrize(("result", "text"), [("hello", "hello"), ("null", None), ("", "")])
async def test_a_script_gets_its_params_and_gives_a_string(result: str, text: str | None) -> None:
    cluster = CannedCluster([Canned({"result": result})])
    assert await cluster.store().run_painless("return params.x", {"x": 1}) == text
    script = {"lang": "painless", "source": "return params.x", "params": {"x": 1}}
    assert (cluster.sent[0].path, cluster.sent[0].body) == ("/_scripts/painless/_execute", {"script": script})


@pytest.mark.parametrize(("hits", "matches"), [(0, False), (1, True)])
async def test_stop_words_are_percolated_in_the_users_own_index(hits: int, matches: bool) -> None:
    cluster = CannedCluster([Canned({"hits": {"total": {"value": hits}}})])
    assert await cluster.store("p-").percolate("my-words", {"title": "text"}) is matches
    query = {"percolate": {"field": "query", "document": {"title": "text"}}}
    assert cluster.sent[0].path == "/my-words/_search"
    assert cluster.sent[0].body == {"query": query, "size": 0, "terminate_after": 1}


async def test_closing_the_store_closes_its_client() -> None:
    cluster = CannedCluster([Canned({"version": {"number": "3.6.0"}}), Canned({})])
    store = cluster.store()
    await store.ping()
    assert not cluster.closed
    await store.close()
    assert cluster.closed


async def test_the_health_of_indices_is_that_of_those_with_the_prefix() -> None:
    health = {"p-.plugins-ml-model": {"status": "green"}, "p-.plugins-ml-jobs": {"status": "red"}}
    cluster = CannedCluster([Canned({"status": "red", "indices": health})])
    assert await cluster.store("p-").index_statuses() == {Index.MODEL: "green"}
    assert cluster.paths() == ["GET /_cluster/health/p-.plugins-ml-*"]
    assert cluster.sent[0].params == {"level": "indices", "expand_wildcards": "all"}


@pytest.mark.parametrize("status", [401, 403])
async def test_the_health_of_indices_is_not_known_to_a_user_who_may_not_see_it(status: int) -> None:
    cluster = CannedCluster([refusal(status, "security_exception", "no permissions")])
    assert await cluster.store().index_statuses() is None
