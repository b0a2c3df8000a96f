"""Metrics as Prometheus reads them, of one process and of several workers that share a folder."""

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import values
from prometheus_client.mmap_dict import MmapedDict

from opensearch_ml_stream.connectors.chunks import Ending, Usage
from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, Throttled, Unavailable, UpstreamError
from opensearch_ml_stream.extensions.runtimes.service.runtime_metrics import RuntimeMetrics
from opensearch_ml_stream.extensions.runtimes.service.status import ModelStatus
from opensearch_ml_stream.plugin.metrics import MULTIPROC_DIR, BackgroundFailures, Metrics

IDLE = {"mlstream_streams_open": 0.0, "mlstream_streams_waiting": 0.0}


def samples(metrics: Metrics) -> dict[str, float]:
    """Each sample's value by its name and labels; buckets and creation times are left out."""
    found = {}
    for line in metrics.text().decode().splitlines():
        name, _, value = line.rpartition(" ")
        if not line.startswith("#") and "_bucket{" not in name and "_created" not in name:
            found[name] = float(value)
    return found


def add_stream(metrics: Metrics, outcome: Ending | MLStreamError | None, chunks: int = 0) -> None:
    metrics.stream_opened()
    metrics.stream_ended("m", outcome, chunks, 1.0, None)


def test_a_new_process_has_no_open_streams() -> None:
    assert samples(Metrics()) == IDLE


def test_predictions_that_wait_are_counted() -> None:
    metrics = Metrics()
    with metrics.stream_waits():
        assert samples(metrics)["mlstream_streams_waiting"] == 1
    assert samples(metrics)["mlstream_streams_waiting"] == 0


def test_every_metric_says_what_it_counts() -> None:
    text = Metrics().text().decode()
    assert "# HELP mlstream_streams_total Streams that ended, by outcome: ok, error or client_left." in text


def test_the_page_of_metrics_has_all_of_them_and_no_others() -> None:
    metrics = Metrics()
    metrics.certificate_expires(0)
    metrics.add_collector(RuntimeMetrics(lambda: {"m": ModelStatus(model_id="runtime-m")}))
    metrics.add_collector(BackgroundFailures(lambda: {"settings": 1}))
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text("utf-8")
    documented = re.findall(r"^\| `(mlstream_[a-z_]+)` \|", page, re.MULTILINE)
    there = [line.split()[2] for line in metrics.text().decode().splitlines() if line.startswith("# TYPE")]
    assert sorted(documented) == sorted(there)


@pytest.mark.parametrize(("outcome", "name"), [(Ending(), "ok"), (UpstreamError("x"), "error"), (None, "client_left")])
def test_a_stream_is_counted_by_its_outcome(outcome: Ending | UpstreamError | None, name: str) -> None:
    metrics = Metrics()
    add_stream(metrics, outcome, chunks=3)
    counted = samples(metrics)
    assert counted[f'mlstream_streams_total{{model_id="m",outcome="{name}"}}'] == 1
    assert counted['mlstream_stream_chunks_total{model_id="m"}'] == 3
    assert counted["mlstream_streams_open"] == 0


def test_times_of_streams_are_shown_in_buckets() -> None:
    metrics = Metrics()
    metrics.stream_opened()
    assert samples(metrics)["mlstream_streams_open"] == 1
    metrics.stream_ended("m", Ending(), 1, 7.0, 0.75)
    counted = samples(metrics)
    assert counted['mlstream_time_to_first_chunk_seconds_sum{model_id="m"}'] == 0.75
    assert counted['mlstream_stream_duration_seconds_sum{model_id="m"}'] == 7.0
    text = metrics.text().decode()
    assert 'mlstream_time_to_first_chunk_seconds_bucket{le="0.5",model_id="m"} 0.0' in text
    assert 'mlstream_time_to_first_chunk_seconds_bucket{le="1.0",model_id="m"} 1.0' in text


def test_a_stream_without_a_chunk_has_no_time_to_the_first() -> None:
    metrics = Metrics()
    add_stream(metrics, Ending())
    assert 'mlstream_time_to_first_chunk_seconds_count{model_id="m"}' not in samples(metrics)


def test_tokens_are_added_up_by_kind() -> None:
    metrics = Metrics()
    for _ in range(2):
        add_stream(metrics, Ending(usage=Usage(input_tokens=3, output_tokens=4, cached_tokens=1)))
    add_stream(metrics, Ending())
    counted = {name: value for name, value in samples(metrics).items() if name.startswith("mlstream_tokens")}
    assert counted == {
        'mlstream_tokens_total{model_id="m",type="input"}': 6.0,
        'mlstream_tokens_total{model_id="m",type="output"}': 8.0,
        'mlstream_tokens_total{model_id="m",type="cached"}': 2.0,
    }


def test_a_call_that_a_limit_of_a_model_refused_is_counted_by_that_limit() -> None:
    metrics = Metrics()
    for error in (Throttled("x", limit="model_rate"), Throttled("x", limit="user_rate"), Throttled("x")):
        add_stream(metrics, error)
        metrics.prediction_ended("m", error)
    refused = {name: value for name, value in samples(metrics).items() if name.startswith("mlstream_refused")}
    assert refused == {
        'mlstream_refused_total{limit="model_rate",model_id="m"}': 2.0,
        'mlstream_refused_total{limit="user_rate",model_id="m"}': 2.0,
    }


@pytest.mark.parametrize(
    ("outcome", "status", "provider_status"),
    [
        (Ending(), "200", None),
        (KeyError("x"), "500", None),
        (InvalidRequest("x"), "400", None),
        (Throttled("x"), "429", None),
        (UpstreamError("x"), "424", "none"),
        (UpstreamError("x", provider_status=503), "424", "503"),
        (UpstreamError("x", provider_status=429), "429", "429"),
    ],
)
def test_a_prediction_is_counted_by_status_and_a_failure_of_the_provider_by_its_own(
    outcome: Ending | Exception, status: str, provider_status: str | None
) -> None:
    metrics = Metrics()
    metrics.prediction_ended("m", outcome)
    expected = {**IDLE, f'mlstream_predictions_total{{model_id="m",status="{status}"}}': 1.0}
    if provider_status is not None:
        expected[f'mlstream_provider_errors_total{{model_id="m",provider_status="{provider_status}"}}'] = 1.0
    assert samples(metrics) == expected


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes the metrics of a worker with a process id of its own, as the client library does in each process."""
    opened: list[MmapedDict] = []

    class Opened(MmapedDict):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)  # type: ignore[no-untyped-call]
            opened.append(self)

    monkeypatch.setenv(MULTIPROC_DIR, str(tmp_path))
    monkeypatch.setattr(values, "MmapedDict", Opened)

    def make(process_id: int) -> Metrics:
        value_class = values.MultiProcessValue(process_identifier=lambda: process_id)  # type: ignore[no-untyped-call]
        monkeypatch.setattr(values, "ValueClass", value_class)
        return Metrics()

    yield make
    for file in opened:
        file.close()  # type: ignore[no-untyped-call]


def test_any_worker_shows_the_metrics_of_all(worker: Any) -> None:
    one = worker(1)
    add_stream(one, Ending(), chunks=2)
    one.prediction_ended("m", Ending())
    other = worker(2)
    add_stream(other, Ending(), chunks=3)
    other.stream_opened()
    expected = {
        **IDLE,
        "mlstream_streams_open": 1.0,
        'mlstream_streams_total{model_id="m",outcome="ok"}': 2.0,
        'mlstream_stream_chunks_total{model_id="m"}': 5.0,
        'mlstream_predictions_total{model_id="m",status="200"}': 1.0,
    }
    for metrics in (one, other):
        assert expected.items() <= samples(metrics).items()


def test_money_is_counted_by_model() -> None:
    metrics = Metrics()
    metrics.count_cost("m", 0.25)
    metrics.count_cost("m", 0.5)
    assert samples(metrics)['mlstream_cost_total{model_id="m"}'] == 0.75


MODELS = [f"a-model-with-a-long-id-{number:050}" for number in range(150)]


def count_all(metrics: Metrics) -> None:
    """Make the series of all models, some hundred kilobytes."""
    for model_id in MODELS:
        metrics.stream_opened()
        metrics.stream_ended(model_id, Ending(), 0, 1.0, 1.0)


def test_every_page_that_a_worker_maps_has_its_place_on_the_disk(worker: Any, tmp_path: Path) -> None:
    count_all(worker(os.getpid()))
    sizes = {path.name.partition("_")[0]: path.stat() for path in tmp_path.glob("*.db")}
    assert sizes["histogram"].st_size > 8 * sizes["gauge"].st_size
    assert all(stat.st_blocks * 512 >= stat.st_size for stat in sizes.values())


def test_metrics_that_cannot_be_read_as_no_descriptor_is_left_are_unavailable(
    worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = worker(os.getpid())
    add_stream(metrics, Ending())

    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr("builtins.open", refuse)
        with pytest.raises(Unavailable, match="Metrics cannot be read now: Too many open files"):
            metrics.text()
    assert metrics.text()
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "/no/folder")
    with pytest.raises(Unavailable, match="Metrics cannot be read now: No such file or directory"):
        metrics.text()


def test_what_the_disk_has_no_room_for_is_not_counted_and_said_once(
    worker: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    metrics = worker(os.getpid())
    add_stream(metrics, Ending())
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        count_all(metrics)
        add_stream(metrics, Ending())
        assert metrics.problem == (
            "Metrics are not counted, for lack of room (No space left on device). Is the disk full?"
        )
    assert len(caplog.records) == 1
    counted = samples(metrics)
    assert counted['mlstream_streams_total{model_id="m",outcome="ok"}'] == 2
    assert 0 < sum(model_id in name for model_id in MODELS for name in counted) < len(MODELS) * 4
    count_all(metrics)
    assert metrics.problem is None
    counted = samples(metrics)
    assert all(f'mlstream_streams_total{{model_id="{model_id}",outcome="ok"}}' in counted for model_id in MODELS)


@pytest.mark.parametrize(
    ("owner", "name", "number"),
    [(os, "pwrite", errno.ENOSPC), (os, "open", errno.EMFILE)],
)
def test_a_worker_that_begins_without_disk_space_or_descriptors_shows_its_open_streams_when_there_are_some(
    worker: Any, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, number: int
) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, refuse)
        metrics = worker(os.getpid())
        metrics.stream_opened()
        assert samples(metrics) == {}
    metrics.stream_opened()
    assert samples(metrics)["mlstream_streams_open"] == 2
