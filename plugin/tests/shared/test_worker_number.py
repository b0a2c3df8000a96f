"""Numbers of workers; each WorkerNumber of one path is a worker, closed is killed."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.shared.worker_files import WorkerNumber

Start = Callable[[], WorkerNumber]


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
