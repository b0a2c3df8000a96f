"""Figures of the runtime models' processes, as Prometheus reads them."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter, Enum, Gauge

from opensearch_ml_stream.extensions.runtimes.service.runtime_metrics import ModelMetrics, RuntimeMetrics
from opensearch_ml_stream.extensions.runtimes.service.status import ModelStatus, ProcessStatus
from opensearch_ml_stream.plugin.metrics import Metrics
from opensearch_ml_stream.runtimes import model_metrics
from opensearch_ml_stream.runtimes.interface.metrics import MetricsRegistry
from opensearch_ml_stream.runtimes.model_metrics import MetricsFile


def test_the_figures_of_a_models_processes_are_summed() -> None:
    first = ProcessStatus("s", ready=True, restarts=2, memory_bytes=5, in_flight=1, calls=7, failures=1)
    second = ProcessStatus("t", ready=True, memory_bytes=6, calls=3, batches=1, batched_requests=2)
    models = {"m": ModelStatus("READY", model_id="runtime-m", processes=[first, second])}
    metrics = Metrics()
    metrics.add_collector(RuntimeMetrics(lambda: models))
    lines = [line for line in metrics.text().decode().splitlines() if line.startswith("mlstream_runtime")]
    assert lines == [
        f'mlstream_runtime_{name}{{model_id="runtime-m"}} {value}'
        for name, value in (
            ("ready", 2.0), ("memory_bytes", 11.0), ("in_flight", 1.0), ("restarts_total", 2.0), ("calls_total", 10.0),
            ("failures_total", 1.0), ("batches_total", 1.0), ("batched_requests_total", 2.0),
        )
    ]  # fmt: skip


@pytest.mark.parametrize("several_workers", [False, True])
def test_without_such_models_there_are_no_such_metrics(
    several_workers: bool, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if several_workers:
        monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path_factory.mktemp("metrics")))
    metrics = Metrics()
    metrics.add_collector(RuntimeMetrics(dict))
    assert b"mlstream_runtime" not in metrics.text()


def counting(socket: str, model: str, *values: float) -> MetricsRegistry:
    """The registry of a process that has counted these, and has written them."""
    registry = MetricsRegistry()
    for value in values:
        registry.register("words", "Words of an answer.").labels(model, "").observe(value)
    assert MetricsFile(registry, socket).write() == []
    return registry


def shown(models: dict[str, list[str]]) -> list[str]:
    statuses = {name: ModelStatus("READY", processes=[ProcessStatus(one) for one in of]) for name, of in models.items()}
    metrics = Metrics()
    metrics.add_collector(ModelMetrics(lambda: statuses))
    return [line for line in metrics.text().decode().splitlines() if "mlstream" not in line]


def test_the_processes_of_a_model_are_summed_and_models_told_apart(tmp_path: Path) -> None:
    sockets = [str(tmp_path / f"{number}.sock") for number in range(4)]
    counting(sockets[0], "m", 1, 20)
    counting(sockets[1], "m", 2)
    counting(sockets[2], "n", 3)
    lines = shown({"m": sockets[:2], "n": sockets[2:]})
    assert lines[:2] == ["# HELP words Words of an answer.", "# TYPE words histogram"]
    for line in (
        'words_bucket{le="1.0",model_name="m",model_version=""} 1.0',
        'words_bucket{le="+Inf",model_name="m",model_version=""} 3.0',
        'words_sum{model_name="m",model_version=""} 23.0',
        'words_count{model_name="n",model_version=""} 1.0',
    ):
        assert line in lines
    model_metrics.remove(sockets[2])
    assert not any('model_name="n"' in line for line in shown({"n": sockets[2:]}))


def test_metrics_of_prometheus_client_are_shown_as_they_are_but_for_those_that_are_the_servers(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    Counter("tokens", "Tokens.", ["kind"], registry=registry).labels(kind='a "b"').inc(3)
    Gauge("depth", "Depth.", registry=registry).set(2)
    Gauge("mlstream_streams_open", "Taken.", registry=registry).set(7)
    Enum("mode", "Mode.", states=["a"], registry=registry)
    socket = str(tmp_path / "0.sock")
    assert MetricsFile(registry, socket).write() == ["mlstream_streams_open", "mode"]
    lines = shown({"m": [socket]})
    assert 'tokens_total{kind="a \\"b\\""} 3.0' in lines and "depth 2.0" in lines
    assert len([line for line in lines if not line.startswith("#")]) == 2


def test_of_two_models_with_one_name_and_two_types_the_first_counts(tmp_path: Path) -> None:
    counting(str(tmp_path / "0.sock"), "m", 1)
    registry = CollectorRegistry()
    Gauge("words", "Other.", registry=registry).set(2)
    MetricsFile(registry, str(tmp_path / "1.sock")).write()
    lines = shown({"m": [str(tmp_path / "0.sock")], "n": [str(tmp_path / "1.sock")]})
    assert "# TYPE words histogram" in lines and "words 2.0" not in lines


@pytest.mark.parametrize("bound", ["samples", "characters", "bytes"])
def test_what_a_model_counts_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    registry = MetricsRegistry()
    registry.register("first", "").labels("m", "").observe(1)
    metric = registry.register("too_many", "")
    if bound == "samples":
        for number in range(model_metrics.MAX_SAMPLES):
            metric.labels(f"{number}", "").observe(1)
    elif bound == "characters":
        metric.labels("m" * (model_metrics.MAX_CHARACTERS + 1), "").observe(1)
    else:
        monkeypatch.setattr(model_metrics, "MAX_BYTES", 100)
    socket = str(tmp_path / "0.sock")
    assert "too_many" in MetricsFile(registry, socket).write() or bound == "bytes"
    assert [family["name"] for family in model_metrics.read(socket)] == ([] if bound == "bytes" else ["first"])


@pytest.mark.parametrize("content", [b"", b"[", b"\xff"])
def test_a_file_that_cannot_be_read_shows_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "0.sock.metrics").write_bytes(content)
    assert shown({"m": [str(tmp_path / "0.sock")]}) == []
