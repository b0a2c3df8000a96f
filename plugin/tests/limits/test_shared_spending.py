"""Spending exchanged by servers through one store."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.token_spending import Amount
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.limits.shared_spending import (
    MAX_SERVERS,
    SharedSpending,
    document_id,
    exchanging_spending,
)
from opensearch_ml_stream.plugin.limits.spending_table import Counter
from opensearch_ml_stream.plugin.store import Index
from tests.limits.budget_servers import END, NOW, Clock, FaultyStore, server

ANN = Counter("m", "ann", 60)
ID = document_id(ANN, END)


@pytest.fixture
async def store() -> AsyncIterator[FaultyStore]:
    store = FaultyStore()
    yield store
    await store.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def known(shared: SharedSpending) -> Amount:
    """What a call would find."""
    [spending] = shared.add([ANN], Amount())
    spending = await shared.read(ANN, spending) if list(shared.stale([spending])) else spending
    return Amount(spending.tokens, spending.cost)


async def stored(store: FaultyStore) -> dict[str, object]:
    document = await store.get(Index.SPENDING, ID)
    assert document is not None
    return dict(document.source)


async def test_a_server_writes_its_own_and_reads_the_others(tmp_path: Path, store: FaultyStore, clock: Clock) -> None:
    one, other = server(tmp_path, store, clock, "one"), server(tmp_path, store, clock, "other")
    one.add([ANN], Amount(10, 0.5))
    other.add([ANN], Amount(5, 0.25))
    await one.exchange()
    await other.exchange()
    assert await known(other) == Amount(15, 0.75)
    assert await known(one) == Amount(10, 0.5)
    clock.now += 1000
    await one.exchange()
    assert await known(one) == Amount(15, 0.75)
    assert await stored(store) == {
        "model_id": "m",
        "user": "ann",
        "window_seconds": 60,
        "window_start": END - 60_000,
        "window_end": END,
        "delete_after": END + 3_600_000,
        "tokens": 15,
        "cost": 0.75,
        "servers": {
            "one": {"tokens": 10, "cost": 0.5, "written_at": NOW},
            "other": {"tokens": 5, "cost": 0.25, "written_at": NOW},
        },
    }


async def test_a_new_server_reads_what_was_spent_before_its_first_call(
    tmp_path: Path, store: FaultyStore, clock: Clock
) -> None:
    before = server(tmp_path, store, clock, "before")
    before.add([ANN], Amount(10))
    await before.exchange()
    assert await known(server(tmp_path, store, clock, "after")) == Amount(10)


async def test_calls_in_a_row_read_nothing_and_write_nothing(tmp_path: Path, store: FaultyStore, clock: Clock) -> None:
    one = server(tmp_path, store, clock, "one")
    await known(one)
    reads = store.reads
    for _ in range(10):
        one.add([ANN], Amount(1))
        await known(one)
    assert (store.reads - reads, store.writes) == (0, 0)
    clock.now += 3_001
    await known(one)
    assert (store.reads - reads, store.writes) == (1, 0)


async def test_one_worker_of_a_server_exchanges_for_all(tmp_path: Path, store: FaultyStore, clock: Clock) -> None:
    workers = [server(tmp_path, store, clock, "one") for _ in range(3)]
    for worker in workers:
        worker.add([ANN], Amount(10))
    for worker in workers:
        await worker.exchange()
    assert store.writes == 1
    assert (await stored(store))["tokens"] == 30


async def test_nothing_is_written_for_what_has_not_changed_and_nothing_read_for_what_is_not_used(
    tmp_path: Path, store: FaultyStore, clock: Clock
) -> None:
    one = server(tmp_path, store, clock, "one")
    one.add([ANN], Amount(10))
    for _ in range(15):
        await one.exchange()
        clock.now += 1000
    assert store.writes == 1
    assert store.reads == 11


async def test_a_write_without_a_response_is_repeated_and_counts_once(
    tmp_path: Path, store: FaultyStore, clock: Clock
) -> None:
    one, other = server(tmp_path, store, clock, "one"), server(tmp_path, store, clock, "other")
    one.add([ANN], Amount(10))
    store.loses_responses = True
    await one.exchange()
    store.loses_responses = False
    clock.now += 1000
    await one.exchange()
    assert await known(other) == Amount(10)


async def test_another_writer_that_was_quicker_is_read_and_kept(
    tmp_path: Path, store: FaultyStore, clock: Clock
) -> None:
    one = server(tmp_path, store, clock, "one")
    one.add([ANN], Amount(10))
    store.conflicts = 2
    await one.exchange()
    assert (await stored(store))["tokens"] == 10


async def test_while_the_store_is_down_the_own_spending_counts_and_no_call_waits(
    tmp_path: Path, store: FaultyStore, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = server(tmp_path, store, clock, "one"), server(tmp_path, store, clock, "other")
    other.add([ANN], Amount(100))
    await other.exchange()
    one.add([ANN], Amount(10))
    await one.exchange()
    store.is_down = True
    clock.now += 4_000
    reads = store.reads
    for _ in range(3):
        one.add([ANN], Amount(1))
        assert (await known(one)).tokens > 110
    await one.exchange()
    assert store.reads - reads == 2
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    store.is_down = False
    clock.now += 1000
    await one.exchange()
    assert (await stored(store))["tokens"] == 113


async def test_a_document_that_an_operator_deletes_forgives_what_was_spent(
    tmp_path: Path, store: FaultyStore, clock: Clock
) -> None:
    one, other = server(tmp_path, store, clock, "one"), server(tmp_path, store, clock, "other")
    for shared in (one, other):
        shared.add([ANN], Amount(10))
        await shared.exchange()
    await store.delete(Index.SPENDING, ID)
    one.add([ANN], Amount(1))
    clock.now += 1000
    for shared in (one, other, one):
        await shared.exchange(is_last=True)
    assert await known(one) == await known(other) == Amount(1)


async def test_the_entries_of_servers_that_have_ended_become_one(
    tmp_path: Path, store: FaultyStore, clock: Clock
) -> None:
    day = Counter("m", None, 86_400)
    for number in range(MAX_SERVERS + 1):
        shared = server(tmp_path, store, clock, f"server-{number}")
        shared.add([day], Amount(1))
        await shared.exchange()
        clock.now += 60_000
    document = await store.get(Index.SPENDING, document_id(day, day.window_end(NOW)))
    assert document is not None
    assert document.source["tokens"] == MAX_SERVERS + 1
    assert len(document.source["servers"]) == 61
    assert document.source["servers"][""]["tokens"] == MAX_SERVERS + 1 - 60
    first = server(tmp_path, store, clock, "server-0")  # it had not ended
    assert (await first.read(day, first.add([day], Amount(1))[0])).tokens == MAX_SERVERS + 2


async def test_documents_of_past_windows_are_swept(tmp_path: Path, store: FaultyStore, clock: Clock) -> None:
    one = server(tmp_path, store, clock, "one")
    one.add([ANN], Amount(10))
    await one.exchange()
    clock.now = END + 3_600_000
    await one.sweep()
    assert (await stored(store))["tokens"] == 10
    clock.now += 600_001
    await one.sweep()
    assert await store.get(Index.SPENDING, ID) is None


async def test_the_last_exchange_comes_at_the_end(tmp_path: Path, store: FaultyStore, clock: Clock) -> None:
    one = server(tmp_path, store, clock, "one")
    async with exchanging_spending(one, BackgroundTasks()):
        await known(one)
        one.add([ANN], Amount(10))
    assert (await stored(store))["tokens"] == 10
