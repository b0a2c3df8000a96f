"""The contract of every store for reading and writing, whichever it is."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Conflict, InvalidRequest, MLStreamError
from opensearch_ml_stream.plugin.store import ABSENT_SEQUENCE, Index, Store
from opensearch_ml_stream.plugin.store.open_store import open_store


def ids(response: Mapping[str, Any]) -> list[str]:
    return [hit["_id"] for hit in response["hits"]["hits"]]


async def test_a_store_that_was_never_written_to_is_empty(store: Store, index_prefix: str) -> None:
    await store.ping()
    assert await store.get(Index.MODEL, "m") is None
    assert await store.changed(Index.MODEL, "m", 0, 1)
    response = await store.search(Index.MODEL, {"query": {"match_all": {}}})
    assert response["hits"]["hits"] == [] and response["hits"]["total"] == {"value": 0, "relation": "eq"}
    deleted = await store.delete(Index.MODEL, "m")
    assert deleted.response["result"] == "not_found" and deleted.response["_index"] == f"{index_prefix}{Index.MODEL}"
    await store.create(Index.TASK, {"state": "CREATED"})


async def test_what_is_created_is_read_back_as_it_was(store: Store, index_prefix: str) -> None:
    source = {"name": "n", "parameters": {"a": "[1, 2]", "b": "\u2028 é 🙂"}, "actions": [{"headers": {"x": "y"}}, {}]}
    written = await store.create(Index.CONNECTOR, source)
    assert re.fullmatch(r"[A-Za-z0-9_-]{20}", written.id)
    assert (written.response["_index"], written.response["_id"]) == (f"{index_prefix}{Index.CONNECTOR}", written.id)
    assert written.response["result"] == "created" and written.response["forced_refresh"] is True
    document = await store.get(Index.CONNECTOR, written.id)
    assert document is not None and document.source == source
    assert (document.id, document.version) == (written.id, 1)
    assert (document.seq_no, document.primary_term) == (written.seq_no, written.primary_term)


async def test_an_id_can_be_used_only_once(store: Store) -> None:
    await store.create(Index.MODEL, {"name": "first"}, id="mine")
    with pytest.raises(Conflict, match="mine"):
        await store.create(Index.MODEL, {"name": "second"}, id="mine")
    document = await store.get(Index.MODEL, "mine")
    assert document is not None and document.source == {"name": "first"}


async def test_ids_may_hold_any_character(store: Store) -> None:
    id = "a b/c?d#é%41"
    await store.create(Index.MODEL, {"name": "odd"}, id=id)
    document = await store.get(Index.MODEL, id)
    assert document is not None and document.id == id
    assert (await store.delete(Index.MODEL, id)).response["result"] == "deleted"


async def test_no_document_has_an_empty_id(store: Store) -> None:
    await store.create(Index.MODEL, {"name": "n"})
    assert await store.get(Index.MODEL, "") is None
    assert not await store.changed(Index.MODEL, "", *ABSENT_SEQUENCE)
    assert (await store.delete(Index.MODEL, "")).response["result"] == "not_found"


async def test_a_put_replaces_the_whole_document(store: Store) -> None:
    first = await store.put(Index.MODEL, "m", {"name": "a", "description": "b"})
    second = await store.put(Index.MODEL, "m", {"name": "c"})
    assert (first.response["result"], second.response["result"]) == ("created", "updated")
    assert (first.response["_version"], second.response["_version"]) == (1, 2)
    document = await store.get(Index.MODEL, "m")
    assert document is not None and document.source == {"name": "c"} and document.version == 2


async def test_a_deleted_document_is_not_found_any_more(store: Store) -> None:
    await store.create(Index.MODEL, {"name": "a"}, id="m")
    deleted = await store.delete(Index.MODEL, "m")
    assert deleted.response["result"] == "deleted"
    assert await store.get(Index.MODEL, "m") is None
    assert ids(await store.search(Index.MODEL, {})) == []
    assert (await store.delete(Index.MODEL, "m")).response["result"] == "not_found"
    await store.create(Index.MODEL, {"name": "b"}, id="m")


async def test_changed_is_true_after_every_later_write(store: Store) -> None:
    first = await store.create(Index.MODEL, {"name": "a"}, id="m")
    other = await store.create(Index.MODEL, {"name": "a"}, id="other")
    assert not await store.changed(Index.MODEL, "m", first.seq_no, first.primary_term)
    assert other.seq_no > first.seq_no
    second = await store.put(Index.MODEL, "m", {"name": "a"})
    assert await store.changed(Index.MODEL, "m", first.seq_no, first.primary_term)
    assert not await store.changed(Index.MODEL, "m", second.seq_no, second.primary_term)
    await store.delete(Index.MODEL, "m")
    assert await store.changed(Index.MODEL, "m", second.seq_no, second.primary_term)
    assert not await store.changed(Index.MODEL, "m", *ABSENT_SEQUENCE)
    third = await store.create(Index.MODEL, {"name": "a"}, id="m")
    assert await store.changed(Index.MODEL, "m", *ABSENT_SEQUENCE)
    assert await store.changed(Index.MODEL, "m", second.seq_no, second.primary_term)
    assert not await store.changed(Index.MODEL, "m", third.seq_no, third.primary_term)


async def test_of_two_writers_that_read_the_same_state_one_is_refused(store: Store) -> None:
    read = await store.create(Index.MODEL, {"count": 0}, id="m")
    seen = {"if_seq_no": read.seq_no, "if_primary_term": read.primary_term}
    await store.put(Index.MODEL, "m", {"count": 1}, **seen)
    with pytest.raises(Conflict):
        await store.put(Index.MODEL, "m", {"count": 2}, **seen)
    document = await store.get(Index.MODEL, "m")
    assert document is not None and document.source == {"count": 1}


async def test_a_guarded_write_does_not_bring_back_what_was_deleted(store: Store) -> None:
    read = await store.create(Index.MODEL, {"name": "a"}, id="m")
    await store.delete(Index.MODEL, "m")
    with pytest.raises(Conflict):
        await store.put(Index.MODEL, "m", {}, if_seq_no=read.seq_no, if_primary_term=read.primary_term)
    assert await store.get(Index.MODEL, "m") is None


async def test_no_update_is_lost_between_writers_that_try_again(store_url: str, index_prefix: str) -> None:
    async def add(store: Store) -> None:
        for _ in range(200):
            read = await store.get(Index.MODEL, "m")
            assert read is not None
            more = {"latest_version": read.source["latest_version"] + 1}
            try:
                await store.put(Index.MODEL, "m", more, if_seq_no=read.seq_no, if_primary_term=read.primary_term)
            except Conflict:
                continue
            return
        raise AssertionError("never got its turn")

    async with open_store(store_url, index_prefix) as one, open_store(store_url, index_prefix) as two:
        await one.create(Index.MODEL, {"latest_version": 0}, id="m")
        await asyncio.gather(*[add(store) for store in (one, two) * 4])
        document = await two.get(Index.MODEL, "m")
    assert document is not None and document.source == {"latest_version": 8}


async def test_two_first_writes_at_once_are_both_kept(store_url: str, index_prefix: str) -> None:
    async with open_store(store_url, index_prefix) as one, open_store(store_url, index_prefix) as two:
        await asyncio.gather(*[store.create(Index.MODEL, {"name": "x"}) for store in (one, two, one, two)])
        assert len(ids(await one.search(Index.MODEL, {}))) == 4


async def test_of_two_who_create_the_same_id_at_once_one_wins(store_url: str, index_prefix: str) -> None:
    async with open_store(store_url, index_prefix) as one, open_store(store_url, index_prefix) as two:
        outcomes = await asyncio.gather(
            *[store.create(Index.CONFIG, {"master_key": "k"}, id="k") for store in (one, two, one, two)],
            return_exceptions=True,
        )
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Conflict", "Conflict", "Conflict", "Written"]


async def test_a_change_through_one_store_is_seen_through_the_other(store_url: str, index_prefix: str) -> None:
    async with open_store(store_url, index_prefix) as one, open_store(store_url, index_prefix) as two:
        written = await one.create(Index.MODEL, {"name": "x"}, id="m")
        assert not await two.changed(Index.MODEL, "m", written.seq_no, written.primary_term)
        await two.put(Index.MODEL, "m", {"name": "y"})
        assert await one.changed(Index.MODEL, "m", written.seq_no, written.primary_term)
        assert ids(await one.search(Index.MODEL, {"query": {"match": {"name": "y"}}})) == ["m"]


async def test_indices_with_another_prefix_are_other_indices(store_url: str, index_prefix: str) -> None:
    async with open_store(store_url, index_prefix) as one, open_store(store_url, f"{index_prefix}-b") as two:
        await one.create(Index.MODEL, {"name": "x"}, id="m")
        assert await two.get(Index.MODEL, "m") is None


async def test_a_store_outlives_its_connection(store_url: str, index_prefix: str) -> None:
    async with open_store(store_url, index_prefix) as store:
        written = await store.create(Index.MODEL, {"name": "x"})
    async with open_store(store_url, index_prefix) as store:
        assert not await store.changed(Index.MODEL, written.id, written.seq_no, written.primary_term)


async def test_painless_gives_text_or_a_clear_refusal(store: Store) -> None:
    try:
        text = await store.run_painless("return params.docs[0] + '!'", {"docs": ["hello"]})
    except InvalidRequest as error:
        assert "OpenSearch" in error.reason and "hello" not in error.reason
    else:
        assert text == "hello!"


async def test_every_error_is_one_of_ours_and_quotes_no_value(store: Store) -> None:
    await store.create(Index.MODEL, {"name": "sk-secret"}, id="m")
    with pytest.raises(MLStreamError) as caught:
        await store.create(Index.MODEL, {"name": "sk-secret"}, id="m")
    assert "sk-secret" not in caught.value.reason
