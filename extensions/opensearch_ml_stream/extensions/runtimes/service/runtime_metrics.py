"""Figures of the runtime models' processes, for Prometheus: as the keeper has last written them."""

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from opensearch_ml_stream.extensions.runtimes.service.status import ModelStatus, ProcessStatus

_GAUGES: tuple[tuple[str, str, Callable[[ProcessStatus], float]], ...] = (
    ("mlstream_runtime_ready", "Processes of a model that can be called.", lambda process: process.ready),
    ("mlstream_runtime_memory_bytes", "Resident memory of a model's processes.", lambda process: process.memory_bytes),
    ("mlstream_runtime_in_flight", "Calls that a model's processes run now.", lambda process: process.in_flight),
)
_COUNTERS: tuple[tuple[str, str, Callable[[ProcessStatus], float]], ...] = (
    ("mlstream_runtime_restarts", "Processes of a model that ended and were started again.", lambda p: p.restarts),
    ("mlstream_runtime_calls", "Calls of a model's processes, since their start.", lambda p: p.calls),
    ("mlstream_runtime_failures", "Those that failed.", lambda p: p.failures),
    ("mlstream_runtime_batches", "Batches of calls that were predicted as one.", lambda p: p.batches),
    ("mlstream_runtime_batched_requests", "Calls in these batches.", lambda p: p.batched_requests),
)


class RuntimeMetrics:
    """A collector of Prometheus; `current` returns the models by name."""

    def __init__(self, current: Callable[[], Mapping[str, ModelStatus]]) -> None:
        self._current = current

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, each with a sample for each model; none where there are no models."""
        models = self._current().values()
        if not models:
            return
        for kind, definitions in ((GaugeMetricFamily, _GAUGES), (CounterMetricFamily, _COUNTERS)):
            for name, text, value in definitions:
                metric = kind(name, text, labels=["model_id"])
                for model in models:
                    metric.add_metric([model.model_id], sum(value(process) for process in model.processes))
                yield metric
