"""Requests counted while they run and when they have ended, by one worker and seen by another."""

import asyncio
import errno
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.errors import (
    InvalidRequest,
    MLStreamError,
    NotFound,
    Throttled,
    Unavailable,
    UpstreamError,
)
from opensearch_ml_stream.plugin.statistics import request_statistics
from opensearch_ml_stream.plugin.statistics.model_file import ModelFigures
from opensearch_ml_stream.plugin.statistics.request_statistics import Statistics, open_statistics
from opensearch_ml_stream.plugin.statistics.worker_file import ActionCount


@pytest.fixture
def statistics(tmp_path: Path) -> Iterator[Statistics]:
    with open_statistics(tmp_path) as opened:
        yield opened


@pytest.fixture
def other_worker(tmp_path: Path) -> Iterator[Statistics]:
    with open_statistics(tmp_path) as opened:
        yield opened


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time is the one number in the list."""
    now = [100.0]
    monkeypatch.setattr(request_statistics, "monotonic", lambda: now[0])
    return now


def predict(statistics: Statistics, outcome: object, model_id: str | None = "m") -> None:
    with statistics.prediction() as prediction:
        if model_id is not None:
            prediction.start(model_id)
        if isinstance(outcome, BaseException):
            raise outcome
        prediction.outcome = outcome


def figures(statistics: Statistics, model_id: str = "m") -> ModelFigures:
    found = statistics.model(model_id)
    assert found is not None
    return found


def test_a_good_prediction_is_measured_whole_and_from_where_the_model_is_called(
    statistics: Statistics, clock: list[float]
) -> None:
    with statistics.prediction() as prediction:
        clock[0] += 0.25
        prediction.start("m")
        clock[0] += 0.5
        prediction.outcome = Ending()
    assert statistics.counts() == {"predict": ActionCount(1, 0)}
    assert figures(statistics) == ModelFigures("m", {"predict": ActionCount(1, 0)}, 0, (750.0,), (500.0,))


@pytest.mark.parametrize(
    ("outcome", "failures", "throttled", "inferences"),
    [
        (Ending(), 0, 0, 1),
        ({"inference_results": []}, 0, 0, 1),
        (UpstreamError("x", provider_status=429), 1, 0, 0),
        (InvalidRequest("x"), 1, 0, 0),
        (Throttled("x"), 1, 1, 0),
        (KeyError("x"), 1, 0, 0),
        (asyncio.CancelledError(), 0, 0, 0),
        (None, 0, 0, 0),
    ],
    ids=["stream", "whole", "provider", "request", "rate limit", "defect", "cancelled", "client disconnected"],
)
def test_a_prediction_is_counted_by_its_outcome(
    statistics: Statistics, outcome: object, failures: int, throttled: int, inferences: int
) -> None:
    try:
        predict(statistics, outcome)
    except (MLStreamError, KeyError, asyncio.CancelledError) as error:
        assert error is outcome
    assert statistics.counts() == {"predict": ActionCount(1, failures)}
    counted = figures(statistics)
    assert (counted.actions, counted.throttled) == ({"predict": ActionCount(1, failures)}, throttled)
    assert (len(counted.request_durations), len(counted.inference_durations)) == (1, inferences)


def test_a_stream_that_ended_in_an_error_is_a_failure_without_raising(statistics: Statistics) -> None:
    with statistics.prediction() as prediction:
        prediction.start("m")
        prediction.outcome = UpstreamError("cut off")
    assert prediction.outcome is None
    assert figures(statistics).actions == {"predict": ActionCount(1, 1)}


def test_a_prediction_of_no_model_counts_for_the_server_alone(statistics: Statistics) -> None:
    with pytest.raises(NotFound):
        predict(statistics, NotFound("x"), model_id=None)
    assert (statistics.counts(), statistics.models()) == ({"predict": ActionCount(1, 1)}, {})


def test_what_runs_is_seen_by_every_worker_until_it_ends(
    statistics: Statistics, other_worker: Statistics, clock: list[float]
) -> None:
    with statistics.prediction() as one, other_worker.prediction() as two:
        one.start("m")
        clock[0] += 5
        two.start("n")
        assert statistics.running() == other_worker.running()
        running = statistics.running()
        assert sorted((task.model_id, task.started) for task in running.values()) == [("m", 100.0), ("n", 100.0)]
        assert [task.task_id for task in running.values()] == list(running)
        with statistics.prediction() as three:
            three.start("o")
            assert len(other_worker.running()) == 3
        assert other_worker.running() == running
        with statistics.prediction() as four:  # in the slot of the third
            four.start("p")
            assert sorted(task.model_id for task in other_worker.running().values()) == ["m", "n", "p"]
    assert other_worker.running() == {}


def test_what_ran_in_a_worker_that_died_runs_no_more(tmp_path: Path, statistics: Statistics) -> None:
    with open_statistics(tmp_path) as dies:
        dies.start("m", 1.0)
        assert len(statistics.running()) == 1
    assert statistics.running() == {}
    with open_statistics(tmp_path):
        assert statistics.running() == {}


def test_workers_add_up_one_models_numbers(statistics: Statistics, other_worker: Statistics) -> None:
    for worker in (statistics, other_worker, other_worker):
        predict(worker, Ending())
    for worker in (statistics, other_worker):
        assert worker.counts() == {"predict": ActionCount(3, 0)}
        assert len(figures(worker).request_durations) == 3


def test_actions_are_counted_with_their_failures(statistics: Statistics) -> None:
    with statistics.action("register"):
        pass
    with statistics.action("deploy", "m"):
        pass
    with pytest.raises(InvalidRequest), statistics.action("deploy", "m"):
        raise InvalidRequest("x")
    for error in (NotFound("x"), Unavailable("the store is down")):
        with pytest.raises(type(error)), statistics.action("deploy", "made up"):
            raise error
    assert statistics.counts() == {"register": ActionCount(1, 0), "deploy": ActionCount(4, 3)}
    assert {id: found.actions for id, found in statistics.models().items()} == {"m": {"deploy": ActionCount(2, 1)}}


def test_undeploying_forgets_durations_and_deleting_forgets_the_model(statistics: Statistics) -> None:
    predict(statistics, Ending())
    with pytest.raises(InvalidRequest), statistics.action("undeploy", "m"):
        raise InvalidRequest("x")
    assert len(figures(statistics).request_durations) == 1
    with statistics.action("undeploy", "m"):
        pass
    actions = {"predict": ActionCount(1, 0), "undeploy": ActionCount(2, 1)}
    assert figures(statistics) == ModelFigures("m", actions, 0, (), ())
    with pytest.raises(InvalidRequest), statistics.action("delete", "m"):
        raise InvalidRequest("x")
    assert list(statistics.models()) == ["m"]
    with statistics.action("delete", "m"):
        pass
    assert (statistics.models(), statistics.counts()) == ({}, actions)


def test_a_full_disk_is_logged_once_and_stops_no_prediction(
    statistics: Statistics, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
        patched.setattr(os, "pwrite", full)
        predict(statistics, Ending())
        with statistics.action("undeploy", "m"):
            pass
        assert statistics.running() == {}
        assert statistics.problem is not None and "No space left on device" in statistics.problem
    [record] = caplog.records
    assert "No space left on device" in record.getMessage()
    predict(statistics, Ending())
    assert statistics.problem is None
    assert len(figures(statistics).request_durations) == 1
