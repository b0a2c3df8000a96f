"""Caps and the queue before them, in virtual time; two OpenStreams on one folder are two workers of a server."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import Throttled, Unavailable
from opensearch_ml_stream.connectors.model_options import CallLimits
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.limits.stream_caps import LOOK_SECONDS, OpenStreams, StreamCounts
from opensearch_ml_stream.plugin.metrics import Metrics
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from tests.upstream.virtual_time_loop import now, pending_timers

NO_LIMITS = CallLimits()
ONE = CallLimits(max_streams=1)


class Worker:
    def __init__(self, counts: StreamCounts, settings: Settings) -> None:
        self.live = LiveSettings(settings)
        self.metrics = Metrics()
        self.streams = OpenStreams(counts, self.live, self.metrics, BackgroundTasks())
        self.finished: list[str] = []
        self._tasks: list[asyncio.Task[None]] = []

    def set(self, **settings: Any) -> None:
        self.live.current = replace(self.live.current, **settings)

    def call(
        self, name: str, limits: CallLimits = ONE, user: str = "u", model: str = "m", seconds: float = 1
    ) -> asyncio.Task[None]:
        """A caller whose stream takes that long, and who is noted when it ends."""
        task = asyncio.create_task(self._hold(name, limits, user, model, seconds))
        self._tasks.append(task)
        return task

    async def _hold(self, name: str, limits: CallLimits, user: str, model: str, seconds: float) -> None:
        async with self.streams.place(model, limits, user):
            await asyncio.sleep(seconds)
            self.finished.append(name)

    @property
    def waiting(self) -> str:
        return next(
            line.rpartition(" ")[2]
            for line in self.metrics.text().decode().splitlines()
            if line.startswith("mlstream_streams_waiting ")
        )

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError, Throttled, Unavailable):
                await task


@pytest.fixture
def counts(tmp_path: Path) -> Iterator[list[StreamCounts]]:
    with ExitStack() as stack:
        yield [stack.enter_context(closing(StreamCounts(tmp_path, 2))) for _ in range(2)]


@pytest.fixture
async def workers(counts: list[StreamCounts]) -> AsyncIterator[list[Worker]]:
    workers = [Worker(one, Settings()) for one in counts]
    yield workers
    for worker in workers:
        await worker.end()


@pytest.fixture
def worker(workers: list[Worker]) -> Worker:
    return workers[0]


async def refusal(task: asyncio.Task[None]) -> Throttled:
    with pytest.raises(Throttled) as raised:
        await task
    return raised.value


async def test_without_a_cap_nothing_is_counted(worker: Worker, tmp_path: Path) -> None:
    await asyncio.gather(*[worker.call("x", NO_LIMITS) for _ in range(50)])
    assert os.listdir(tmp_path) == []


async def test_callers_over_a_cap_are_served_in_the_order_of_their_arrival(worker: Worker) -> None:
    worker.set(stream_queue_seconds=10)
    for name in "abcde":
        worker.call(name)
        await asyncio.sleep(0.01)
    await asyncio.sleep(5)
    assert worker.finished == list("abcde")
    assert worker.waiting == "0.0"
    await asyncio.sleep(LOOK_SECONDS)
    assert pending_timers() == 0


async def test_a_place_is_given_on_at_once_in_the_same_worker(worker: Worker) -> None:
    worker.call("a")
    await worker.call("b")
    assert now() == 2


async def test_a_caller_who_waits_for_too_long_is_refused(worker: Worker) -> None:
    worker.call("a", seconds=100)
    error = await refusal(worker.call("b"))
    assert (error.status, error.type, error.retry_after) == (429, "rejected_execution_exception", "1")
    assert error.reason == (
        "The limit of predictions in flight of this model on this server is reached (1); send the request again later, "
        "or raise _sidecar.limits.max_streams of the model"
    )
    assert now() == pytest.approx(2, abs=LOOK_SECONDS)
    assert error.limit == "model_streams"
    assert worker.waiting == "0.0"


@pytest.mark.parametrize("setting", ["stream_queue_seconds", "stream_queue_size"])
async def test_without_a_queue_the_refusal_comes_at_once(worker: Worker, setting: str) -> None:
    worker.set(**{setting: 0})
    worker.call("a", seconds=100)
    await asyncio.sleep(0)
    await refusal(worker.call("b"))
    assert now() == 0


async def test_a_full_queue_refuses_at_once_but_only_for_its_own_cap(worker: Worker) -> None:
    worker.set(stream_queue_size=2)
    for model in ("m", "other"):
        worker.call("held", model=model)
    await asyncio.sleep(0)
    waiting = [worker.call(name) for name in "ab"]
    await asyncio.sleep(0)
    assert worker.waiting == "2.0"
    await refusal(worker.call("c"))
    assert now() == 0
    await worker.call("d", model="other")
    await waiting[0]
    assert worker.finished[:2] == ["held", "held"]
    assert sorted(worker.finished[2:]) == ["a", "d"]


async def test_nobody_overtakes_those_who_wait(workers: list[Worker], counts: list[StreamCounts]) -> None:
    worker, other = workers
    other.call("elsewhere", seconds=1)
    await asyncio.sleep(0)
    worker.call("first")
    await asyncio.sleep(1.01)  # the place is free, and nobody here has looked
    worker.call("second")
    await asyncio.sleep(5)
    assert worker.finished == ["first", "second"]


async def test_a_place_that_another_worker_releases_is_noticed_soon(workers: list[Worker]) -> None:
    workers[0].call("a")
    await asyncio.sleep(0)
    await workers[1].call("b")
    assert 2 <= now() <= 2 + LOOK_SECONDS


async def test_a_client_that_disconnects_while_it_waits_leaves_the_queue(worker: Worker) -> None:
    worker.call("a")
    await asyncio.sleep(0)
    leaver = worker.call("b")
    worker.call("c")
    await asyncio.sleep(0)
    leaver.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaver
    assert worker.waiting == "1.0"
    await asyncio.sleep(3)
    assert worker.finished == ["a", "c"]


async def test_a_client_that_disconnects_as_it_is_given_a_place_gives_it_on(worker: Worker) -> None:
    holder = worker.call("a", seconds=100)
    await asyncio.sleep(0)
    leaver = worker.call("b")
    worker.call("c")
    await asyncio.sleep(0)
    holder.cancel()
    asyncio.get_running_loop().call_soon(leaver.cancel)  # after the release, before the waiting task runs
    await asyncio.sleep(1.5)
    assert worker.finished == ["c"]


async def test_a_user_over_a_cap_holds_up_nobody_else(worker: Worker) -> None:
    worker.set(max_streams_per_user=1)
    worker.call("mine", NO_LIMITS, "me", seconds=100)
    await asyncio.sleep(0)
    over = worker.call("mine too", NO_LIMITS, "me", model="other")
    await worker.call("yours", NO_LIMITS, "you")
    assert now() == 1
    assert (await refusal(over)).reason.startswith("The limit of predictions in flight of this user on this server")


async def test_the_cap_of_a_models_users_is_each_users_and_each_models(worker: Worker) -> None:
    worker.set(stream_queue_seconds=0)
    limits = CallLimits(max_streams_per_user=1)
    worker.call("a", limits, "me")
    worker.call("b", limits, "you")
    worker.call("c", limits, "me", model="other")
    await asyncio.sleep(0)
    error = await refusal(worker.call("d", limits, "me"))
    assert error.reason.endswith("raise _sidecar.limits.max_streams_per_user of the model")
    await asyncio.sleep(2)
    assert sorted(worker.finished) == ["a", "b", "c"]


async def test_callers_without_a_login_are_no_user(worker: Worker) -> None:
    worker.set(max_streams_per_user=1, stream_queue_seconds=0)
    limits = CallLimits(max_streams_per_user=1)
    await asyncio.gather(*[worker.call("x", limits, "") for _ in range(3)])


async def test_the_servers_cap_counts_every_model_and_user(workers: list[Worker]) -> None:
    for worker in workers:
        worker.set(max_streams_per_server=3, stream_queue_seconds=0)
    calls = [workers[n % 2].call("x", NO_LIMITS, f"u{n}", f"m{n}") for n in range(5)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [isinstance(outcome, Throttled) for outcome in outcomes] == [False, False, False, True, True]
    assert "max_streams_per_server" in str(outcomes[3])


async def test_a_cap_that_is_raised_lets_those_in_who_wait_under_it_next(worker: Worker) -> None:
    worker.set(max_streams_per_server=1, stream_queue_seconds=0)
    worker.call("a", NO_LIMITS)
    await asyncio.sleep(0)
    await refusal(worker.call("b", NO_LIMITS))
    worker.set(max_streams_per_server=2)
    await worker.call("c", NO_LIMITS)


async def test_those_who_wait_are_told_if_nothing_can_be_counted_any_more(worker: Worker, tmp_path: Path) -> None:
    worker.call("a", seconds=100)
    await asyncio.sleep(0)
    waiting = [worker.call(name) for name in "bc"]
    await asyncio.sleep(0)
    lock = os.open(tmp_path / "open-streams", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)  # as a worker does that is stopped at the wrong moment
    for task in waiting:
        with pytest.raises(Unavailable, match="cannot be counted"):
            await task
    os.close(lock)
    assert now() <= LOOK_SECONDS


async def test_fifty_callers_of_two_workers_share_three_places(workers: list[Worker]) -> None:
    open_now = most = 0

    async def stream(worker: Worker, number: int) -> None:
        nonlocal open_now, most
        async with worker.streams.place("m", CallLimits(max_streams=3), "u"):
            open_now += 1
            most = max(most, open_now)
            await asyncio.sleep(0.01 * (number % 7))
            open_now -= 1

    for worker in workers:
        worker.set(stream_queue_seconds=60)
    await asyncio.gather(*[stream(workers[number % 2], number) for number in range(50)])
    assert (open_now, most) == (0, 3)
