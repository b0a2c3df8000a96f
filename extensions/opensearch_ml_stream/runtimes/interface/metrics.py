"""A model's own metrics, as MLServer has them: histograms with the model's name and version as labels."""

import math
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from threading import Lock
from typing import NamedTuple

from opensearch_ml_stream.runtimes.interface.context import model_name_var, model_version_var

SELDON_MODEL_NAME_LABEL = "model_name"
SELDON_MODEL_VERSION_LABEL = "model_version"

# Those of prometheus_client.
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, math.inf)
_LABELS: tuple[str, ...] = (SELDON_MODEL_NAME_LABEL, SELDON_MODEL_VERSION_LABEL)
_NAME = re.compile("[a-zA-Z_:][a-zA-Z0-9_:]*")


class Sample(NamedTuple):
    """One line of what Prometheus reads."""

    name: str
    labels: Mapping[str, str]
    value: float


class Family(NamedTuple):
    """All samples of a metric."""

    name: str
    documentation: str
    type: str
    samples: list[Sample]


class Series:
    """The values that were observed with one set of labels."""

    def __init__(self) -> None:
        self._lock = Lock()  # a model may count in its threads
        self._counts = [0] * len(BUCKETS)
        self._sum = 0.0

    def observe(self, amount: float, exemplar: object = None) -> None:
        """Count a value; exemplars are not kept."""
        value = float(amount)
        place = next((place for place, bound in enumerate(BUCKETS) if value <= bound), None)
        with self._lock:
            if place is not None:  # NaN is in none
                self._counts[place] += 1
            self._sum += value

    @contextmanager
    def time(self) -> Iterator[None]:
        """Count the seconds that the block takes."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.observe(time.perf_counter() - began)

    def samples(self, name: str, labels: Mapping[str, str]) -> Iterator[Sample]:
        """Yield the samples; a bucket includes the values of the buckets before it."""
        with self._lock:
            counts, total = list(accumulate(self._counts)), self._sum
        for bound, count in zip(BUCKETS, counts, strict=True):
            yield Sample(f"{name}_bucket", {**labels, "le": "+Inf" if bound == math.inf else str(bound)}, count)
        yield Sample(f"{name}_count", labels, counts[-1])
        yield Sample(f"{name}_sum", labels, total)


class Metric:
    """A histogram."""

    def __init__(self, name: str, description: str) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"Invalid metric name: {name}")
        self._name = name
        self._description = description
        self._series: dict[tuple[str, ...], Series] = {}

    def labels(self, *values: object, **named: object) -> Series:
        """Return the series of a model's name and version; ValueError for other labels."""
        if len(values) != len(_LABELS) if values else named.keys() != set(_LABELS):
            raise ValueError(f"Incorrect label names or count; they are {', '.join(_LABELS)}")
        given = values or tuple(named[label] for label in _LABELS)
        return self._series.setdefault(tuple(map(str, given)), Series())

    def collect(self) -> Family:
        """Return its samples of now."""
        series = [(dict(zip(_LABELS, values, strict=True)), one) for values, one in tuple(self._series.items())]
        samples = [sample for labels, one in series for sample in one.samples(self._name, labels)]
        return Family(self._name, self._description, "histogram", samples)


class MetricsRegistry:
    """The metrics by name."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}

    def register(self, name: str, description: str) -> Metric:
        """Return the metric of a name, a new one if there is none."""
        if name not in self._metrics:
            self._metrics[name] = Metric(name, description)
        return self._metrics[name]

    def collect(self) -> Iterator[Family]:
        """Yield what the metrics say now."""
        for metric in tuple(self._metrics.values()):
            yield metric.collect()


REGISTRY = MetricsRegistry()  # one for the process of a model, which calls `register` and `log` without any other


def register(name: str, description: str) -> Metric:
    """Return the metric of a name, a new one if there is none; ValueError for what is no name of a metric."""
    return REGISTRY.register(name, description)


def log(**metrics: float) -> None:
    """Count values, each in the metric of its name, which need not be registered before."""
    model = {SELDON_MODEL_NAME_LABEL: model_name_var.get(), SELDON_MODEL_VERSION_LABEL: model_version_var.get()}
    for name, value in metrics.items():
        register(name, "A metric of a model.").labels(**model).observe(value)
