"""Lock-outs after wrong passwords."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import Throttled, Unavailable
from opensearch_ml_stream.plugin.security.lockouts import LOCKED_SECONDS, MAX_FAILURES, Lockouts


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[Lockouts]]:
    """Two workers of a server."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(Lockouts(tmp_path))) for _ in range(2)]


@pytest.fixture
def lockouts(workers: list[Lockouts]) -> Lockouts:
    return workers[0]


def fail(lockouts: Lockouts, name: str, times: int) -> None:
    for _ in range(times):
        lockouts.count_attempt(name)


def test_five_failures_lock_a_name_and_no_other_on_all_workers(workers: list[Lockouts]) -> None:
    one, other = workers
    fail(one, "ann", MAX_FAILURES - 1)
    fail(other, "ann", 1)
    for worker in workers:
        with pytest.raises(Throttled) as refused:
            worker.check("ann")
        assert 0 < int(refused.value.retry_after or "") <= LOCKED_SECONDS
        with pytest.raises(Throttled):
            worker.count_attempt("ann")
        worker.check("bob")


def test_a_right_password_forgets_the_failures_before_it(workers: list[Lockouts]) -> None:
    one, other = workers
    fail(one, "ann", MAX_FAILURES - 1)
    other.forget("ann")
    fail(one, "ann", MAX_FAILURES - 1)
    one.check("ann")
    one.forget("bob")


def test_a_lock_ends(lockouts: Lockouts, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("opensearch_ml_stream.plugin.security.lockouts.monotonic", lambda: now)
    fail(lockouts, "ann", MAX_FAILURES)
    now += LOCKED_SECONDS
    fail(lockouts, "ann", MAX_FAILURES - 1)
    lockouts.check("ann")
    fail(lockouts, "ann", 1)
    with pytest.raises(Throttled):
        lockouts.check("ann")


def test_names_that_are_tried_minute_after_minute_take_no_more_room_and_lose_no_failure_of_the_last_one(
    lockouts: Lockouts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("opensearch_ml_stream.plugin.security.lockouts.monotonic", lambda: now)
    sizes = set()
    for minute in range(4):
        names = [f"{minute} {number}" for number in range(3000)]
        for name in names:
            fail(lockouts, name, 1)
        for name in names[::100]:
            fail(lockouts, name, MAX_FAILURES - 1)
            with pytest.raises(Throttled):
                lockouts.check(name)
        sizes.add((tmp_path / "lockouts").stat().st_size)
        now += LOCKED_SECONDS
    assert len(sizes) == 1 and sizes.pop() <= 1024 * 1024


def test_any_name_is_counted_however_odd(lockouts: Lockouts) -> None:
    for name in ("", "\0", "\udcff", "é" * 100_000):
        fail(lockouts, name, MAX_FAILURES)
        with pytest.raises(Throttled):
            lockouts.check(name)


def test_nobody_is_checked_while_failures_cannot_be_counted(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with closing(Lockouts(tmp_path / "file")) as lockouts:
        with pytest.raises(Unavailable, match="check that its disk is not full"):
            lockouts.check("ann")
        with pytest.raises(Unavailable, match="check that its disk is not full"):
            lockouts.count_attempt("ann")
