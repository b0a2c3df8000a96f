"""Metrics of the models' own, for Prometheus: what they have registered and logged, their processes summed."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import Metric

from opensearch_ml_stream.extensions.runtimes.service.status import ModelStatus
from opensearch_ml_stream.runtimes import own_metrics

_Key = tuple[str, tuple[tuple[str, str], ...]]  # a sample's name and labels


@dataclass(slots=True)
class _Family:
    documentation: str
    type: str
    values: defaultdict[_Key, float] = field(default_factory=lambda: defaultdict(float))


class ModelMetrics:
    """A collector of Prometheus; `current` returns the models by name.

    The metrics have the names and labels that MLServer gives them. Of two models with a metric of one name and another
    type it is the first one's.
    """

    def __init__(self, current: Callable[[], Mapping[str, ModelStatus]]) -> None:
        self._current = current

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of all models."""
        found: dict[str, _Family] = {}
        for process in [process for model in self._current().values() for process in model.processes]:
            for said in own_metrics.read(process.socket):
                family = found.setdefault(said["name"], _Family(said["documentation"], said["type"]))
                if family.type != said["type"]:
                    continue
                for name, labels, value in said["samples"]:
                    family.values[name, tuple(labels.items())] += value
        for name, family in found.items():
            metric = Metric(name, family.documentation, family.type)
            for (sample, labels), value in family.values.items():
                metric.add_sample(sample, dict(labels), value)
            yield metric
