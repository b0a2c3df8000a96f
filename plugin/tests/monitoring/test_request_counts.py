"""Counts of models and of the server, and the last durations, written by several workers."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from opensearch_ml_stream.plugin.monitoring.statistics import (
    WINDOW,
    ActionCount,
    FinishedAction,
    ModelFigures,
    RequestCounts,
)

PREDICTED = FinishedAction("predict")
LONG_ID = "é" * 300  # more bytes than OpenSearch takes


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[RequestCounts]]:
    """Three workers of a server."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(RequestCounts(tmp_path, number))) for number in range(3)]


@pytest.fixture
def counts(workers: list[RequestCounts]) -> RequestCounts:
    return workers[0]


def test_nothing_is_known_of_what_was_never_requested(counts: RequestCounts) -> None:
    assert counts.of_model("m") is None
    assert (counts.of_models(), counts.of_server()) == ({}, {})


def test_actions_failures_and_durations_are_kept_by_model(counts: RequestCounts) -> None:
    counts.add("m", FinishedAction("deploy"))
    counts.add("m", FinishedAction("predict", request_duration=3.5, inference_duration=2.5))
    counts.add("m", FinishedAction("predict", failed=True, throttled=True, request_duration=0.5))
    counts.add("other", FinishedAction("undeploy", failed=True))
    actions = {"predict": ActionCount(2, 1), "deploy": ActionCount(1, 0)}
    expected = ModelFigures("m", actions, 1, (3.5, 0.5), (2.5,))
    assert counts.of_model("m") == expected
    other = ModelFigures("other", {"undeploy": ActionCount(1, 1)}, 0, (), ())
    assert counts.of_models() == {"m": expected, "other": other}
    assert counts.of_server() == {**actions, "undeploy": ActionCount(1, 1)}


def test_the_last_hundred_durations_are_kept_however_many_there_are(counts: RequestCounts, tmp_path: Path) -> None:
    for number in range(WINDOW + 3):
        counts.add("m", FinishedAction("predict", request_duration=number, inference_duration=-number))
    counts.add("other", FinishedAction("predict", request_duration=7))
    figures, other = counts.of_model("m"), counts.of_model("other")
    assert figures is not None and figures.actions["predict"].requests == WINDOW + 3
    assert sorted(figures.request_durations) == list(range(3, WINDOW + 3))
    assert sorted(figures.inference_durations) == list(range(-WINDOW - 2, -2))
    assert other == ModelFigures("other", {"predict": ActionCount(1, 0)}, 0, (7.0,), ())
    assert (tmp_path / "counts").stat().st_size < 200_000


def test_an_undeployed_model_keeps_its_counts_alone(counts: RequestCounts) -> None:
    counts.add("m", FinishedAction("predict", failed=True, throttled=True, request_duration=1, inference_duration=1))
    counts.forget_predictions("m")
    assert counts.of_model("m") == ModelFigures("m", {"predict": ActionCount(1, 1)}, 0, (), ())


def test_a_forgotten_model_is_gone_and_may_be_forgotten_twice(counts: RequestCounts) -> None:
    counts.forget("m")
    counts.add("m", PREDICTED)
    counts.forget("m")
    counts.forget("m")
    assert (counts.of_model("m"), counts.of_models()) == (None, {})
    assert counts.of_server() == {"predict": ActionCount(1, 0)}


def test_a_model_that_another_worker_has_forgotten_is_counted_anew(workers: list[RequestCounts]) -> None:
    one, other, _ = workers
    one.add("m", FinishedAction("predict", throttled=True, request_duration=1))
    assert one.of_model("m") == other.of_model("m") is not None
    other.forget("m")
    assert one.of_model("m") is None
    one.add("m", FinishedAction("deploy"))
    expected = ModelFigures("m", {"deploy": ActionCount(1, 0)}, 0, (), ())
    assert one.of_model("m") == other.of_model("m") == expected


def test_an_id_is_cut_to_what_opensearch_takes_and_still_tells_models_apart(counts: RequestCounts) -> None:
    for number in range(2):
        counts.add(f"{LONG_ID}{number}", PREDICTED)
    one = counts.of_model(f"{LONG_ID}1")
    assert one is not None and one.model_id == "é" * 256 and one.actions["predict"].requests == 1


def test_a_worker_that_does_not_let_go_of_the_table_holds_up_no_other(counts: RequestCounts, tmp_path: Path) -> None:
    counts.add("m", PREDICTED)
    with (tmp_path / "counts").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(TimeoutError, match="another worker"):
            counts.add("m", PREDICTED)
        figures = counts.of_model("m")
        assert counts.of_server() == {"predict": ActionCount(2, 0)}  # of which each worker has its own
    assert figures is not None and figures.actions == {"predict": ActionCount(1, 0)}
    counts.add("m", PREDICTED)
    figures = counts.of_model("m")
    assert figures is not None and figures.actions == {"predict": ActionCount(2, 0)}


def test_a_table_that_was_only_begun_says_nothing(counts: RequestCounts, tmp_path: Path) -> None:
    (tmp_path / "counts").write_bytes(b"\xff" * 1000)
    assert (counts.of_model("m"), counts.of_models(), counts.of_server()) == (None, {}, {})
    counts.add("m", PREDICTED)
    assert counts.of_model("m") == ModelFigures("m", {"predict": ActionCount(1, 0)}, 0, (), ())


def test_the_server_counts_what_all_its_workers_do_also_those_that_have_ended(
    workers: list[RequestCounts], tmp_path: Path
) -> None:
    one, _, three = workers
    three.add(None, FinishedAction("register", failed=True))
    assert one.of_server() == {"register": ActionCount(1, 1)}
    one.add("m", PREDICTED)
    three.close()
    with closing(RequestCounts(tmp_path, 2)) as successor:
        successor.add(None, FinishedAction("register"))
        expected = {"predict": ActionCount(1, 0), "register": ActionCount(2, 1)}
        assert one.of_server() == successor.of_server() == expected
    assert list(one.of_models()) == ["m"]


def test_workers_count_together_however_many_models_there_are(workers: list[RequestCounts]) -> None:
    one, other, third = workers
    before = len(os.listdir("/proc/self/fd"))
    for number in range(1000):
        one.add(f"m{number}", FinishedAction("predict", request_duration=1))
    for number in range(1000):
        other.add(f"m{number}", FinishedAction("predict", request_duration=2))
        one.add(f"m{number}", FinishedAction("predict", request_duration=3))
    assert len(os.listdir("/proc/self/fd")) <= before + 4
    models = third.of_models()
    assert models.keys() == {f"m{number}" for number in range(1000)}
    assert {figures.request_durations for figures in models.values()} == {(1.0, 2.0, 3.0)}
    assert {figures.actions["predict"].requests for figures in models.values()} == {3}
