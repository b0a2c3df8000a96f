"""Files that all workers write, one at a time."""

import fcntl
import os
import stat
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.shared import worker_files
from opensearch_ml_stream.plugin.shared.worker_files import LOCK_SECONDS, locked


class Clock:
    """Seconds, which pass while somebody sleeps."""

    now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_file_is_made_for_its_owner_alone_and_let_go_of(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    for written in (b"a", b"b"):
        with locked(path) as file:
            os.pwrite(file, written, 0)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"b", 0o600)


def test_a_worker_that_does_not_let_go_stops_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(worker_files, "monotonic", lambda: clock.now)
    monkeypatch.setattr(worker_files, "sleep", clock.sleep)
    path = tmp_path / "counts"
    with path.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(TimeoutError, match="another worker holds a file of it"), locked(path):
            pass
        assert LOCK_SECONDS < clock.now < 1.1 * LOCK_SECONDS
    with locked(path):
        pass
