"""What an observation makes of a prediction for metrics, statistics and observers."""

import gc
import weakref
from asyncio import CancelledError
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from opensearch_ml_stream.connectors.chunks import Ending, Usage
from opensearch_ml_stream.connectors.errors import (
    Forbidden,
    InvalidRequest,
    MLStreamError,
    NotFound,
    Throttled,
    UpstreamError,
)
from opensearch_ml_stream.plugin.metrics import Metrics
from opensearch_ml_stream.plugin.monitoring.statistics import ActionCount, ModelFigures, open_statistics
from opensearch_ml_stream.plugin.observation import Observation, Observations
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller
from tests.recorder import Recorder

ANN = Caller("ann")


class Time:
    """The time stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Stream:
    """A stream whose chunks and outcome the test sets."""

    def __init__(self, time: Time | None = None) -> None:
        self.chunks = 0
        self.first_chunk: float | None = None
        self.outcome: Ending | MLStreamError | None = None
        self._time = time or Time()
        self._tell: Callable[[], None] | None = None

    def on_first_chunk(self, tell: Callable[[], None]) -> None:
        self._tell = tell

    def send(self, chunks: int) -> None:
        self.chunks += chunks
        if self.first_chunk is None:
            self.first_chunk = self._time()
            if self._tell is not None:
                self._tell()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def observations(tmp_path: Path, time: Time) -> Iterator[Observations]:
    with open_statistics(tmp_path) as statistics:
        yield Observations(Metrics(), statistics, time)


def sample(observations: Observations, name: str) -> float | None:
    """The value of a metric's sample, None without."""
    lines = observations.metrics.text().decode().splitlines()
    return next((float(line.removeprefix(name)) for line in lines if line.startswith(f"{name} ")), None)


def figures(observations: Observations) -> ModelFigures:
    found = observations.statistics.model("m")
    assert found is not None
    return found


def test_a_stream_is_measured_from_its_request_and_from_where_its_model_is_called(
    observations: Observations, time: Time
) -> None:
    with observations.stream(ANYONE) as observed:
        assert sample(observations, "mlstream_streams_open") == 1
        time.now += 0.25
        observed.set_model("m")
        assert [task.started for task in observations.statistics.running().values()] == [100.0]
        stream = Stream(time)
        observed.set_stream(stream)
        time.now += 0.5
        stream.send(3)
        time.now += 6
        stream.outcome = Ending(usage=Usage(3, 4))
    assert observations.statistics.running() == {}
    assert figures(observations) == ModelFigures("m", {"predict": ActionCount(1, 0)}, 0, (6750.0,), (6500.0,))
    assert sample(observations, "mlstream_streams_open") == 0
    assert sample(observations, 'mlstream_stream_duration_seconds_sum{model_id="m"}') == 6.75
    assert sample(observations, 'mlstream_time_to_first_chunk_seconds_sum{model_id="m"}') == 0.75
    assert sample(observations, 'mlstream_stream_chunks_total{model_id="m"}') == 3
    assert sample(observations, 'mlstream_tokens_total{model_id="m",type="output"}') == 4


@pytest.mark.parametrize(
    ("outcome", "name", "failures", "throttled", "inferences"),
    [
        (Ending(), "ok", 0, 0, 1),
        (None, "client_left", 0, 0, 0),
        (UpstreamError("cut off"), "error", 1, 0, 0),
        (Throttled("x"), "error", 1, 1, 0),
    ],
)
def test_a_stream_is_counted_by_its_outcome(
    observations: Observations,
    outcome: Ending | MLStreamError | None,
    name: str,
    failures: int,
    throttled: int,
    inferences: int,
) -> None:
    with observations.stream(ANYONE) as observed:
        observed.set_model("m")
        stream = Stream()
        observed.set_stream(stream)
        stream.outcome = outcome
    assert sample(observations, f'mlstream_streams_total{{model_id="m",outcome="{name}"}}') == 1
    assert observations.statistics.counts() == {"predict": ActionCount(1, failures)}
    counted = figures(observations)
    assert (counted.throttled, len(counted.inference_durations)) == (throttled, inferences)


@pytest.mark.parametrize(
    ("error", "status", "failures", "inferences"),
    [
        (None, 200, 0, 1),
        (InvalidRequest("x"), 400, 1, 0),
        (Throttled("x"), 429, 1, 0),
        (KeyError("x"), 500, 1, 0),
        (CancelledError(), None, 0, 0),
    ],
    ids=["good", "request", "limit", "defect", "client disconnected"],
)
def test_a_whole_prediction_is_counted_by_what_leaves_the_block(
    observations: Observations, error: BaseException | None, status: int | None, failures: int, inferences: int
) -> None:
    with suppress(Exception, CancelledError), observations.whole(ANYONE) as observed:
        observed.set_model("m")
        if error is not None:
            raise error
    text = observations.metrics.text().decode()
    expected = [] if status is None else [f'mlstream_predictions_total{{model_id="m",status="{status}"}} 1.0']
    assert [line for line in text.splitlines() if line.startswith("mlstream_predictions_total")] == expected
    assert observations.statistics.counts() == {"predict": ActionCount(1, failures)}
    assert len(figures(observations).inference_durations) == inferences


def test_an_exception_that_leaves_a_stream_is_its_outcome_and_a_cancellation_is_the_clients(
    observations: Observations,
) -> None:
    for error in (Throttled("x"), KeyError("x"), CancelledError()):
        with pytest.raises(type(error)), observations.stream(ANYONE) as observed:
            observed.set_model("m")
            raise error
    assert sample(observations, 'mlstream_streams_total{model_id="m",outcome="error"}') == 2
    assert sample(observations, 'mlstream_streams_total{model_id="m",outcome="client_left"}') == 1
    assert figures(observations).actions == {"predict": ActionCount(3, 2)}


def test_a_failure_that_is_known_is_not_replaced_by_one_that_follows(observations: Observations) -> None:
    with suppress(KeyError), observations.stream(ANYONE) as observed:
        observed.set_model("m")
        stream = Stream()
        observed.set_stream(stream)
        stream.outcome = UpstreamError("x", provider_status=503)
        raise KeyError("x")
    assert sample(observations, 'mlstream_provider_errors_total{model_id="m",provider_status="503"}') == 1


def test_predictions_of_no_model_are_of_an_unknown_one_and_count_for_the_server_alone(
    observations: Observations,
) -> None:
    with pytest.raises(NotFound), observations.whole(ANYONE):
        raise NotFound("x")
    with observations.stream(ANYONE):
        pass
    assert sample(observations, 'mlstream_predictions_total{model_id="unknown",status="404"}') == 1
    assert sample(observations, 'mlstream_streams_total{model_id="unknown",outcome="client_left"}') == 1
    assert observations.statistics.counts() == {"predict": ActionCount(2, 1)}
    assert observations.statistics.models() == {}


def test_a_prediction_that_falls_back_counts_for_both_models_each_for_its_time(
    observations: Observations, time: Time
) -> None:
    with observations.whole(ANYONE) as observed:
        observed.set_model("first")
        time.now += 1
        observed.fall_back("m", UpstreamError("x", provider_status=500))
        assert [task.model_id for task in observations.statistics.running().values()] == ["m"]
        time.now += 2
    first = observations.statistics.model("first")
    assert first == ModelFigures("first", {"predict": ActionCount(1, 1)}, 0, (1000.0,), ())
    assert figures(observations) == ModelFigures("m", {"predict": ActionCount(1, 0)}, 0, (2000.0,), (2000.0,))
    assert sample(observations, 'mlstream_fallbacks_total{fallback_model_id="m",model_id="first"}') == 1
    assert sample(observations, 'mlstream_provider_errors_total{model_id="first",provider_status="500"}') == 1


def test_an_observation_keeps_no_stream_and_no_error_when_it_has_ended(observations: Observations) -> None:
    stream = Stream()
    with suppress(KeyError), observations.stream(ANYONE) as observed:
        observed.set_stream(stream)
        raise KeyError("x")
    gone = weakref.ref(stream)
    del stream
    gc.collect()
    assert gone() is None
    assert observed.outcome is None


def test_an_observer_is_told_of_a_stream_four_times_at_most_and_of_no_chunk(
    observations: Observations, time: Time
) -> None:
    names = ("caller", "asked", "model_id", "is_stream", "begun", "admitted", "first_chunk", "chunks", "outcome")
    recorder = Recorder(*names)
    observations.observers.append(recorder)
    ending = Ending(usage=Usage(3, 4), model="gpt")
    with observations.stream(ANN) as observed:
        observed.set_model("m")
        time.now += 1
        observed.admit()
        stream = Stream(time)
        observed.set_stream(stream)
        time.now += 1
        for _ in range(3):
            stream.send(1)
        stream.outcome = ending
        time.now += 1
    assert recorder.told == [
        ("admitted", ANN, "m", "m", True, 100.0, 101.0, None, 0, None),
        ("first_chunk", ANN, "m", "m", True, 100.0, 101.0, 102.0, 1, None),
        ("ended", ANN, "m", "m", True, 100.0, 101.0, 102.0, 3, ending),
    ]
    assert observed.ended == 103.0


def test_an_observer_is_told_which_model_answered_in_place_of_which(observations: Observations) -> None:
    recorder = Recorder("asked", "model_id")
    observations.observers.append(recorder)
    with observations.whole(ANYONE) as observed:
        observed.set_model("first")
        observed.admit()
        observed.fall_back("second", UpstreamError("x"))
        observed.admit()
    assert recorder.told == [("admitted", "first", "first"), ("ended", "first", "second")]


@pytest.mark.parametrize("error", [NotFound("x"), Forbidden("x"), Throttled("x"), KeyError("x")])
def test_what_fails_before_it_is_admitted_is_refused_and_has_not_ended(
    observations: Observations, error: Exception
) -> None:
    recorder = Recorder("outcome")
    observations.observers.append(recorder)
    with suppress(MLStreamError, KeyError), observations.stream(ANYONE):
        raise error
    assert recorder.told == [("refused", error)]


def test_a_client_that_disconnects_before_it_is_admitted_was_not_refused(observations: Observations) -> None:
    recorder = Recorder("outcome")
    observations.observers.append(recorder)
    with suppress(CancelledError), observations.stream(ANYONE):
        raise CancelledError
    assert recorder.told == [("ended", None)]


def test_what_an_observer_raises_is_logged_once_and_stops_neither_prediction_nor_other_observers(
    observations: Observations, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Recorder):
        def note(self, moment: str, prediction: Observation) -> None:
            super().note(moment, prediction)
            raise KeyError("a defect")

    broken, recorder = Broken(), Recorder()
    observations.observers += [broken, recorder]
    for _ in range(2):
        with observations.whole(ANYONE) as observed:
            observed.set_model("m")
            observed.admit()
    assert broken.told == recorder.told == [("admitted",), ("ended",)] * 2
    [record] = caplog.records
    assert "Broken" in record.getMessage()
    assert record.exc_info is not None
    assert sample(observations, 'mlstream_predictions_total{model_id="m",status="200"}') == 2


def test_a_refused_batch_job_is_counted_as_refused_and_as_no_prediction(observations: Observations) -> None:
    recorder = Recorder()
    observations.observers.append(recorder)
    with pytest.raises(Throttled), observations.batch_job("m"):
        raise Throttled("x", limit="model_rate")
    assert sample(observations, 'mlstream_refused_total{limit="model_rate",model_id="m"}') == 1
    assert observations.statistics.counts() == {"batch_predict": ActionCount(1, 1)}
    assert recorder.told == []
