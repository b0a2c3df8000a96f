"""Which predictions run, as each of several workers notes and reads them."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.monitoring.statistics import RunningPredictions
from opensearch_ml_stream.plugin.shared.worker_files import WorkerNumber


@contextmanager
def worker(directory: Path) -> Iterator[RunningPredictions]:
    with (
        closing(WorkerNumber(directory / "worker")) as number,
        closing(RunningPredictions(directory, number)) as running,
    ):
        yield running


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningPredictions]:
    with worker(tmp_path) as running:
        yield running


def models(running: RunningPredictions) -> list[str]:
    return sorted(prediction.model_id for prediction in running.read().values())


def test_any_number_of_predictions_run_and_their_records_are_used_again(
    tmp_path: Path, running: RunningPredictions
) -> None:
    ids = [f"m{number:03}" for number in range(100)]
    places = [running.start(model_id, 1.0) for model_id in ids]
    assert models(running) == ids
    assert len(running.read()) == 100  # so many task ids
    size = (tmp_path / "running").stat().st_size
    for place in places[10:]:
        running.end(place)
    assert models(running) == ids[:10]
    for _ in places[10:]:
        running.start("é" * 300, 2.0)
    assert models(running) == ids[:10] + ["é" * 256] * 90
    assert sorted({prediction.started for prediction in running.read().values()}) == [1.0, 2.0]
    assert (tmp_path / "running").stat().st_size == size < 500_000


def test_workers_see_what_runs_in_each_other_and_end_their_own_alone(
    tmp_path: Path, running: RunningPredictions
) -> None:
    with worker(tmp_path) as other:
        mine = [running.start(f"a{number}", 1.0) for number in range(40)]
        for number in range(40):
            other.start(f"b{number}", 1.0)
        assert models(running) == models(other) == sorted(f"{name}{number}" for name in "ab" for number in range(40))
        for place in mine:
            running.end(place)
        assert set(models(other)) == {f"b{number}" for number in range(40)}


def test_what_ran_in_a_worker_that_has_ended_runs_no_more_and_its_successor_takes_over_its_records(
    tmp_path: Path, running: RunningPredictions
) -> None:
    running.start("lives", 1.0)
    for _ in range(50):
        with worker(tmp_path) as dies:
            for _ in range(30):
                dies.start("dies", 1.0)
            assert models(running) == ["dies"] * 30 + ["lives"]
        assert models(running) == ["lives"]
    with worker(tmp_path) as successor:
        assert models(successor) == ["lives"]
    assert (tmp_path / "running").stat().st_size < 150_000


def test_a_disk_without_room_for_more_leaves_the_table_as_it_was(
    tmp_path: Path, running: RunningPredictions, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.pwrite
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", lambda file, data, place: write(file, data[:100], place))
        with pytest.raises(OSError, match="No space left"):
            running.start("m", 1.0)
        assert models(running) == []
    running.start("m", 1.0)
    assert models(running) == ["m"]
