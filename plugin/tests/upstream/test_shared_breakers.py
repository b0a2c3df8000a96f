"""The state of circuit breakers: closed, open, half-open, in a file that all workers share."""

from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.shared.table import SharedTable
from opensearch_ml_stream.plugin.upstream.circuit_breaker import (
    MAX_PAUSE_SECONDS,
    PROBE_SECONDS,
    BreakerRules,
    SharedBreakers,
)

RULES = BreakerRules(failures=3, seconds=5)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breakers(tmp_path: Path, clock: Clock) -> Iterator[SharedBreakers]:
    with closing(SharedBreakers(tmp_path, clock)) as breakers:
        yield breakers


def open_one(breakers: SharedBreakers, key: str = "c") -> None:
    assert [breakers.fail(key, RULES) for _ in range(3)] == [None, None, 5]


def test_it_opens_after_so_many_failures_in_a_row_and_for_that_connector_alone(breakers: SharedBreakers) -> None:
    for _ in range(2):
        breakers.fail("c", RULES)
    assert not breakers.succeed("c")  # not in a row
    open_one(breakers)
    assert breakers.wait_seconds("c") == 5
    assert breakers.wait_seconds("other") == 0


def test_a_call_that_fails_after_breakers_were_switched_off_opens_none(breakers: SharedBreakers) -> None:
    assert breakers.fail("c", BreakerRules(failures=0, seconds=5)) is None
    assert breakers.wait_seconds("c") == 0


def test_calls_that_were_on_their_way_when_it_opened_change_nothing(breakers: SharedBreakers) -> None:
    open_one(breakers)
    assert breakers.fail("c", RULES) is None
    assert breakers.wait_seconds("c") == 5


def test_one_call_tries_when_the_time_is_over_and_its_success_closes(breakers: SharedBreakers, clock: Clock) -> None:
    open_one(breakers)
    clock.now += 5
    assert breakers.wait_seconds("c") == 0
    assert breakers.wait_seconds("c") == PROBE_SECONDS  # the others wait for it
    assert breakers.succeed("c")
    assert breakers.wait_seconds("c") == 0
    assert breakers.fail("c", RULES) is None  # counted from the beginning


def test_each_failed_try_opens_it_for_twice_as_long_up_to_a_bound(breakers: SharedBreakers, clock: Clock) -> None:
    open_one(breakers)
    pauses = []
    for _ in range(6):
        clock.now += 60
        assert breakers.wait_seconds("c") == 0
        pauses.append(breakers.fail("c", RULES))
    assert pauses == [10, 20, 40, MAX_PAUSE_SECONDS, MAX_PAUSE_SECONDS, MAX_PAUSE_SECONDS]


def test_a_try_that_was_given_up_or_whose_worker_is_gone_lets_another_try(
    breakers: SharedBreakers, clock: Clock
) -> None:
    open_one(breakers)
    clock.now += 5
    assert breakers.wait_seconds("c") == 0
    breakers.give_up("c")
    assert breakers.wait_seconds("c") == 0
    clock.now += PROBE_SECONDS
    assert breakers.wait_seconds("c") == 0


def test_all_workers_see_one_breaker(breakers: SharedBreakers, clock: Clock, tmp_path: Path) -> None:
    with closing(SharedBreakers(tmp_path, clock)) as other_worker:
        breakers.fail("c", RULES)
        other_worker.fail("c", RULES)
        assert breakers.fail("c", RULES) == 5
        assert other_worker.wait_seconds("c") == 5
        clock.now += 5
        assert other_worker.wait_seconds("c") == 0
        assert breakers.wait_seconds("c") > 0
        assert other_worker.succeed("c")
        assert breakers.wait_seconds("c") == 0


def test_of_more_connectors_than_there_is_room_for_some_have_no_breaker(tmp_path: Path, clock: Clock) -> None:
    with closing(SharedBreakers(tmp_path, clock)) as breakers:
        size = (tmp_path / "circuit-breakers").stat().st_size
        for number in range(6000):
            with suppress(OSError):
                breakers.fail(str(number), BreakerRules(1, 5))
        with pytest.raises(OSError, match="its table is full"):
            for number in range(6000, 12000):
                breakers.fail(str(number), BreakerRules(1, 5))
        is_open = [breakers.wait_seconds(str(number)) > 0 for number in range(6000)]
        assert 3000 < sum(is_open) < 6000
        assert (tmp_path / "circuit-breakers").stat().st_size == size
        for number in range(6000):
            breakers.succeed(str(number))
        open_one(breakers, "5999")


def test_that_none_has_a_failure_is_known_to_every_worker(
    breakers: SharedBreakers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(SharedBreakers(tmp_path)) as other:
        assert breakers.failing.is_empty and other.failing.is_empty
        breakers.fail("c", RULES)
        other.fail("c", RULES)
        other.fail("d", RULES)
        assert not breakers.failing.is_empty
        breakers.succeed("d")
        assert not other.failing.is_empty
        other.succeed("c")
        assert breakers.failing.is_empty and other.failing.is_empty

        def full(*_: object) -> list[int]:
            raise OSError("its table is full")

        with monkeypatch.context() as patched, pytest.raises(OSError, match="full"):
            patched.setattr(SharedTable, "places", full)
            breakers.fail("c", RULES)
        assert other.failing.is_empty
