"""Figures of the runtime models' processes, as Prometheus reads them."""

import pytest

from opensearch_ml_stream.extensions.runtimes.service.runtime_metrics import RuntimeMetrics
from opensearch_ml_stream.extensions.runtimes.service.status import ModelStatus, ProcessStatus
from opensearch_ml_stream.plugin.metrics import Metrics


def test_the_figures_of_a_models_processes_are_summed() -> None:
    first = ProcessStatus("s", ready=True, restarts=2, memory_bytes=5, in_flight=1, calls=7, failures=1)
    second = ProcessStatus("t", ready=True, memory_bytes=6, calls=3, batches=1, batched_requests=2)
    models = {"m": ModelStatus("READY", model_id="runtime-m", processes=[first, second])}
    metrics = Metrics()
    metrics.show_also(RuntimeMetrics(lambda: models))
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
    metrics.show_also(RuntimeMetrics(dict))
    assert b"mlstream_runtime" not in metrics.text()
