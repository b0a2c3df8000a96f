"""Helpers of the use cases: lookup, optimistic rewrite, fields of bodies, and the node id."""

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Conflict, Internal, InvalidRequest, NotFound
from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.registry.node import NODE_DOCUMENT, node_id
from opensearch_ml_stream.plugin.registry.stored_documents import (
    MAX_ATTEMPTS,
    Json,
    connector_of,
    existing,
    existing_connector,
    existing_model,
    find,
    flag_of,
    in_order,
    object_of,
    rewrite,
    string_of,
    strings_of,
)
from opensearch_ml_stream.plugin.store import Document, Index, Store, Written
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from tests.registry.registry_setup import closing

MISSING = NotFound("missing")


class BusyStore(SQLiteStore):
    """A store to which another writer writes before each of the next guarded writes."""

    def __init__(self) -> None:
        super().__init__(":memory:")
        self.others = 0

    async def put(self, index: Index, id: str, source: Any, **guard: Any) -> Written:
        if guard and self.others:
            self.others -= 1
            document = await self.get(index, id)
            assert document is not None
            await super().put(index, id, {**document.source, "others": document.source.get("others", 0) + 1})
        return await super().put(index, id, source, **guard)


@pytest.fixture
async def store() -> AsyncIterator[BusyStore]:
    store = BusyStore()
    async with closing(store):
        yield store


async def test_a_document_is_returned_or_the_callers_error_raised(store: Store) -> None:
    await store.create(Index.TASK, {"a": 1}, "t")
    assert (await existing(store, Index.TASK, "t", MISSING)).source == {"a": 1}
    with pytest.raises(NotFound) as raised:
        await existing(store, Index.TASK, "x", MISSING)
    assert raised.value is MISSING


async def test_models_and_connectors_are_missed_in_ml_commons_words(store: Store) -> None:
    await store.create(Index.MODEL, {}, "m")
    await store.create(Index.CONNECTOR, {}, "c")
    assert (await existing_model(store, "m")).id == "m"
    assert (await existing_connector(store, "c")).id == "c"
    with pytest.raises(NotFound, match=r"^Failed to find model$"):
        await existing_model(store, "c")
    with pytest.raises(NotFound, match=r"^Failed to find connector:m$"):
        await existing_connector(store, "m")


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        ({}, "The model has no connector"),
        ({"algorithm": "REMOTE", "connector_id": ""}, "The model has no connector"),
        ({"algorithm": "REMOTE", "connector_id": None, "connector": []}, "The model has no connector"),
        ({"algorithm": "TEXT_EMBEDDING"}, "The function category TEXT_EMBEDDING is not supported here"),
    ],
)
async def test_what_ml_commons_stored_and_cannot_be_called_is_refused(store: Store, model: Json, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        await connector_of(store, model)


def add_one(document: Document) -> dict[str, Any]:
    return {**document.source, "count": document.source["count"] + 1}


async def test_a_rewrite_that_another_writer_came_before_is_made_again(store: BusyStore) -> None:
    await store.create(Index.MODEL, {"count": 0}, "m")
    store.others = 3
    written = await rewrite(store, Index.MODEL, "m", add_one, MISSING)
    assert written is not None and written.response["_version"] == 5
    assert (await existing_model(store, "m")).source == {"count": 1, "others": 3}


async def test_a_rewrite_gives_up_when_others_always_come_first(store: BusyStore) -> None:
    await store.create(Index.MODEL, {"count": 0}, "m")
    store.others = MAX_ATTEMPTS
    with pytest.raises(Conflict):
        await rewrite(store, Index.MODEL, "m", add_one, MISSING)
    assert (await existing_model(store, "m")).source == {"count": 0, "others": MAX_ATTEMPTS}


async def test_a_rewrite_that_is_not_needed_writes_nothing(store: BusyStore) -> None:
    written = await store.create(Index.MODEL, {}, "m")
    assert await rewrite(store, Index.MODEL, "m", lambda document: None, MISSING) is None
    assert not await store.changed(Index.MODEL, "m", written.seq_no, written.primary_term)


async def test_a_rewrite_of_nothing_raises_the_callers_error(store: BusyStore) -> None:
    with pytest.raises(NotFound) as raised:
        await rewrite(store, Index.MODEL, "m", add_one, MISSING)
    assert raised.value is MISSING


async def test_documents_are_found_by_a_whole_string_only(store: Store) -> None:
    for id, name in (("a", "GPT mini"), ("b", "GPT"), ("c", "gpt mini"), ("d", "GPT mini")):
        await store.create(Index.MODEL_GROUP, {"name": name}, id)
    assert [id for id, _ in await find(store, Index.MODEL_GROUP, "name", "GPT mini")] == ["a", "d"]
    assert await find(store, Index.MODEL_GROUP, "name", "none") == []


def test_fields_are_shown_in_the_given_order_then_all_others() -> None:
    source = {"z": 0, "b": 1, "n": None, "a": False, "y": None}
    assert list(in_order(source, ("a", "n", "gone", "b")).items()) == [("a", False), ("b", 1), ("z", 0)]


def test_the_clock_is_in_milliseconds_since_1970() -> None:
    before, now, after = time.time_ns() // 1_000_000, now_millis(), time.time_ns() // 1_000_000
    assert before <= now <= after


@pytest.mark.parametrize(
    ("value", "string"), [("x", "x"), ("", ""), (None, None), (True, "true"), (False, "false"), (3, "3"), (2.5, "2.5")]
)
def test_a_number_or_boolean_counts_as_a_string(value: Any, string: str | None) -> None:
    assert string_of({"f": value}, "f") == string
    assert string_of({}, "f") is None


@pytest.mark.parametrize(
    ("value", "flag"), [(True, True), (False, False), ("true", True), ("false", False), (None, None)]
)
def test_a_flag_may_be_a_string(value: Any, flag: bool | None) -> None:
    assert flag_of({"f": value}, "f") is flag


def test_objects_and_arrays_of_strings_are_taken_as_they_are() -> None:
    assert (object_of({"f": {"a": 1}}, "f"), object_of({"f": None}, "f"), object_of({}, "f")) == ({"a": 1}, None, None)
    assert (strings_of({"f": ["a"]}, "f"), strings_of({"f": []}, "f"), strings_of({}, "f")) == (["a"], [], None)


@pytest.mark.parametrize(
    ("read", "value", "reason"),
    [
        (string_of, {}, "f must be a string"),
        (string_of, ["x"], "f must be a string"),
        (object_of, "x", "f must be an object"),
        (object_of, [], "f must be an object"),
        (flag_of, "yes", "f must be true or false"),
        (flag_of, 1, "f must be true or false"),
        (strings_of, "x", "f must be an array of strings"),
        (strings_of, ["x", 1], "f must be an array of strings"),
    ],
)
def test_a_field_of_another_type_is_named(read: Any, value: Any, reason: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read({"f": value}, "f")
    assert raised.value.reason == reason


async def test_the_node_id_is_made_once_for_all_who_share_the_store(store: Store) -> None:
    made = await node_id(store, lambda: 5)
    assert len(made) == 22
    assert await node_id(store, lambda: 6) == made
    document = await store.get(Index.CONFIG, NODE_DOCUMENT)
    assert document is not None
    assert document.source == {
        "config_type": NODE_DOCUMENT,
        "ml_configuration": {"node_id": made},
        "create_time": 5,
    }


async def test_of_two_who_make_the_node_id_at_once_both_get_the_first() -> None:
    class Raced(SQLiteStore):
        async def create(self, index: Index, source: Any, id: str | None = None) -> Written:
            if await self.get(index, id or "") is None:
                await super().create(index, {**source, "ml_configuration": {"node_id": "theirs"}}, id)
            return await super().create(index, source, id)

    async with closing(Raced(":memory:")) as raced:
        assert await node_id(raced, lambda: 0) == "theirs"


async def test_a_node_document_without_an_id_says_what_to_do(store: Store) -> None:
    await store.create(Index.CONFIG, {"ml_configuration": {}}, NODE_DOCUMENT)
    with pytest.raises(Internal, match=r"has no ml_configuration\.node_id; delete it$"):
        await node_id(store, lambda: 0)
