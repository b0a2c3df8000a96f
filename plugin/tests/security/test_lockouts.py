"""Lock-outs after wrong passwords."""

from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.errors import Throttled, Unavailable
from opensearch_ml_stream.plugin.security.lockouts import LOCKED_SECONDS, MAX_FAILURES, Lockouts


def fail(lockouts: Lockouts, name: str, times: int) -> None:
    for _ in range(times):
        lockouts.count_attempt(name)


def test_five_failures_lock_a_name_and_no_other_on_all_workers(tmp_path: Path) -> None:
    fail(Lockouts(tmp_path), "ann", MAX_FAILURES - 1)
    other_worker = Lockouts(tmp_path)
    fail(other_worker, "ann", 1)
    with pytest.raises(Throttled) as refused:
        other_worker.check("ann")
    assert 0 < int(refused.value.retry_after or "") <= LOCKED_SECONDS
    other_worker.check("bob")


def test_a_right_password_forgets_the_failures_before_it(tmp_path: Path) -> None:
    lockouts = Lockouts(tmp_path)
    fail(lockouts, "ann", MAX_FAILURES - 1)
    lockouts.forget("ann")
    fail(lockouts, "ann", MAX_FAILURES - 1)
    lockouts.check("ann")


def test_a_lock_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("opensearch_ml_stream.plugin.security.lockouts.monotonic", lambda: now)
    lockouts = Lockouts(tmp_path)
    fail(lockouts, "ann", MAX_FAILURES)
    now += LOCKED_SECONDS
    fail(lockouts, "ann", MAX_FAILURES - 1)
    lockouts.check("ann")


def test_any_number_of_names_takes_one_small_file(tmp_path: Path) -> None:
    lockouts = Lockouts(tmp_path)
    for number in range(200):
        lockouts.count_attempt(f"name-{number}")
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 1024 * 1024


def test_nobody_is_checked_while_failures_cannot_be_counted(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="check that its disk is not full"):
        Lockouts(tmp_path / "missing").check("ann")
