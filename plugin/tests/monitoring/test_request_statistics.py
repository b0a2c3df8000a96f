"""Requests counted while they run and when they have ended, by one worker and seen by another."""

import errno
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound, Unavailable
from opensearch_ml_stream.plugin.monitoring.statistics import (
    ActionCount,
    FinishedAction,
    ModelFigures,
    Statistics,
    open_statistics,
)


@pytest.fixture
def statistics(tmp_path: Path) -> Iterator[Statistics]:
    with open_statistics(tmp_path) as opened:
        yield opened


@pytest.fixture
def other_worker(tmp_path: Path) -> Iterator[Statistics]:
    with open_statistics(tmp_path) as opened:
        yield opened


GOOD = FinishedAction("predict", request_duration=750.0, inference_duration=500.0)


def predict(statistics: Statistics, model_id: str = "m") -> None:
    statistics.end(statistics.start(model_id, 100.0), model_id, GOOD)


def figures(statistics: Statistics, model_id: str = "m") -> ModelFigures:
    found = statistics.model(model_id)
    assert found is not None
    return found


def test_a_prediction_is_counted_for_the_server_and_for_its_model(statistics: Statistics) -> None:
    predict(statistics)
    statistics.end(None, "m", FinishedAction("predict", failed=True, throttled=True, request_duration=1.0))
    statistics.end(None, None, FinishedAction("predict", failed=True, request_duration=1.0))
    assert statistics.counts() == {"predict": ActionCount(3, 2)}
    assert statistics.models().keys() == {"m"}
    assert figures(statistics) == ModelFigures("m", {"predict": ActionCount(2, 1)}, 1, (750.0, 1.0), (500.0,))


def test_what_runs_is_seen_by_every_worker_until_it_ends(statistics: Statistics, other_worker: Statistics) -> None:
    one, two = statistics.start("m", 100.0), other_worker.start("n", 105.0)
    assert statistics.running() == other_worker.running()
    running = statistics.running()
    assert sorted((task.model_id, task.started) for task in running.values()) == [("m", 100.0), ("n", 105.0)]
    assert [task.task_id for task in running.values()] == list(running)
    three = statistics.start("o", 106.0)
    assert len(other_worker.running()) == 3
    statistics.end(three, "o", GOOD)
    assert other_worker.running() == running
    four = statistics.start("p", 107.0)  # in the slot of the third
    assert sorted(task.model_id for task in other_worker.running().values()) == ["m", "n", "p"]
    for worker, slot in ((statistics, one), (other_worker, two), (statistics, four)):
        worker.end(slot, None, GOOD)
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
        predict(worker)
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
    predict(statistics)
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
        predict(statistics)
        with statistics.action("undeploy", "m"):
            pass
        assert statistics.running() == {}
        assert statistics.problem is not None and "No space left on device" in statistics.problem
    [record] = caplog.records
    assert "No space left on device" in record.getMessage()
    predict(statistics)
    assert statistics.problem is None
    assert len(figures(statistics).request_durations) == 1
