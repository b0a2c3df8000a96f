"""Spending in files; two SpendingFiles on one folder are two workers of a server. Times in milliseconds."""

import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.spending.token_spending import Amount
from opensearch_ml_stream.plugin.limits.budgets.spending_files import Counter, Spending, SpendingFiles

MINUTE = Counter("m", None, 60)
NOW = 1_000_000_040_000  # 20 s behind the full minute
END = 1_000_000_080_000


def test_a_window_begins_with_a_multiple_of_its_length_since_1970() -> None:
    assert [MINUTE.window_end(now) for now in (NOW, END - 1, END)] == [END, END, END + 60_000]
    assert Counter("m", None, 86_400).window_end(86_400_000 * 20_000 + 5) == 86_400_000 * 20_001


def test_workers_count_together(tmp_path: Path) -> None:
    one, other = SpendingFiles(tmp_path), SpendingFiles(tmp_path)
    assert one.add(MINUTE, NOW, Amount(10, 0.5)).total == Amount(10, 0.5)
    assert other.add(MINUTE, NOW + 1, Amount(5, 0.25)).total == Amount(15, 0.75)
    assert one.read(MINUTE, NOW + 2) == Spending(END, own=Amount(15, 0.75))


def test_no_spending_is_lost_between_threads(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as workers:
        list(workers.map(lambda _: SpendingFiles(tmp_path).add(MINUTE, NOW, Amount(1, 2)), range(400)))
    assert SpendingFiles(tmp_path).read(MINUTE, NOW).own == Amount(400, 800)


def test_a_new_window_begins_at_nothing(tmp_path: Path) -> None:
    files = SpendingFiles(tmp_path)
    files.add(MINUTE, NOW, Amount(10))
    assert files.read(MINUTE, END) == Spending(END + 60_000)
    assert files.add(MINUTE, END, Amount(3)).total == Amount(3)


def test_models_users_and_lengths_of_windows_are_counted_apart_whatever_their_names(tmp_path: Path) -> None:
    files = SpendingFiles(tmp_path)
    counters = [
        MINUTE, Counter("m", "", 60), Counter("m", "ann", 60), Counter("m", "Ann", 60), Counter("m", None, 61),
        Counter("m\n60\n=ann", None, 60), Counter("../m", "é" * 3000, 60), Counter("m", "\udc80", 60),
    ]  # fmt: skip
    for number, counter in enumerate(counters):
        files.add(counter, NOW, Amount(number + 1))
    assert [files.read(counter, NOW).own.tokens for counter in counters] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert {len(path.name) for path in tmp_path.iterdir()} == {32}
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_what_the_store_told_of_a_window_that_is_over_forgets_nothing_of_the_new_one(tmp_path: Path) -> None:
    one, other = SpendingFiles(tmp_path), SpendingFiles(tmp_path)
    seen = one.add(MINUTE, NOW, Amount(10))
    other.add(MINUTE, END, Amount(3))
    assert one.learn(MINUTE, seen, NOW, Amount(5), None).own == Amount(10)  # which the store gets still
    assert one.read(MINUTE, END).own == Amount(3)


def test_what_was_reserved_is_taken_back_only_in_its_own_window(tmp_path: Path) -> None:
    files = SpendingFiles(tmp_path)
    files.add(MINUTE, NOW, Amount(10))
    assert files.add(MINUTE, NOW, Amount(-4), END).total == Amount(6)
    assert files.add(MINUTE, END, Amount(-4), END).total == Amount(0)
    assert files.add(MINUTE, END, Amount(7), END).total == Amount(7)


def test_what_the_store_tells_of_others_is_added_to_our_own(tmp_path: Path) -> None:
    files = SpendingFiles(tmp_path)
    seen = files.add(MINUTE, NOW, Amount(10, 1))
    files.add(MINUTE, NOW, Amount(1, 1))
    learnt = files.learn(MINUTE, seen, NOW + 5, Amount(100, 2), Amount(10, 1))
    assert learnt == Spending(END, NOW + 5, Amount(11, 2), Amount(10, 1), Amount(100, 2))
    assert learnt.total == Amount(111, 4)
    assert files.read(MINUTE, NOW) == learnt


def test_what_the_store_told_of_the_window_before_does_not_count(tmp_path: Path) -> None:
    files = SpendingFiles(tmp_path)
    seen = files.add(MINUTE, NOW, Amount(10))
    assert files.learn(MINUTE, seen, END, Amount(100), Amount(10)) == Spending(END + 60_000)


def test_what_the_store_has_forgotten_is_forgiven_once(tmp_path: Path) -> None:
    files = SpendingFiles(tmp_path)
    seen = files.learn(MINUTE, files.add(MINUTE, NOW, Amount(10)), NOW, Amount(5), Amount(10))
    files.add(MINUTE, NOW, Amount(3))
    for _ in range(2):
        assert files.learn(MINUTE, seen, NOW, Amount(), None).total == Amount(3)


def test_what_another_worker_has_stored_again_meanwhile_is_not_forgiven(tmp_path: Path) -> None:
    files = SpendingFiles(tmp_path)
    seen = files.learn(MINUTE, files.add(MINUTE, NOW, Amount(10)), NOW, Amount(), Amount(10))
    files.add(MINUTE, NOW, Amount(1))
    files.learn(MINUTE, seen, NOW, Amount(), Amount(11))
    assert files.learn(MINUTE, seen, NOW, Amount(), None).own == Amount(11)


def test_files_of_windows_that_are_over_are_swept(tmp_path: Path) -> None:
    files, hour = SpendingFiles(tmp_path), Counter("m", None, 3600)
    files.add(MINUTE, NOW, Amount(1))
    files.add(hour, NOW, Amount(2))
    files.sweep(END - 1)
    assert len(list(tmp_path.iterdir())) == 2
    files.sweep(END)
    assert [path.name for path in tmp_path.iterdir()] == [hour.key]


def test_a_file_that_is_swept_while_a_worker_waits_for_it_loses_nothing(tmp_path: Path) -> None:
    files = SpendingFiles(tmp_path)
    files.add(MINUTE, NOW, Amount(1))
    path = tmp_path / MINUTE.key
    with path.open("rb") as file, ThreadPoolExecutor(1) as worker:
        fcntl.flock(file, fcntl.LOCK_EX)
        adding = worker.submit(files.add, MINUTE, END, Amount(2))
        with pytest.raises(TimeoutError):
            adding.result(0.02)
        path.unlink()
        fcntl.flock(file, fcntl.LOCK_UN)
        assert adding.result(10).own == Amount(2)
    assert files.read(MINUTE, END).own == Amount(2)


def test_a_file_that_was_cut_short_counts_as_new(tmp_path: Path) -> None:
    files = SpendingFiles(tmp_path)
    files.add(MINUTE, NOW, Amount(1))
    path = tmp_path / MINUTE.key
    path.write_bytes(path.read_bytes()[:-1])
    assert files.read(MINUTE, NOW).own == Amount()
    files.sweep(NOW)
    assert list(tmp_path.iterdir()) == []
    assert files.add(MINUTE, NOW, Amount(2)).own == Amount(2)


def test_no_file_stays_open(tmp_path: Path) -> None:
    files = SpendingFiles(tmp_path)
    before = len(os.listdir("/dev/fd"))
    files.sweep(files.add(MINUTE, NOW, Amount(1)).window_end)
    assert len(os.listdir("/dev/fd")) == before


def test_spending_that_cannot_be_counted_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        SpendingFiles(tmp_path / "gone").add(MINUTE, NOW, Amount(1))
