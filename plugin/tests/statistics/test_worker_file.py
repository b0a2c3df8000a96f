"""The files of workers: counts of all together, and what runs in those that live."""

import os
from contextlib import closing
from pathlib import Path

import pytest

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


def running_models(directory: Path) -> list[str]:
    return sorted(running.model_id for running in worker_file.read_running(directory).values())


def test_any_number_of_predictions_run_and_their_slots_are_used_again(tmp_path: Path) -> None:
    with closing(WorkerFile(tmp_path)) as worker:
        models = [f"m{number:03}" for number in range(100)]
        slots = [worker.start(model, 1.0) for model in models]
        worker.count("predict", failed=False)
        assert running_models(tmp_path) == models
        [file] = tmp_path.iterdir()
        size = file.stat().st_size
        for slot in slots[10:]:
            worker.end(slot)
        assert running_models(tmp_path) == models[:10]
        for _ in slots[10:]:
            worker.start("é" * 300, 2.0)
        assert running_models(tmp_path) == models[:10] + ["é" * 256] * 90
        assert file.stat().st_size == size < 200 * 600
        assert read_counts(tmp_path) == {"predict": ActionCount(1, 0)}


def test_a_disk_without_room_for_more_slots_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.pwrite
    with closing(WorkerFile(tmp_path)) as worker:
        worker.count("predict", failed=False)
        [file] = tmp_path.iterdir()
        before = file.read_bytes()
        with monkeypatch.context() as patched:
            patched.setattr(os, "pwrite", lambda file, data, place: write(file, data[:100], place))
            with pytest.raises(OSError, match="No space left"):
                worker.start("m", 1.0)
        assert file.read_bytes() == before
        worker.count("predict", failed=False)
        worker.start("m", 1.0)
        assert (running_models(tmp_path), read_counts(tmp_path)) == (["m"], {"predict": ActionCount(2, 0)})
