"""The files of models: counts and the last durations, written by several workers."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.statistics import model_file
from opensearch_ml_stream.plugin.statistics.model_file import (
    WINDOW,
    FinishedAction,
    ModelFigures,
    ModelFiles,
    read_model,
)
from opensearch_ml_stream.plugin.statistics.worker_file import ActionCount


@pytest.fixture
def files(tmp_path: Path) -> Iterator[ModelFiles]:
    with closing(ModelFiles(tmp_path)) as files:
        yield files


LONG_ID = "é" * 300  # more bytes than OpenSearch takes


def test_nothing_is_known_of_a_model_that_was_never_called(tmp_path: Path) -> None:
    assert read_model(tmp_path, "m") is None
    assert model_file.read_models(tmp_path) == {}


def test_actions_failures_and_durations_are_kept_by_model(tmp_path: Path, files: ModelFiles) -> None:
    files.add("m", FinishedAction("deploy"))
    files.add("m", FinishedAction("predict", request_duration=3.5, inference_duration=2.5))
    files.add("m", FinishedAction("predict", failed=True, throttled=True, request_duration=0.5))
    files.add("other", FinishedAction("undeploy", failed=True))
    actions = {"predict": ActionCount(2, 1), "deploy": ActionCount(1, 0)}
    expected = ModelFigures("m", actions, 1, (3.5, 0.5), (2.5,))
    assert read_model(tmp_path, "m") == expected
    other = ModelFigures("other", {"undeploy": ActionCount(1, 1)}, 0, (), ())
    assert model_file.read_models(tmp_path) == {"m": expected, "other": other}


def test_the_last_hundred_durations_are_kept_however_many_there_are(tmp_path: Path, files: ModelFiles) -> None:
    for number in range(WINDOW + 3):
        files.add("m", FinishedAction("predict", request_duration=number, inference_duration=-number))
    figures = read_model(tmp_path, "m")
    assert figures is not None and figures.actions["predict"].requests == WINDOW + 3
    assert sorted(figures.request_durations) == list(range(3, WINDOW + 3))
    assert sorted(figures.inference_durations) == list(range(-WINDOW - 2, -2))
    [file] = tmp_path.iterdir()
    assert file.stat().st_size < 3_000


def test_an_undeployed_model_keeps_its_counts_alone(tmp_path: Path, files: ModelFiles) -> None:
    finished = FinishedAction("predict", failed=True, throttled=True, request_duration=1, inference_duration=1)
    files.add("m", finished)
    files.forget_predictions("m")
    assert read_model(tmp_path, "m") == ModelFigures("m", {"predict": ActionCount(1, 1)}, 0, (), ())


def test_a_forgotten_model_is_gone_and_may_be_forgotten_twice(tmp_path: Path, files: ModelFiles) -> None:
    files.add("m", FinishedAction("predict"))
    model_file.forget(tmp_path, "m")
    model_file.forget(tmp_path, "m")
    assert list(tmp_path.iterdir()) == []


def test_an_id_is_cut_to_what_opensearch_takes_and_still_tells_models_apart(tmp_path: Path, files: ModelFiles) -> None:
    for number in range(2):
        files.add(f"{LONG_ID}{number}", FinishedAction("predict"))
    one = read_model(tmp_path, f"{LONG_ID}1")
    assert one is not None and one.model_id == "é" * 256 and one.actions["predict"].requests == 1


def test_a_worker_that_does_not_let_go_of_a_file_holds_up_no_other(tmp_path: Path, files: ModelFiles) -> None:
    files.add("m", FinishedAction("predict"))
    [path] = tmp_path.iterdir()
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(TimeoutError, match="another worker"):
            files.add("m", FinishedAction("predict"))
        figures = read_model(tmp_path, "m")
    assert figures is not None and figures.actions == {"predict": ActionCount(1, 0)}
    files.add("m", FinishedAction("predict"))
    figures = read_model(tmp_path, "m")
    assert figures is not None and figures.actions == {"predict": ActionCount(2, 0)}


def test_a_file_that_was_only_begun_says_nothing(tmp_path: Path, files: ModelFiles) -> None:
    files.add("m", FinishedAction("predict"))
    files.close()
    [file] = tmp_path.iterdir()
    file.write_bytes(bytes(8))
    assert read_model(tmp_path, "m") is None and model_file.read_models(tmp_path) == {}
    files.add("m", FinishedAction("predict"))
    assert read_model(tmp_path, "m") == ModelFigures("m", {"predict": ActionCount(1, 0)}, 0, (), ())


def test_a_model_that_another_worker_has_forgotten_is_counted_anew(tmp_path: Path, files: ModelFiles) -> None:
    files.add("m", FinishedAction("predict"))
    model_file.forget(tmp_path, "m")
    files.add("m", FinishedAction("deploy"))
    assert read_model(tmp_path, "m") == ModelFigures("m", {"deploy": ActionCount(1, 0)}, 0, (), ())


def test_a_model_that_is_forgotten_while_its_file_is_opened_is_counted_anew(
    tmp_path: Path, files: ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def open_and_forget(path: str, flags: int, mode: int = 0o777) -> int:
        file = opened(path, flags, mode)
        monkeypatch.undo()
        model_file.forget(tmp_path, "m")
        return file

    monkeypatch.setattr(os, "open", open_and_forget)
    files.add("m", FinishedAction("predict"))
    assert read_model(tmp_path, "m") == ModelFigures("m", {"predict": ActionCount(1, 0)}, 0, (), ())


def test_workers_count_together_however_many_models_there_are(tmp_path: Path, files: ModelFiles) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with closing(ModelFiles(tmp_path)) as other:
        for number in range(200):
            files.add(f"m{number}", FinishedAction("predict", request_duration=1))
        for number in range(200):
            other.add(f"m{number}", FinishedAction("predict", request_duration=2))
            files.add(f"m{number}", FinishedAction("predict", request_duration=3))
        assert len(os.listdir("/proc/self/fd")) < before + 300
    models = model_file.read_models(tmp_path)
    assert {figures.request_durations for figures in models.values()} == {(1.0, 2.0, 3.0)}
    assert {figures.actions["predict"].requests for figures in models.values()} == {3}
