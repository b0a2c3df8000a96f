"""What bounds a search of the embedded store: each bound by its name, all of them by a count of steps."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, Throttled
from opensearch_ml_stream.plugin.store import Document, Index
from opensearch_ml_stream.plugin.store.mappings import FIELDS
from opensearch_ml_stream.plugin.store.sqlite_fields import find_field
from opensearch_ml_stream.plugin.store.sqlite_search import search
from opensearch_ml_stream.plugin.store.sqlite_search_bounds import MAX_STEPS, SearchWork
from opensearch_ml_stream.plugin.store.sqlite_store import MAX_SEARCHES, SQLiteStore
from tests.registry.registry_setup import closing

Body = Mapping[str, Any]
WORDS = " ".join(f"w{number}" for number in range(50_000))


def nested(query: Body, times: int, wrap: Callable[[Any], Body]) -> Body:
    for _ in range(times):
        query = wrap(query)
    return query


def in_bool(query: Body) -> Body:
    return {"bool": {"must": [query]}}


def any_of(queries: list[Body]) -> Body:
    return {"query": {"bool": {"should": queries}}}


def run(body: Body, documents: int = 1, limit: float = MAX_STEPS) -> dict[str, Any]:
    """Search models whose names are all different."""
    of = {"user": {"name": "ann"}, "description": "one of many", "created_time": 5}
    models = [Document(str(number), {**of, "name": f"m {number}"}, 1, number, 1) for number in range(documents)]
    return search(Index.MODEL, "models", models, body, SearchWork(limit))


@pytest.mark.parametrize(
    ("body", "type", "reason"),
    [
        (any_of([{"term": {"name": str(number)}} for number in range(1024)]), "too_many_clauses", "set to 1024"),
        (any_of([any_of([{"bool": {}}] * 40)["query"]] * 40), "too_many_clauses", "set to 1024"),
        ({"query": {"match": {"name": WORDS}}}, "too_many_clauses", "set to 1024"),
        ({"query": {"match_phrase": {"name": WORDS}}}, "too_many_clauses", "set to 1024"),
        ({"query": {"query_string": {"query": WORDS[:7000], "fields": ["a"]}}}, "too_many_clauses", "1024"),
        ({"query": {"query_string": {"query": WORDS[:5000], "fields": [f"f{n}" for n in range(1000)]}}},
         "too_many_clauses", "set to 1024"),
        ({"query": {"query_string": {"query": '"' + WORDS[:7000] + '"', "fields": ["a"]}}},
         "too_many_clauses", "set to 1024"),
        ({"query": {"query_string": {"query": WORDS, "fields": ["a"]}}}, "parse_exception", "max allowed length 32000"),
        ({"query": {"terms": {"name": ["x"] * 65_537}}}, "query_shard_exception", r"allowed maximum of \[65536\]"),
        ({"query": {"terms": {"created_time": [f"{n}||/d" for n in range(1100)]}}}, "too_many_clauses", "1024"),
        ({"query": {"wildcard": {"name": "*a" * 501}}}, None, r"pattern \[1002\] .* allowed maximum of \[1000\]"),
        (any_of([{"wildcard": {"name": "*a" * 500}}] * 60), "too_many_clauses", "50 characters of a pattern"),
        ({"query": nested({"match_all": {}}, 30, in_bool)}, None, "Queries may be nested 30 deep"),
        ({"query": {"exists": {"field": "." * 50_001}}}, None, r"longer than the limit of \[50000\] characters"),
        ({"query": {"term": {"a" * 50_001: 1}}}, None, r"longer than the limit of \[50000\] characters"),
        ({"sort": ["." * 50_001]}, None, r"longer than the limit of \[50000\] characters"),
        ({"aggs": {"a": {"terms": {"field": "." * 50_001}}}}, None, r"longer than the limit of \[50000\] characters"),
        ({"sort": ["created_time"] * 33}, None, r"\[sort\] may have 32 keys; this one has 33"),
        ({"sort": [{f"f{number}": "asc" for number in range(33)}]}, None, r"\[sort\] may have 32 keys"),
        ({"aggs": {f"a{n}": {"terms": {"field": "created_time"}} for n in range(101)}}, None, "100 aggregations"),
        ({"aggs": {"a": {"top_hits": {"size": 60, "from": 41}}}}, None, r"or equal to: \[100\] but was \[101"),
        ({"from": 9_000, "size": 1_001}, None, r"less than or equal to: \[10000\] but was \[10001\]"),
    ],
)  # fmt: skip
def test_more_than_there_may_be_is_refused_by_name(body: Body, type: str | None, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason) as raised:
        run(body)
    assert raised.value.type == (type or InvalidRequest.type)


def test_as_much_as_there_may_be_is_found() -> None:
    assert run(any_of([{"term": {"name": "m"}}] * 1023))["hits"]["total"]["value"] == 1
    assert run({"query": nested({"match_all": {}}, 29, in_bool)})["hits"]["total"]["value"] == 1
    assert run({"query": {"exists": {"field": "." * 50_000}}})["hits"]["total"]["value"] == 0
    assert run({"sort": ["created_time"] * 32})["hits"]["hits"][0]["sort"] == [5] * 32


def test_the_buckets_and_hits_of_all_aggregations_are_counted_together() -> None:
    by_name = {"terms": {"field": "name.keyword", "size": 1000}}
    with pytest.raises(InvalidRequest, match=r"too many buckets.*\[65535\]") as raised:
        run({"aggs": {f"a{number}": by_name for number in range(70)}}, documents=1_000)
    assert raised.value.type == "too_many_buckets_exception"
    below: Body = {f"a{number}": {"top_hits": {}} for number in range(11)}
    with pytest.raises(InvalidRequest, match="may have 10000 hits"):
        run({"size": 0, "aggs": {"a": {**by_name, "aggs": below}}}, documents=1_000)


EACH_KIND: list[Body] = [
    any_of([{"match": {"description": f"word{number}"}} for number in range(500)]),
    any_of([{"match_phrase": {"description": f"one {number}"}} for number in range(500)]),
    any_of([{"prefix": {"description": f"x{number}"}} for number in range(1000)]),
    any_of([{"wildcard": {"description": f"*{number}"}} for number in range(1000)]),
    any_of([{"range": {"created_time": {"gt": number + 5}}} for number in range(1000)]),
    any_of([{"exists": {"field": f"f{number}"}} for number in range(1000)]),
    any_of([{"ids": {"values": ["x"]}}] * 1000),
    any_of([{"bool": {"must_not": [{"match_all": {}}]}}] * 500),
    any_of([{"nested": {"path": "user", "query": {"term": {"user.name": str(n)}}}} for n in range(500)]),
    any_of([{"terms": {"created_time": [f"{n}||/d" for n in range(10**9, 10**9 + 500)]}}]),
    {"query": {"query_string": {"query": WORDS[:2000], "fields": ["name", "description"]}}},
    {"sort": [{f"f{number}": {"unmapped_type": "long"}} for number in range(32)]},
    {"aggs": {f"a{number}": {"terms": {"field": "created_time"}} for number in range(100)}},
    {"size": 0, "aggs": {"a": {"terms": {"field": "created_time"}, "aggs": {
        f"a{number}": {"terms": {"field": f"f{number}"}} for number in range(99)}}}},
]  # fmt: skip


@pytest.mark.parametrize("body", EACH_KIND)
def test_every_kind_of_work_is_counted(body: Body) -> None:
    run(body, documents=100)
    with pytest.raises(InvalidRequest, match=r"takes more than 5,000 steps, which the embedded store allows"):
        run(body, documents=100, limit=5_000)


def test_a_fields_name_is_looked_up_in_the_mapping_and_not_part_by_part() -> None:
    class CountedTypes(dict[str, str]):
        lookups = 0

        def get(self, key: str, default: Any = None) -> Any:
            self.lookups += 1
            return super().get(key, default)

    types = CountedTypes(FIELDS[Index.MODEL])
    find_field(types, "." * 50_000)
    assert types.lookups <= 2


@pytest.fixture
async def store() -> AsyncIterator[SQLiteStore]:
    async with closing(SQLiteStore(":memory:", max_search_steps=3_000)) as store:
        for number in range(20):
            await store.create(Index.MODEL, {"name": "m", "description": "x" * 100}, str(number))
        yield store


async def test_what_sqlite_reads_for_a_caller_is_counted_in_its_own_steps() -> None:
    async with closing(SQLiteStore(":memory:", max_search_steps=40)) as store:
        for number in range(300):
            await store.create(Index.MODEL, {}, str(number))
        with pytest.raises(InvalidRequest, match="takes more than 40 steps"):
            await store.search_for_caller(Index.MODEL, {"size": 0})
        assert (await store.search(Index.MODEL, {"size": 0}))["hits"]["total"]["value"] == 300


async def test_an_ordinary_search_of_many_documents_has_its_steps() -> None:
    async with closing(SQLiteStore(":memory:", max_search_steps=500)) as store:
        for number in range(300):
            await store.create(Index.TASK, {"state": "COMPLETED", "create_time": number}, str(number))
        filters = [{"term": {"state": "COMPLETED"}}, {"terms": {"model_id": ["m"]}}]
        body = {"query": {"bool": {"must_not": filters[1:], "filter": filters[:1]}}, "sort": [{"create_time": "desc"}]}
        assert (await store.search_for_caller(Index.TASK, body))["hits"]["total"]["value"] == 300


async def test_only_searches_of_callers_have_so_few_steps(store: SQLiteStore) -> None:
    body = any_of([{"exists": {"field": f"f{number}"}} for number in range(100)])
    with pytest.raises(InvalidRequest, match="takes more than 3,600 steps"):
        await store.search_for_caller(Index.MODEL, body)
    assert (await store.search(Index.MODEL, body))["hits"]["hits"] == []
    assert len((await store.search_for_caller(Index.MODEL, {}))["hits"]["hits"]) == 10


async def test_nothing_else_waits_for_a_callers_search_and_too_many_are_turned_away(store: SQLiteStore) -> None:
    release = threading.Event()
    held = asyncio.create_task(store._searches_of_callers.run(lambda db: release.wait()))
    try:
        waiting = [asyncio.create_task(store.search_for_caller(Index.MODEL, {})) for _ in range(MAX_SEARCHES)]
        await asyncio.sleep(0)
        with pytest.raises(Throttled, match=f"{MAX_SEARCHES} searches run or wait in this worker already") as raised:
            await store.search_for_caller(Index.MODEL, {})
        assert (raised.value.retry_after, raised.value.type) == ("1", "rejected_execution_exception")
        await store.put(Index.MODEL, "new", {"name": "new"})
        assert await store.get(Index.MODEL, "new") is not None
        assert (await store.search(Index.MODEL, {"size": 0}))["hits"]["total"]["value"] == 21
        await store.ping()
        waiting.pop().cancel()
        assert not any(task.done() for task in waiting)
    finally:
        release.set()
    await held
    totals = {(await task)["hits"]["total"]["value"] for task in waiting}
    assert totals == {21}
    assert len((await store.search_for_caller(Index.MODEL, {}))["hits"]["hits"]) == 10


@pytest.mark.parametrize("field", ["parameters.secret_word", "unknown.secret_word", "secret_word.keyword"])
async def test_a_sort_says_nothing_of_documents_that_are_not_found(field: str) -> None:
    hidden = Document("h", {"name": "hidden", "parameters": {"secret_word": "x"}, "unknown": {"secret_word": "x"},
                            "secret_word": "x"}, 1, 0, 1)  # fmt: skip
    shown = Document("s", {"name": "shown", "parameters": {"model": "m"}}, 1, 1, 1)

    def outcome(*documents: Document) -> object:
        body = {"query": {"bool": {"filter": {"term": {"name": "shown"}}}}, "sort": [field]}
        try:
            return search(Index.CONNECTOR, "c", documents, body)["hits"]
        except InvalidRequest as error:
            return error.reason

    assert outcome(hidden, shown) == outcome(shown)
