"""The files of workers: counts of all together, and what runs in those that live."""

from pathlib import Path

from opensearch_ml_stream.plugin.statistics import worker_file
from opensearch_ml_stream.plugin.statistics.worker_file import ActionCount, WorkerFile, read_counts


def test_counts_are_those_of_all_workers(tmp_path: Path) -> None:
    one, other = WorkerFile(tmp_path), WorkerFile(tmp_path)
    one.count("predict", failed=False)
    one.count("predict", failed=True)
    other.count("predict", failed=False)
    other.count("deploy", failed=False)
    assert read_counts(tmp_path) == {"predict": ActionCount(3, 1), "deploy": ActionCount(1, 0)}
    one.close()
    other.close()


def test_the_counts_of_a_worker_that_has_ended_stay_and_its_successor_goes_on_in_its_file(tmp_path: Path) -> None:
    ended, lives = WorkerFile(tmp_path), WorkerFile(tmp_path)
    ended.count("register", failed=True)
    ended.close()
    assert read_counts(tmp_path) == {"register": ActionCount(1, 1)}
    successor = WorkerFile(tmp_path)
    successor.count("register", failed=False)
    assert read_counts(tmp_path) == {"register": ActionCount(2, 1)}
    assert len(list(tmp_path.iterdir())) == 2
    lives.close()
    successor.close()


def test_a_file_that_was_only_begun_counts_nothing(tmp_path: Path) -> None:
    (tmp_path / "worker-x").write_bytes(bytes(5))
    assert read_counts(tmp_path) == {} and worker_file.read_running(tmp_path) == {}
    WorkerFile(tmp_path).close()
    assert read_counts(tmp_path) == {}
