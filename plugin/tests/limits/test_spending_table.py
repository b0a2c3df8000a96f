"""Spending in a table; two SpendingTables of one file are two workers of a server. Times in milliseconds."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.token_spending import Amount
from opensearch_ml_stream.plugin.limits.spending_table import Counter, Spending, SpendingTable
from opensearch_ml_stream.plugin.shared import table

MINUTE = Counter("m", None, 60)
NOW = 1_000_000_040_000  # 20 s behind the full minute
END = 1_000_000_080_000


def test_a_window_begins_with_a_multiple_of_its_length_since_1970() -> None:
    assert [MINUTE.window_end(now) for now in (NOW, END - 1, END)] == [END, END, END + 60_000]
    assert Counter("m", None, 86_400).window_end(86_400_000 * 20_000 + 5) == 86_400_000 * 20_001


def test_workers_count_together(tmp_path: Path) -> None:
    one, other = SpendingTable(tmp_path / "spending"), SpendingTable(tmp_path / "spending")
    assert one.add([MINUTE], NOW, Amount(10, 0.5)) == [Spending(END, own_tokens=10, own_cost=0.5)]
    assert other.add([MINUTE], NOW + 1, Amount(5, 0.25)) == [Spending(END, own_tokens=15, own_cost=0.75)]
    assert one.read(MINUTE, NOW + 2) == Spending(END, own_tokens=15, own_cost=0.75)


@pytest.mark.usefixtures("patient_locks")
def test_no_spending_is_lost_between_threads(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as workers:
        list(workers.map(lambda _: SpendingTable(tmp_path / "spending").add([MINUTE], NOW, Amount(1, 2)), range(400)))
    assert SpendingTable(tmp_path / "spending").read(MINUTE, NOW).own == Amount(400, 800)


def test_a_new_window_begins_at_nothing(tmp_path: Path) -> None:
    spending = SpendingTable(tmp_path / "spending")
    spending.add([MINUTE], NOW, Amount(10))
    assert spending.read(MINUTE, END) == Spending(END + 60_000)
    assert spending.add([MINUTE], END, Amount(3)) == [Spending(END + 60_000, own_tokens=3)]


def test_models_users_and_lengths_of_windows_are_counted_apart_whatever_their_names(tmp_path: Path) -> None:
    spending = SpendingTable(tmp_path / "spending")
    counters = [
        MINUTE, Counter("m", "", 60), Counter("m", "ann", 60), Counter("m", "Ann", 60), Counter("m", None, 61),
        Counter("m\n60\n=ann", None, 60), Counter("../m", "é" * 3000, 60), Counter("m", "\udc80", 60),
    ]  # fmt: skip
    for number, counter in enumerate(counters):
        spending.add([counter], NOW, Amount(number + 1))
    assert [spending.read(counter, NOW).own.tokens for counter in counters] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_what_the_store_told_of_a_window_that_is_over_forgets_nothing_of_the_new_one(tmp_path: Path) -> None:
    one, other = SpendingTable(tmp_path / "spending"), SpendingTable(tmp_path / "spending")
    [seen] = one.add([MINUTE], NOW, Amount(10))
    other.add([MINUTE], END, Amount(3))
    assert one.learn(MINUTE, seen, NOW, Amount(5), None).own == Amount(10)  # which the store gets still
    assert one.read(MINUTE, END).own == Amount(3)


def test_what_was_reserved_is_taken_back_only_in_its_own_window(tmp_path: Path) -> None:
    spending = SpendingTable(tmp_path / "spending")
    before = spending.add([MINUTE], NOW, Amount(10))

    def settle(now: int, tokens: int) -> float:
        [settled] = spending.settle([MINUTE], now, Amount(tokens), before)
        return settled.tokens

    assert settle(NOW, -4) == 6
    assert settle(END, -4) == 0
    assert settle(END, 7) == 7


def test_several_are_counted_at_once_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "FIRST_LEVEL", 9)
    monkeypatch.setattr(table, "MAX_LEVELS", 1)
    spending, others = SpendingTable(tmp_path / "spending"), [Counter(str(number), None, 60) for number in range(6)]
    spending.add(others, NOW, Amount(1))
    spending.add([MINUTE], NOW, Amount(1))
    with pytest.raises(OSError, match="its table is full"):
        spending.add([MINUTE, Counter("n", None, 60), Counter("o", None, 60)], NOW, Amount(1))
    assert spending.read(MINUTE, NOW).own == Amount(1)


def test_what_the_store_tells_of_others_is_added_to_our_own(tmp_path: Path) -> None:
    spending = SpendingTable(tmp_path / "spending")
    [seen] = spending.add([MINUTE], NOW, Amount(10, 1))
    spending.add([MINUTE], NOW, Amount(1, 1))
    learnt = spending.learn(MINUTE, seen, NOW + 5, Amount(100, 2), Amount(10, 1))
    assert learnt == Spending(END, NOW + 5, 11, 2, 10, 1, 100, 2)
    assert (learnt.tokens, learnt.cost) == (111, 4)
    assert spending.read(MINUTE, NOW) == learnt


def test_what_the_store_told_of_the_window_before_does_not_count(tmp_path: Path) -> None:
    spending = SpendingTable(tmp_path / "spending")
    [seen] = spending.add([MINUTE], NOW, Amount(10))
    assert spending.learn(MINUTE, seen, END, Amount(100), Amount(10)) == Spending(END + 60_000)


def test_what_the_store_has_forgotten_is_forgiven_once(tmp_path: Path) -> None:
    spending = SpendingTable(tmp_path / "spending")
    seen = spending.learn(MINUTE, spending.add([MINUTE], NOW, Amount(10))[0], NOW, Amount(5), Amount(10))
    spending.add([MINUTE], NOW, Amount(3))
    for _ in range(2):
        assert spending.learn(MINUTE, seen, NOW, Amount(), None).tokens == 3


def test_what_another_worker_has_stored_again_meanwhile_is_not_forgiven(tmp_path: Path) -> None:
    spending = SpendingTable(tmp_path / "spending")
    seen = spending.learn(MINUTE, spending.add([MINUTE], NOW, Amount(10))[0], NOW, Amount(), Amount(10))
    spending.add([MINUTE], NOW, Amount(1))
    spending.learn(MINUTE, seen, NOW, Amount(), Amount(11))
    assert spending.learn(MINUTE, seen, NOW, Amount(), None).own == Amount(11)


def test_what_was_spent_in_a_window_that_is_over_makes_way_for_others(tmp_path: Path) -> None:
    spending, hour = SpendingTable(tmp_path / "spending"), Counter("m", None, 3600)

    def spend(names: range, now: int) -> int:
        for name in names:
            spending.add([Counter(str(name), None, 60)], now, Amount(1))
        return (tmp_path / "spending").stat().st_size

    spending.add([hour], NOW, Amount(2))
    grown = spend(range(4000), NOW)
    assert spend(range(4000, 8000), END) == grown
    assert spend(range(8000, 16000), END) > grown
    assert {spending.read(Counter(str(name), None, 60), END).own.tokens for name in range(4000, 16000)} == {1}
    assert spending.read(hour, END).own == Amount(2)


def test_spending_that_cannot_be_counted_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        SpendingTable(tmp_path / "file" / "spending").add([MINUTE], NOW, Amount(1))
