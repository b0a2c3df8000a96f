"""Files that all workers write, one at a time."""

import fcntl
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.shared import worker_files
from opensearch_ml_stream.plugin.shared.worker_files import LOCK_SECONDS, WorkerNumber, locked

Start = Callable[[], WorkerNumber]


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


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(WorkerNumber(tmp_path / "worker")))


def test_workers_have_numbers_of_their_own_and_a_successor_that_of_one_that_has_ended(start: Start) -> None:
    workers = [start() for _ in range(3)]
    assert [worker.number for worker in workers] == [0, 1, 2]
    workers[1].close()
    assert [start().number for _ in range(2)] == [1, 3]


def test_every_worker_knows_who_lives(tmp_path: Path, start: Start) -> None:
    first, ends, last = start(), start(), start()
    for _ in range(2):  # to look takes nobody's number
        assert [[worker.lives(number) for number in range(4)] for worker in (first, last)] == [[True] * 3 + [False]] * 2
    ends.close()
    assert [[worker.lives(number) for number in range(4)] for worker in (first, last)] == [
        [True, False, True, False]
    ] * 2
    with (tmp_path / "worker-1").open("rb") as looks:  # another worker, at the same moment
        fcntl.flock(looks, fcntl.LOCK_SH)
        assert not first.lives(1)
    assert start().number == 1
    assert first.lives(1) and last.lives(1)


def test_a_killed_process_lives_no_more_and_a_stopped_one_does(tmp_path: Path, start: Start) -> None:
    program = (
        "import sys; from pathlib import Path; "
        "from opensearch_ml_stream.plugin.shared.worker_files import WorkerNumber; "
        "worker = WorkerNumber(Path(sys.argv[1])); print(worker.number, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "worker")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"0\n"
        worker = start()
        assert worker.number == 1
        os.kill(process.pid, signal.SIGSTOP)
        assert worker.lives(0)
        process.kill()
    assert not worker.lives(0)


def test_no_file_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    with closing(WorkerNumber(tmp_path / "worker")), closing(WorkerNumber(tmp_path / "worker")) as other:
        other.lives(2)
    assert len(os.listdir("/dev/fd")) == before
