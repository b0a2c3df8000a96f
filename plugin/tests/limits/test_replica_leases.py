"""Leases of servers in a store that they share, and the count that the workers of one server share."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, closing
from inspect import isawaitable
from itertools import count
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import Unavailable
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.limits import replica_leases
from opensearch_ml_stream.plugin.limits.replica_leases import (
    DELETED_AFTER,
    EXPIRED_AFTER,
    Lease,
    Replicas,
    SharedCount,
    counting_replicas,
    server_id,
)
from opensearch_ml_stream.plugin.store import Index
from tests.limits.flaky_store import FlakyStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[FlakyStore]:
    opened = FlakyStore(str(tmp_path / "store.db"))
    yield opened
    await opened.close()


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    (tmp_path / "one").mkdir()
    return tmp_path / "one"


@pytest.fixture
def other_runtime(tmp_path: Path) -> Path:
    (tmp_path / "other").mkdir()
    return tmp_path / "other"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_leases, "RENEW_SECONDS", 0.1)
    monkeypatch.setattr(replica_leases, "TIMEOUT_SECONDS", 20)
    monkeypatch.setattr(replica_leases, "RETRY_SECONDS", 0.02)
    monkeypatch.setattr(replica_leases, "READ_SECONDS", 0.02)


def lease(store: FlakyStore, server_id: str) -> Lease:
    return Lease(store, count().__next__, server_id)


async def lease_ids(store: FlakyStore) -> set[str]:
    return {hit["_id"] for hit in (await store.search(Index.LEASE, {}))["hits"]["hits"]}


async def reached(condition: Callable[[], object]) -> None:
    """Returns once the condition, which may be a coroutine function, is true."""
    for _ in range(2000):
        value = condition()
        if await value if isawaitable(value) else value:
            return
        await asyncio.sleep(0.01)
    pytest.fail("not true within 20 s")


@asynccontextmanager
async def started(path: Path, runtime: Path) -> AsyncIterator[tuple[Replicas, FlakyStore]]:
    """A worker of the server with that runtime folder, and its way to the store."""
    own = FlakyStore(str(path / "store.db"))
    try:
        async with counting_replicas(own, runtime, lambda: 1, BackgroundTasks()) as counted:
            yield counted, own
    finally:
        await own.close()


async def test_a_server_counts_itself_and_the_others_from_their_first_lease_on(store: FlakyStore) -> None:
    one, two, three = (lease(store, id) for id in ("one", "two", "three"))
    assert [await one.renew(), await two.renew(), await three.renew()] == [1, 2, 3]
    assert [await one.renew(), await two.renew()] == [3, 3]


async def test_a_lease_expires_when_so_many_looks_found_it_as_it_was(store: FlakyStore) -> None:
    stays, dies = lease(store, "stays"), lease(store, "dies")
    await dies.renew()
    assert [await stays.renew() for _ in range(EXPIRED_AFTER + 2)] == [2] * EXPIRED_AFTER + [1, 1]
    await dies.renew()  # it was only slow
    assert await stays.renew() == 2


async def test_the_clocks_of_hosts_are_not_compared(store: FlakyStore) -> None:
    behind, ahead = Lease(store, lambda: 1, "behind"), Lease(store, lambda: 10**15, "ahead")
    for _ in range(EXPIRED_AFTER + 2):
        await behind.renew()
        assert await ahead.renew() == 2
    assert await behind.renew() == 2


async def test_a_server_that_stops_is_not_counted_from_then_on(store: FlakyStore) -> None:
    stays, leaves = lease(store, "stays"), lease(store, "leaves")
    await leaves.renew()
    assert await stays.renew() == 2
    await leaves.leave()
    assert await stays.renew() == 1


async def test_a_lease_that_was_long_not_renewed_is_deleted(store: FlakyStore) -> None:
    await lease(store, "dies").renew()
    stays = lease(store, "stays")
    for _ in range(DELETED_AFTER):
        await stays.renew()
        assert await lease_ids(store) == {"stays", "dies"}
    await stays.renew()
    assert await lease_ids(store) == {"stays"}


async def test_a_deleted_lease_comes_back_with_its_next_renewal(store: FlakyStore) -> None:
    one, two = lease(store, "one"), lease(store, "two")
    await two.renew()
    await store.delete(Index.LEASE, "two")
    assert await one.renew() == 1
    await two.renew()
    assert await one.renew() == 2


@pytest.mark.parametrize("broken", ["down_for_writes", "down_for_searches"])
async def test_nobody_expires_while_an_observer_cannot_look(store: FlakyStore, broken: str) -> None:
    one, two = lease(store, "one"), lease(store, "two")
    await two.renew()
    for _ in range(EXPIRED_AFTER):
        assert await one.renew() == 2
    setattr(store, broken, True)
    with pytest.raises(Unavailable):
        await one.renew()
    setattr(store, broken, False)
    for _ in range(EXPIRED_AFTER - 1):  # the others have as long as ever to come back
        assert await one.renew() == 2
    assert await one.renew() == 1


@pytest.mark.usefixtures("quick")
async def test_the_workers_of_a_server_hold_one_lease_and_know_the_same_count(
    store: FlakyStore, tmp_path: Path, runtime: Path, other_runtime: Path
) -> None:
    async with (
        started(tmp_path, runtime) as (first, _),
        started(tmp_path, runtime) as (second, _),
        started(tmp_path, other_runtime) as (third, _),
    ):
        assert await lease_ids(store) == {server_id(runtime), server_id(other_runtime)}
        assert third.count == 2
        await reached(lambda: first.count == second.count == 2)
    assert await lease_ids(store) == set()


@pytest.mark.usefixtures("quick")
async def test_another_worker_takes_over_under_the_same_id(store: FlakyStore, tmp_path: Path, runtime: Path) -> None:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(AsyncExitStack())
        await first.enter_async_context(started(tmp_path, runtime))
        second, _ = await stack.enter_async_context(started(tmp_path, runtime))
        before = await lease_ids(store)
        await first.aclose()

        async def same_lease() -> bool:
            return await lease_ids(store) == before

        await reached(same_lease)
        assert second.count == 1
    assert await lease_ids(store) == set()


def test_the_room_for_the_count_is_there_before_it_is_counted(runtime: Path) -> None:
    with closing(SharedCount(runtime)) as shared:
        size = (runtime / "replicas").stat().st_size
        shared.write(3)
        assert (runtime / "replicas").stat().st_size == size
        with closing(SharedCount(runtime)) as other:
            assert other.read() == 3


@pytest.mark.usefixtures("quick")
async def test_while_the_store_is_down_the_last_count_stays_and_one_line_says_so(
    store: FlakyStore, tmp_path: Path, runtime: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await lease(store, "other").renew()
    async with started(tmp_path, runtime) as (counted, own):
        own.set_down(True)
        assert counted.count == 2
        await reached(lambda: own.refused >= 5)
        assert counted.count == 2
        lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
        assert lines == ["The servers on this store cannot be counted; the last count, 2, stays in force: down"]
        own.set_down(False)
        await reached(lambda: counted.count == 1)  # the other has never renewed its lease


@pytest.mark.usefixtures("quick")
async def test_a_server_starts_over_a_store_that_is_down_and_counts_when_it_is_back(
    store: FlakyStore, runtime: Path
) -> None:
    await lease(store, "other").renew()
    store.set_down(True)
    async with (
        counting_replicas(store, runtime, lambda: 1, BackgroundTasks()) as counted,
        counting_replicas(store, runtime, lambda: 1, BackgroundTasks()) as in_other_worker,
    ):
        assert (counted.count, in_other_worker.count) == (1, 1)
        store.set_down(False)
        await reached(lambda: (counted.count, in_other_worker.count) == (2, 2))


@pytest.mark.usefixtures("quick")
async def test_a_store_that_hangs_holds_up_neither_the_start_nor_the_stop(
    store: FlakyStore, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(replica_leases, "TIMEOUT_SECONDS", 0.3)
    monkeypatch.setattr(replica_leases, "LEAVE_SECONDS", 0.05)
    monkeypatch.setattr(store, "search", hang)
    monkeypatch.setattr(store, "delete", hang)
    async with asyncio.timeout(10):
        async with counting_replicas(store, tmp_path, lambda: 1, BackgroundTasks()) as counted:
            assert counted.count == 1
            await reached(lambda: "the last count, 1, stays in force: no response within 0.3 s" in caplog.text)


@pytest.mark.usefixtures("patient_locks")
def test_workers_that_start_at_the_same_time_have_one_id(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as workers:
        ids = set(workers.map(server_id, [tmp_path] * 32))
    assert len(ids) == 1
    assert ids == {server_id(tmp_path)}  # one that starts later


def test_another_server_has_another_id(tmp_path: Path) -> None:
    ids = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        ids.append(server_id(tmp_path / name))
    assert [len(id) for id in ids] == [32, 32]
    assert ids[0] != ids[1]


def test_an_id_of_which_a_part_was_written_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "server-id").write_text("abc")
    made = server_id(tmp_path)
    assert len(made) == 32 and made == server_id(tmp_path)
