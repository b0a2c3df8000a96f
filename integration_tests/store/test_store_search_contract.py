"""The contract of every store for searches, whichever it is: the subset of OpenSearch's search body."""

import asyncio
from collections.abc import Mapping
from typing import Any
from unittest.mock import ANY

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.store import Index, Store

MODELS: Mapping[str, Mapping[str, Any]] = {
    "gpt": {
        "name": "GPT-4o for Support",
        "algorithm": "REMOTE",
        "model_state": "REGISTERED",
        "model_group_id": "group-1",
        "connector_id": "aBc-9",
        "is_hidden": False,
        "created_time": 1700000000300,
        "guardrails": {"type": "local_regex", "input_guardrail": {"regex": [".*secret.*"]}},
        "user": {"name": "ann", "roles": ["writer"]},
    },
    "claude": {
        "name": "Claude of openai.example",
        "algorithm": "REMOTE",
        "model_state": "DEPLOYED",
        "created_time": 1700000000100,
        "description": "The long-context one, v1.5",
        "current_worker_node_count": 2,
        "connector": {"name": "inline connector", "parameters": {"model": "claude-x", "max_tokens": "7"}},
        "planning_worker_nodes": ["n1", "n2"],
    },
    "titan": {
        "name": "titan",
        "algorithm": "REMOTE",
        "model_state": "UNDEPLOYED",
        "is_hidden": True,
        "created_time": 1700000000200,
        "description": None,
    },
}

DATES: list[tuple[Mapping[str, object], set[str]]] = [
    ({"gte": "now-20y", "lt": "now+1h"}, {"gpt", "claude", "titan"}),
    ({"gte": "now-1d"}, set()),
    ({"lte": "now/d"}, {"gpt", "claude", "titan"}),
    ({"gte": None, "lt": None}, {"gpt", "claude", "titan"}),
    ({"gte": "2023-11-14T22:13:20.200Z"}, {"gpt", "titan"}),
    ({"gt": "2023-11-14T23:13:20.200+01:00"}, {"gpt"}),
    ({"gte": "1700000000300||-1m", "lt": "1700000000300"}, {"claude", "titan"}),
    ({"lte": "2023-11-14", "format": "yyyy-MM-dd"}, {"gpt", "claude", "titan"}),
    ({"gt": "2023-11-14", "format": "strict_date"}, set()),
    ({"lt": "2023-11-14", "format": "strict_date_optional_time"}, set()),
    ({"gte": "2023-11", "format": "strict_date_optional_time"}, {"gpt", "claude", "titan"}),
    ({"gte": "2023-11-14||/M", "lte": "2023-11-14||/M", "format": "yyyy-MM-dd"}, {"gpt", "claude", "titan"}),
    ({"gte": "14/11/2023 22:13:20", "format": "dd/MM/yyyy HH:mm:ss"}, {"gpt", "claude", "titan"}),
    ({"gt": "1700000000", "format": "epoch_second"}, set()),
]

QUERIES: list[tuple[object, set[str]]] = [
    ({"match_all": {}}, {"gpt", "claude", "titan"}),
    ({"term": {"model_state": "DEPLOYED"}}, {"claude"}),
    ({"term": {"model_state": {"value": "DEPLOYED"}}}, {"claude"}),
    ({"term": {"model_state": "deployed"}}, set()),
    ({"term": {"_id": "gpt"}}, {"gpt"}),
    ({"term": {"name": "support"}}, {"gpt"}),
    ({"term": {"name": "Support"}}, set()),
    ({"term": {"name.keyword": "GPT-4o for Support"}}, {"gpt"}),
    ({"term": {"name.keyword": "gpt-4o for support"}}, set()),
    ({"term": {"connector_id": "aBc-9"}}, set()),
    ({"term": {"connector_id.keyword": "aBc-9"}}, {"gpt"}),
    ({"match": {"connector_id": "aBc-9"}}, {"gpt"}),
    ({"term": {"is_hidden": True}}, {"titan"}),
    ({"term": {"is_hidden": "false"}}, {"gpt"}),
    ({"term": {"current_worker_node_count": 2}}, {"claude"}),
    ({"term": {"created_time": 1700000000200}}, {"titan"}),
    ({"term": {"planning_worker_nodes": "n2"}}, {"claude"}),
    ({"term": {"connector.parameters.model": "claude-x"}}, {"claude"}),
    ({"term": {"connector.parameters": "claude-x"}}, {"claude"}),
    ({"term": {"guardrails.type.keyword": "local_regex"}}, {"gpt"}),
    ({"term": {"user.name.keyword": "ann"}}, set()),
    ({"term": {"no_such_field": 1}}, set()),
    ({"terms": {"model_state": ["DEPLOYED", "UNDEPLOYED"]}}, {"claude", "titan"}),
    ({"terms": {"_id": ["gpt", "nobody"]}}, {"gpt"}),
    ({"match": {"name": "SUPPORT titan"}}, {"gpt", "titan"}),
    ({"match": {"name": {"query": "support titan", "operator": "and"}}}, set()),
    ({"match": {"name": {"query": "gpt support", "operator": "and"}}}, {"gpt"}),
    ({"match": {"name": "openai"}}, set()),
    ({"match": {"name": "openai.example"}}, {"claude"}),
    ({"match": {"description": "1.5"}}, set()),
    ({"match": {"description": "context"}}, {"claude"}),
    ({"match": {"model_state": "DEPLOYED"}}, {"claude"}),
    ({"match": {"name": ""}}, set()),
    ({"prefix": {"name.keyword": "GPT"}}, {"gpt"}),
    ({"prefix": {"name.keyword": "gpt"}}, set()),
    ({"prefix": {"name.keyword": {"value": "gpt", "case_insensitive": True}}}, {"gpt"}),
    ({"prefix": {"name": "supp"}}, {"gpt"}),
    ({"wildcard": {"name.keyword": {"value": "*FOR s*", "case_insensitive": True}}}, {"gpt"}),
    ({"wildcard": {"name.keyword": "t?tan"}}, {"titan"}),
    ({"wildcard": {"name.keyword": "t.tan"}}, set()),
    ({"wildcard": {"name": {"wildcard": "*ppor*"}}}, {"gpt"}),
    ({"wildcard": {"name.keyword": "t\\?tan"}}, set()),
    ({"range": {"created_time": {"gte": 1700000000200}}}, {"gpt", "titan"}),
    ({"range": {"created_time": {"gt": 1700000000100, "lt": 1700000000300}}}, {"titan"}),
    ({"range": {"current_worker_node_count": {"lte": 2}}}, {"claude"}),
    ({"range": {"name.keyword": {"gte": "D", "lt": "u"}}}, {"gpt", "titan"}),
    ({"range": {"name": {"gte": "su", "lt": "sv"}}}, {"gpt"}),
    ({"range": {"model_state": {"gte": 1}}}, {"gpt", "claude", "titan"}),
    ({"range": {"connector.parameters.max_tokens": {"gte": "10"}}}, {"claude"}),
    ({"range": {"current_worker_node_count": {"gte": 1.5}}}, {"claude"}),
    ({"range": {"current_worker_node_count": {"gte": None}}}, {"claude"}),
    ({"range": {"guardrails": {"gte": "a"}}}, set()),
    *[({"range": {"created_time": limits}}, found) for limits, found in DATES],
    ({"term": {"created_time": "2023-11-14T22:13:20.200Z"}}, {"titan"}),
    ({"term": {"created_time": "1700000000000||/d"}}, {"gpt", "claude", "titan"}),
    ({"terms": {"current_worker_node_count": ["2.0", 7]}}, {"claude"}),
    ({"match_phrase": {"name": "for SUPPORT"}}, {"gpt"}),
    ({"match_phrase": {"name": "support for"}}, set()),
    ({"match_phrase": {"name": {"query": "titan"}}}, {"titan"}),
    ({"match_phrase": {"model_state": "DEPLOYED"}}, {"claude"}),
    ({"query_string": {"query": "support titan", "default_field": "name"}}, {"gpt", "titan"}),
    ({"query_string": {"query": "gpt AND support", "fields": ["name"]}}, {"gpt"}),
    ({"query_string": {"query": "gpt AND titan", "fields": ["name"]}}, set()),
    ({"query_string": {"query": '"for support" OR tit*', "fields": ["name"]}}, {"gpt", "titan"}),
    ({"query_string": {"query": "gpt titan NOT support", "fields": ["name", "description"]}}, {"titan"}),
    ({"query_string": {"query": "gpt support", "fields": ["name"], "default_operator": "AND"}}, {"gpt"}),
    ({"query_string": {"query": "gpt", "fields": ["name^2"]}}, {"gpt"}),
    ({"ids": {"values": ["titan", "gpt"]}}, {"titan", "gpt"}),
    ({"exists": {"field": "description"}}, {"claude"}),
    ({"exists": {"field": "guardrails"}}, {"gpt"}),
    ({"exists": {"field": "connector_id"}}, {"gpt"}),
    ({"bool": {"must": [{"match_all": {}}], "must_not": {"term": {"is_hidden": True}}}}, {"gpt", "claude"}),
    ({"bool": {"should": [{"term": {"_id": "gpt"}}, {"term": {"_id": "titan"}}]}}, {"gpt", "titan"}),
    (
        {"bool": {"filter": {"match_all": {}}, "should": [{"term": {"_id": "gpt"}}]}},
        {"gpt", "claude", "titan"},
    ),
    (
        {
            "bool": {
                "should": [{"term": {"algorithm": "REMOTE"}}, {"term": {"is_hidden": True}}],
                "minimum_should_match": 2,
            }
        },
        {"titan"},
    ),
    ({"bool": {}}, {"gpt", "claude", "titan"}),
]


async def fill(store: Store) -> None:
    for id, source in MODELS.items():
        await store.put(Index.MODEL, id, source)


def ids(response: Mapping[str, Any]) -> list[str]:
    return [hit["_id"] for hit in response["hits"]["hits"]]


async def test_every_query_of_the_subset_finds_the_same_documents(store: Store) -> None:
    await fill(store)
    matches = {}
    for number, (query, _) in enumerate(QUERIES):
        matches[number] = set(ids(await store.search(Index.MODEL, {"query": query})))
    wrong = [
        f"{query}: {matches[number]}, not {expected}"
        for number, (query, expected) in enumerate(QUERIES)
        if matches[number] != expected
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ([{"created_time": {"order": "asc"}}], ["claude", "titan", "gpt"]),
        ([{"created_time": "desc"}], ["gpt", "titan", "claude"]),
        ("created_time", ["claude", "titan", "gpt"]),
        ([{"algorithm": "asc"}, {"created_time": "desc"}], ["gpt", "titan", "claude"]),
        ([{"current_worker_node_count": "asc"}, "created_time"], ["claude", "titan", "gpt"]),
        ([{"current_worker_node_count": "desc"}, "created_time"], ["claude", "titan", "gpt"]),
        ([{"name.keyword": "asc"}], ["claude", "gpt", "titan"]),
    ],
)
async def test_hits_are_sorted_with_those_without_the_field_last(store: Store, sort: object, order: list[str]) -> None:
    await fill(store)
    assert ids(await store.search(Index.MODEL, {"sort": sort})) == order


async def test_from_and_size_cut_a_page_but_not_the_total(store: Store) -> None:
    await fill(store)
    body = {"sort": ["created_time"], "from": 1, "size": 1}
    page = await store.search(Index.MODEL, body)
    assert ids(page) == ["titan"] and page["hits"]["total"]["value"] == 3
    none = await store.search(Index.MODEL, {"size": 0})
    assert ids(none) == [] and none["hits"]["total"]["value"] == 3


async def test_ten_hits_come_when_no_size_is_given(store: Store) -> None:
    await asyncio.gather(*[store.create(Index.TASK, {"state": "CREATED"}) for _ in range(11)])
    assert len(ids(await store.search(Index.TASK, {}))) == 10


async def test_hits_carry_what_a_guarded_write_needs(store: Store, index_prefix: str) -> None:
    written = await store.create(Index.MODEL, {"name": "x"}, id="m")
    [hit] = (await store.search(Index.MODEL, {}))["hits"]["hits"]
    assert {name: hit[name] for name in ("_index", "_id", "_version", "_seq_no", "_primary_term", "_source")} == {
        "_index": f"{index_prefix}{Index.MODEL}",
        "_id": "m",
        "_version": 1,
        "_seq_no": written.seq_no,
        "_primary_term": written.primary_term,
        "_source": {"name": "x"},
    }


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        (True, {"name": "n", "connector": {"name": "c", "credential": {"k": "v"}}, "list": [{"a": 1, "b": 2}]}),
        ("name", {"name": "n"}),
        (["name", "connector.name"], {"name": "n", "connector": {"name": "c"}}),
        (["conn*"], {"connector": {"name": "c", "credential": {"k": "v"}}}),
        (["list.a"], {"list": [{"a": 1}]}),
        ({"excludes": ["connector.credential", "list"]}, {"name": "n", "connector": {"name": "c"}}),
        ({"includes": ["connector"], "excludes": ["*.credential"]}, {"connector": {"name": "c"}}),
        (["nothing"], {}),
    ],
)
async def test_source_patterns_choose_the_fields(store: Store, select: object, expected: object) -> None:
    source = {"name": "n", "connector": {"name": "c", "credential": {"k": "v"}}, "list": [{"a": 1, "b": 2}]}
    await store.create(Index.MODEL, source)
    [hit] = (await store.search(Index.MODEL, {"_source": select}))["hits"]["hits"]
    assert hit["_source"] == expected


async def test_source_can_be_omitted(store: Store) -> None:
    await store.create(Index.MODEL, {"name": "n"})
    [hit] = (await store.search(Index.MODEL, {"_source": False}))["hits"]["hits"]
    assert "_source" not in hit


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"query": {"no_such_query": {}}}, "no_such_query"),
        ({"query": {"bool": {"perhaps": []}}}, "perhaps"),
        ({"no_such_key": 1}, "no_such_key"),
        ({"size": -1}, "size"),
        ({"size": 10001}, "10000"),
        ({"sort": ["name"]}, "keyword"),
        ({"sort": ["no_such_field"]}, "No mapping found for .no_such_field"),
        ({"aggs": {"a": {"terms": {"field": "name"}}}}, "Text fields are not optimised"),
        ({"query": {"terms": {"model_state": "DEPLOYED"}}}, "terms"),
        ({"query": {"range": {"created_time": {"gte": "yesterday"}}}}, "failed to parse date field .yesterday."),
        ({"query": {"range": {"created_time": {"gte": "2023-11-14"}}}}, "failed to parse date field .2023-11-14."),
        ({"query": {"range": {"created_time": {"gte": ""}}}}, "cannot parse empty date"),
        ({"query": {"range": {"created_time": {"gte": "now/z"}}}}, "unit .z. not supported for date math"),
        ({"query": {"range": {"created_time": {"gte": "now-1"}}}}, "truncated date math .-1."),
        ({"query": {"range": {"created_time": {"gte": "now-1dd"}}}}, "operator not supported for date math"),
        ({"query": {"range": {"created_time": {"gte": "x", "format": "nonsense"}}}}, "Invalid format: .nonsense."),
        ({"query": {"range": {"current_worker_node_count": {"gte": "now-1d"}}}}, 'For input string: "now-1d"'),
        ({"query": {"range": {"current_worker_node_count": {"lt": 10**30}}}}, "out of range"),
        ({"query": {"range": {"is_hidden": {"gte": "x"}}}}, "Can't parse boolean value .x."),
        ({"query": {"range": {"_id": {"gte": "a"}}}}, "does not support range queries"),
        ({"query": {"term": {"created_time": "x"}}}, "failed to parse date field .x."),
        ({"query": {"term": {"current_worker_node_count": "x"}}}, 'For input string: "x"'),
        ({"query": {"terms": {"is_hidden": [1]}}}, "Can't parse boolean value .1."),
        ({"query": {"match": {"current_worker_node_count": "x"}}}, 'For input string: "x"'),
        ({"query": {"match": {"name": None}}}, "text"),
        ({"query": {"term": {"model_content": "x"}}}, "Binary fields do not support searching"),
        ({"query": {"prefix": {"created_time": "17"}}}, "Can only use prefix queries on keyword and text fields"),
        ({"query": {"wildcard": {"_id": "g*"}}}, "Can only use wildcard queries on keyword and text fields"),
        ({"query": {"ids": {"values": [{}]}}}, "values"),
        ({"query": {"exists": {"field": ""}}}, "field"),
        ({"query": {"query_string": {"query": "gpt AND", "fields": ["name"]}}}, "Failed to parse query"),
        ({"query": {"query_string": {"query": 'a "b', "fields": ["name"]}}}, "Failed to parse query"),
        (
            {"query": {"query_string": {"query": "+" * 32_001, "fields": ["name"]}}},
            "length|Failed to parse",
        ),
        ({"query": {"bool": {"should": [{"match_all": {}}] * 1025}}}, "maxClauseCount is set to 1024"),
        ({"query": {"match": {"name": " ".join(map(str, range(1025)))}}}, "maxClauseCount is set to 1024"),
        ({"query": {"terms": {"model_state": ["x"] * 65_537}}}, "exceeded the allowed maximum of .65536."),
        ({"sort": ["guardrails"]}, "No mapping found for .guardrails."),
        ({"sort": ["model_state.keyword"]}, "No mapping found for .model_state.keyword."),
        ({"sort": ["connector.parameters"]}, "connector.parameters"),
        ({"sort": [None]}, "malformed sort format"),
        ({"track_total_hits": "x"}, "x|track_total_hits"),
        ({"version": "x"}, "Failed to parse value .x."),
        ({"aggs": {"a": {"top_hits": {"size": 101}}}}, "Top hits result window is too large"),
        ({"aggs": {"a": {"top_hits": {"size": 0}}}}, "must be"),
        ({"aggs": {"a": {"terms": {"field": "model_state", "size": 0}}}}, "size"),
        ({"aggs": {"a[": {"terms": {"field": "model_state"}}}}, "Invalid aggregation name"),
        ({"aggs": None}, "aggs"),
    ],
)
async def test_a_search_that_is_not_understood_is_the_callers_mistake(
    store: Store, body: Mapping[str, Any], named: str
) -> None:
    await fill(store)
    with pytest.raises(InvalidRequest, match=named):
        await store.search(Index.MODEL, body)


@pytest.mark.parametrize(
    ("sort", "values"),
    [
        (["created_time"], [[1700000000100], [1700000000200], [1700000000300]]),
        ([{"name.keyword": "desc"}], [["titan"], ["GPT-4o for Support"], ["Claude of openai.example"]]),
        ([{"current_worker_node_count": "asc"}, "created_time"],
         [[2, 1700000000100], [2**31 - 1, 1700000000200], [2**31 - 1, 1700000000300]]),
        ([{"current_worker_node_count": "desc"}, "created_time"],
         [[2, 1700000000100], [-(2**31), 1700000000200], [-(2**31), 1700000000300]]),
        ([{"guardrails.type.keyword": "asc"}, "created_time"],
         [["local_regex", 1700000000300], [None, 1700000000100], [None, 1700000000200]]),
    ],
)  # fmt: skip
async def test_sorted_hits_hold_what_they_were_sorted_by(store: Store, sort: object, values: list[list[Any]]) -> None:
    await fill(store)
    response = await store.search(Index.MODEL, {"sort": sort})
    assert [hit["sort"] for hit in response["hits"]["hits"]] == values


@pytest.mark.parametrize(
    ("tracked", "total"),
    [
        (True, {"value": 3, "relation": "eq"}),
        (2, {"value": 2, "relation": "gte"}),
        (3, {"value": 3, "relation": "eq"}),
        (False, None),
        (-1, None),
    ],
)
async def test_the_total_is_counted_as_far_as_asked(store: Store, tracked: object, total: object) -> None:
    await fill(store)
    hits = (await store.search(Index.MODEL, {"track_total_hits": tracked}))["hits"]
    assert (hits.get("total"), len(hits["hits"])) == (total, 3)


FILTERED: Mapping[str, Any] = {"query": {"bool": {"filter": {"match_all": {}}}}}


@pytest.mark.parametrize(
    ("body", "max_score", "score", "sort"),
    [
        ({}, 1.0, 1.0, None),
        ({"size": 0}, None, None, None),
        (FILTERED, 0.0, 0.0, None),
        ({"query": {"bool": {"must_not": {"term": {"name": "gpt"}}}}}, 0.0, 0.0, None),
        ({"query": {"bool": {"must": FILTERED["query"]}}}, 0.0, 0.0, None),
        ({"query": {"bool": {}}}, 1.0, 1.0, None),
        ({"sort": "_score"}, 1.0, 1.0, None),
        ({"sort": [{"_score": "asc"}]}, None, 1.0, [1.0]),
        ({"sort": ["_score", "created_time"]}, ANY, 1.0, [1.0, 1700000000100]),  # null in OpenSearch 2, 1.0 in 3
        ({"sort": ["created_time", "_score"]}, None, 1.0, [1700000000100, 1.0]),
        ({"sort": [{"algorithm": "asc", "created_time": "asc"}]}, None, None, ["REMOTE", 1700000000100]),
    ],
)
async def test_scores_are_shown_where_they_are_sorted_by(
    store: Store, body: Mapping[str, Any], max_score: object, score: object, sort: object
) -> None:
    await fill(store)
    hits = (await store.search(Index.MODEL, body))["hits"]
    first: Mapping[str, Any] = next(iter(hits["hits"]), {})
    assert (hits["max_score"], first.get("_score"), first.get("sort")) == (max_score, score, sort)


async def test_top_hits_have_scores_and_no_versions(store: Store) -> None:
    await fill(store)
    body = {**FILTERED, "size": 0, "aggs": {"all": {"top_hits": {"size": 1, "_source": False}}}}
    hits = (await store.search(Index.MODEL, body))["aggregations"]["all"]["hits"]
    assert (hits["total"], hits["max_score"]) == ({"value": 3, "relation": "eq"}, 0.0)
    assert [sorted(hit) for hit in hits["hits"]] == [["_id", "_index", "_score"]]


async def test_dates_are_counted_with_their_text(store: Store) -> None:
    await fill(store)
    terms = {"terms": {"field": "created_time", "size": 1, "order": {"_key": "asc"}}}
    [bucket] = (await store.search(Index.MODEL, {"size": 0, "aggs": {"times": terms}}))["aggregations"]["times"][
        "buckets"
    ]
    assert bucket == {"key": 1700000000100, "key_as_string": "2023-11-14T22:13:20.100Z", "doc_count": 1}


async def test_a_caller_finds_what_the_sidecar_finds(store: Store) -> None:
    await fill(store)
    body = {"query": {"match": {"name": "gpt titan"}}, "sort": ["created_time"]}
    assert ids(await store.search_for_caller(Index.MODEL, body)) == ids(await store.search(Index.MODEL, body))


async def test_a_field_that_may_be_unmapped_sorts_nothing(store: Store) -> None:
    await fill(store)
    body = {"sort": [{"no_such_field": {"order": "asc", "unmapped_type": "long"}}, "created_time"]}
    assert ids(await store.search(Index.MODEL, body)) == ["claude", "titan", "gpt"]


async def test_terms_are_counted_with_the_newest_documents_below_them(store: Store) -> None:
    await fill(store)
    newest = {"top_hits": {"size": 1, "sort": [{"created_time": {"order": "desc"}}], "_source": ["name"]}}
    body = {
        "size": 0,
        "aggs": {
            "states": {"terms": {"field": "model_state", "order": {"_key": "asc"}}, "aggs": {"newest": newest}},
            "algorithms": {"terms": {"field": "algorithm", "size": 1}, "aggs": {"newest": newest}},
            "hidden": {"terms": {"field": "is_hidden"}},
            "nothing": {"terms": {"field": "no_such_field"}},
        },
    }
    results = (await store.search(Index.MODEL, body))["aggregations"]
    states = results["states"]["buckets"]
    assert [(bucket["key"], bucket["doc_count"]) for bucket in states] == [
        ("DEPLOYED", 1), ("REGISTERED", 1), ("UNDEPLOYED", 1),
    ]  # fmt: skip
    [algorithm] = results["algorithms"]["buckets"]
    assert (algorithm["key"], algorithm["doc_count"]) == ("REMOTE", 3)
    newest_hits = algorithm["newest"]["hits"]
    assert newest_hits["total"] == {"value": 3, "relation": "eq"}
    assert [(hit["_id"], hit["_source"], hit["sort"]) for hit in newest_hits["hits"]] == [
        ("gpt", {"name": "GPT-4o for Support"}, [1700000000300]),
    ]
    assert results["hidden"]["buckets"] == [
        {"key": 0, "key_as_string": "false", "doc_count": 1}, {"key": 1, "key_as_string": "true", "doc_count": 1},
    ]  # fmt: skip
    assert results["nothing"] == {"doc_count_error_upper_bound": 0, "sum_other_doc_count": 0, "buckets": []}
    few = {"aggs": {"names": {"terms": {"field": "name.keyword", "size": 2, "order": {"_key": "desc"}}}}}
    names = (await store.search(Index.MODEL, few))["aggregations"]["names"]
    assert ([bucket["key"] for bucket in names["buckets"]], names["sum_other_doc_count"]) == (
        ["titan", "GPT-4o for Support"], 1,
    )  # fmt: skip
