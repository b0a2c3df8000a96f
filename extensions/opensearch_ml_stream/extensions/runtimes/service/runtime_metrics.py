"""Metrics of runtimes, for Prometheus."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from opensearch_ml_stream.extensions.runtimes.service.status import ModelStatus, ProcessStatus
from opensearch_ml_stream.runtimes import model_metrics

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
_Key = tuple[str, tuple[tuple[str, str], ...]]  # a sample's name and labels


class RuntimeMetrics:
    """Collects the figures of the models' processes, as the keeper has last written them.

    `current` returns the models by name.
    """

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


@dataclass(slots=True)
class _Family:
    documentation: str
    type: str
    values: defaultdict[_Key, float] = field(default_factory=lambda: defaultdict(float))


class ModelMetrics:
    """Collects what the models themselves have registered and logged, their processes summed.

    `current` returns the models by name. The metrics have the names and labels that MLServer gives them. Of two models
    with a metric of one name and another type it is the first one's.
    """

    def __init__(self, current: Callable[[], Mapping[str, ModelStatus]]) -> None:
        self._current = current

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of all models."""
        found: dict[str, _Family] = {}
        for process in [process for model in self._current().values() for process in model.processes]:
            for stored in model_metrics.read(process.socket):
                family = found.setdefault(stored["name"], _Family(stored["documentation"], stored["type"]))
                if family.type != stored["type"]:
                    continue
                for name, labels, value in stored["samples"]:
                    family.values[name, tuple(labels.items())] += value
        for name, family in found.items():
            metric = Metric(name, family.documentation, family.type)
            for (sample, labels), value in family.values.items():
                metric.add_sample(sample, dict(labels), value)
            yield metric
