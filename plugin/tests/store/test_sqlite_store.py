"""The embedded store in memory and in files: documents, versions, conflicts, and what it says when it is broken."""

import asyncio
import base64
import re
import sqlite3
import threading
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Conflict, Internal, InvalidRequest, Unavailable
from opensearch_ml_stream.plugin.store import Index, Written, sqlite_connection
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from tests.descriptors import without_descriptors


@pytest.fixture
async def store() -> AsyncIterator[SQLiteStore]:
    store = SQLiteStore(":memory:", "test-")
    yield store
    await store.close()


async def source(store: SQLiteStore, id: str = "m") -> Any:
    document = await store.get(Index.MODEL, id)
    return None if document is None else document.source


def if_unchanged(written: Written) -> dict[str, int]:
    """Write only if nobody else has written since."""
    return {"if_seq_no": written.seq_no, "if_primary_term": written.primary_term}


async def test_an_empty_store_has_nothing_and_is_up(store: SQLiteStore) -> None:
    await store.ping()
    assert await store.get(Index.MODEL, "m") is None
    assert await store.changed(Index.MODEL, "m", 0, 1)
    assert (await store.search(Index.MODEL, {}))["hits"]["hits"] == []
    assert store.cluster is None


async def test_a_document_comes_back_as_it_was_created(store: SQLiteStore) -> None:
    document = {"name": "é \u2028 🙂", "nested": {"list": [1, 2.5, None, True, {}]}}
    written = await store.create(Index.CONNECTOR, document)
    assert re.fullmatch(r"[A-Za-z0-9_-]{20}", written.id)
    assert written.response == {
        "_index": "test-.plugins-ml-connector",
        "_id": written.id,
        "_version": 1,
        "result": "created",
        "forced_refresh": True,
        "_shards": {"total": 1, "successful": 1, "failed": 0},
        "_seq_no": 0,
        "_primary_term": 1,
    }
    found = await store.get(Index.CONNECTOR, written.id)
    assert found is not None and found.source == document
    assert (found.id, found.version, found.seq_no, found.primary_term) == (written.id, 1, 0, 1)
    assert await store.get(Index.MODEL, written.id) is None


async def test_an_id_that_the_store_makes_begins_with_its_time(store: SQLiteStore) -> None:
    before = time.time_ns() // 1_000_000
    ids = [(await store.create(Index.TASK, {})).id for _ in range(3)]
    after = time.time_ns() // 1_000_000
    times = [int.from_bytes(base64.urlsafe_b64decode(id)[:6], "big") for id in ids]
    assert before <= times[0] <= times[1] <= times[2] <= after
    assert len({id[8:] for id in ids}) == 3


async def test_an_id_can_be_taken_once(store: SQLiteStore) -> None:
    await store.create(Index.MODEL, {"name": "first"}, "m")
    with pytest.raises(Conflict, match=r"^\[m\]: version conflict, document already exists$") as raised:
        await store.create(Index.MODEL, {"name": "second"}, "m")
    assert raised.value.type == "version_conflict_engine_exception"
    assert await source(store) == {"name": "first"}


async def test_a_put_replaces_the_whole_document_and_counts_its_version(store: SQLiteStore) -> None:
    first = await store.put(Index.MODEL, "m", {"a": 1, "b": 2})
    second = await store.put(Index.MODEL, "m", {"a": 3})
    assert [(written.response["result"], written.response["_version"]) for written in (first, second)] == [
        ("created", 1),
        ("updated", 2),
    ]
    assert await source(store) == {"a": 3}


async def test_sequence_numbers_count_every_write_of_one_index(store: SQLiteStore) -> None:
    numbers = [
        (await store.create(Index.MODEL, {}, "a")).seq_no,
        (await store.put(Index.MODEL, "b", {})).seq_no,
        (await store.delete(Index.MODEL, "a")).seq_no,
        (await store.delete(Index.MODEL, "gone")).seq_no,
        (await store.create(Index.TASK, {}, "a")).seq_no,
    ]
    assert numbers == [0, 1, 2, 3, 0]


async def test_a_guarded_put_is_refused_when_another_came_first(store: SQLiteStore) -> None:
    first = await store.create(Index.MODEL, {"count": 0}, "m")
    await store.put(Index.MODEL, "m", {"count": 1}, **if_unchanged(first))
    for stale in (if_unchanged(first), {**if_unchanged(first), "if_primary_term": 2}):
        with pytest.raises(Conflict, match=r"^\[m\]: version conflict, the document has changed") as raised:
            await store.put(Index.MODEL, "m", {"count": 2}, **stale)
        assert raised.value.type == "version_conflict_engine_exception"
    assert await source(store) == {"count": 1}


async def test_a_refused_write_takes_no_sequence_number(store: SQLiteStore) -> None:
    first = await store.create(Index.MODEL, {}, "m")
    with pytest.raises(Conflict):
        await store.create(Index.MODEL, {}, "m")
    assert (await store.put(Index.MODEL, "m", {})).seq_no == first.seq_no + 1


async def test_a_guarded_put_does_not_bring_back_what_was_deleted(store: SQLiteStore) -> None:
    first = await store.create(Index.MODEL, {}, "m")
    await store.delete(Index.MODEL, "m")
    with pytest.raises(Conflict):
        await store.put(Index.MODEL, "m", {}, **if_unchanged(first))
    assert await source(store) is None


async def test_changed_tells_a_write_a_delete_and_another_primary_term(store: SQLiteStore) -> None:
    first = await store.create(Index.MODEL, {}, "m")
    assert not await store.changed(Index.MODEL, "m", first.seq_no, first.primary_term)
    assert await store.changed(Index.MODEL, "m", first.seq_no, 2)
    second = await store.put(Index.MODEL, "m", {})
    assert await store.changed(Index.MODEL, "m", first.seq_no, first.primary_term)
    assert not await store.changed(Index.MODEL, "m", second.seq_no, second.primary_term)
    await store.delete(Index.MODEL, "m")
    assert await store.changed(Index.MODEL, "m", second.seq_no, second.primary_term)


async def test_a_delete_says_whether_there_was_something(store: SQLiteStore) -> None:
    await store.create(Index.MODEL, {}, "m")
    deleted = await store.delete(Index.MODEL, "m")
    assert (deleted.response["result"], deleted.response["_version"]) == ("deleted", 2)
    again = await store.delete(Index.MODEL, "m")
    assert (again.response["result"], again.response["_version"]) == ("not_found", 1)
    assert await source(store) is None


async def test_a_search_sees_every_write_of_its_index_in_their_order(store: SQLiteStore) -> None:
    for id in ("b", "a", "c"):
        await store.create(Index.MODEL, {"name": id}, id)
    await store.create(Index.TASK, {}, "t")
    await store.put(Index.MODEL, "b", {"name": "changed"})
    response = await store.search(Index.MODEL, {})
    assert [(hit["_id"], hit["_seq_no"]) for hit in response["hits"]["hits"]] == [("a", 1), ("c", 2), ("b", 3)]
    assert response["hits"]["hits"][0]["_index"] == "test-.plugins-ml-model"


async def test_scripts_and_stop_words_need_an_opensearch(store: SQLiteStore) -> None:
    with pytest.raises(InvalidRequest, match=r"^Painless scripts are run by OpenSearch: the embedded store cannot"):
        await store.run_painless("return 1", {})
    with pytest.raises(InvalidRequest, match=r"^Stop words are searched by OpenSearch: the embedded store cannot"):
        await store.percolate("words", {})


async def test_two_stores_on_one_file_lose_no_update(tmp_path: Path) -> None:
    stores = [SQLiteStore(str(tmp_path / "store.db")) for _ in range(2)]
    await stores[0].create(Index.MODEL, {"count": 0}, "m")

    async def add(store: SQLiteStore) -> None:
        while True:
            document = await store.get(Index.MODEL, "m")
            assert document is not None
            guard = {"if_seq_no": document.seq_no, "if_primary_term": document.primary_term}
            try:
                await store.put(Index.MODEL, "m", {"count": document.source["count"] + 1}, **guard)
            except Conflict:
                continue
            return

    await asyncio.gather(*[add(store) for store in stores * 5])
    assert await source(stores[1]) == {"count": 10}
    for store in stores:
        await store.close()


async def test_a_new_file_and_its_folder_are_for_this_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "store.db"
    store = SQLiteStore(str(path))
    await store.create(Index.MODEL, {}, "m")
    await store.close()
    assert (path.parent.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
    again = SQLiteStore(str(path))
    assert await source(again) == {}
    await again.close()


async def test_a_file_that_is_no_database_is_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_text("this is no database, " * 100)
    store = SQLiteStore(str(path))
    with pytest.raises(
        Unavailable, match=r"^The embedded store .*store\.db does not respond \(file is not a database\)"
    ):
        await store.ping()
    await store.close()


async def test_a_damaged_document_is_named(tmp_path: Path) -> None:
    store = SQLiteStore(str(tmp_path / "store.db"))
    await store.create(Index.MODEL, {}, "m")
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as other:
        other.execute("UPDATE documents SET source = ?", (b'{"name',))
    with pytest.raises(Internal, match=r"^The document m in the embedded store is damaged"):
        await store.get(Index.MODEL, "m")
    await store.put(Index.MODEL, "n", {})
    await store.close()


@pytest.mark.parametrize("becomes", ["removed", "replaced"])
async def test_a_file_that_is_taken_away_takes_no_writes_that_would_be_lost(tmp_path: Path, becomes: str) -> None:
    path, backup = tmp_path / "store.db", tmp_path / "backup.db"
    for file in (backup, path):
        store = SQLiteStore(str(file))
        await store.create(Index.MODEL, {"of": file.name}, "m")
        if file is backup:
            await store.close()
    aside = path.rename(tmp_path / "aside.db")
    if becomes == "replaced":
        backup.rename(path)
    for call in (store.get(Index.MODEL, "m"), store.create(Index.MODEL, {}), store.ping()):
        with pytest.raises(Unavailable, match=r"was removed or replaced while it was open.*delete .*store\.db-wal"):
            await call
    aside.replace(path)
    assert await source(store) == {"of": "store.db"}
    await store.close()


async def test_what_was_acknowledged_is_on_the_disk(tmp_path: Path) -> None:
    store = SQLiteStore(str(tmp_path / "store.db"))
    assert await store._run(lambda db: db.execute("PRAGMA journal_mode").fetchone()) == ("wal",)
    assert await store._run(lambda db: db.execute("PRAGMA synchronous").fetchone()) == (2,)  # FULL
    await store.close()


async def test_a_full_disk_takes_no_writes_until_it_has_space_again(tmp_path: Path) -> None:
    store = SQLiteStore(str(tmp_path / "store.db"))
    await store.create(Index.MODEL, {"name": "kept"}, "m")
    pages = await store._run(lambda db: db.execute("PRAGMA page_count").fetchone()[0])
    await store._run(lambda db: db.execute(f"PRAGMA max_page_count = {pages}").fetchone())
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"\(database or disk is full\).* that the disk is not full"):
            await store.put(Index.MODEL, "m", {"name": "x" * 100_000})
    assert await source(store) == {"name": "kept"}
    await store._run(lambda db: db.execute("PRAGMA max_page_count = 1000000").fetchone())
    await store.put(Index.MODEL, "m", {"name": "x" * 100_000})
    await store.close()


async def test_a_store_that_cannot_be_opened_as_no_descriptor_is_left_is_opened_later(tmp_path: Path) -> None:
    store = SQLiteStore(str(tmp_path / "store.db"))
    with without_descriptors(), pytest.raises(Unavailable, match="Too many open files"):
        await store.get(Index.MODEL, "m")
    await store.put(Index.MODEL, "m", {"name": "kept"})
    with without_descriptors():
        assert await source(store) == {"name": "kept"}
        await store.put(Index.MODEL, "m", {"name": "changed"})
    assert await source(store) == {"name": "changed"}
    await store.close()


async def test_a_store_for_which_no_thread_can_be_started_is_unavailable_until_one_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    store = SQLiteStore(str(tmp_path / "store.db"))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(Unavailable, match="cannot be asked now: can't start new thread"):
            await store.get(Index.MODEL, "m")
    assert await store.get(Index.MODEL, "m") is None
    await store.close()


async def test_a_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = SQLiteStore(str(tmp_path / "file" / "store.db"))
    with pytest.raises(Unavailable, match="check that the file and its folder can be read and written"):
        await store.get(Index.MODEL, "m")
    await store.close()


async def test_opening_tries_again_while_another_process_has_the_file_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_connection, "_LOCK_WAIT_SECONDS", 0)  # as SQLite itself does in some cases
    path = tmp_path / "store.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("CREATE TABLE other (value)")
    other.execute("BEGIN EXCLUSIVE")
    store = SQLiteStore(str(path))
    opening = asyncio.create_task(store.ping())
    await asyncio.sleep(0.05)
    assert not opening.done()
    other.execute("COMMIT")
    other.close()
    await opening
    await store.close()


async def test_a_store_can_be_closed_that_was_never_used() -> None:
    await SQLiteStore(":memory:").close()
