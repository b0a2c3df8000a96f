"""Metrics in Prometheus' text format, updated once per stream or prediction, never per chunk.

With several workers, each keeps its metrics in files in PROMETHEUS_MULTIPROC_DIR (set by `server` before they start),
and `/metrics` of any worker shows the metrics of all.
"""

import errno
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client import Metric as Family
from prometheus_client.core import CounterMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.decoding.event_fields import MAX_COUNT
from opensearch_ml_stream.connectors.errors import MLStreamError, Throttled, Unavailable
from opensearch_ml_stream.plugin.shared.worker_files import append_zeros

log = logging.getLogger(__name__)

MULTIPROC_DIR = "PROMETHEUS_MULTIPROC_DIR"

# The label of all models that do not exist, since callers can invent any number of ids.
UNKNOWN_MODEL = "unknown"

_FIRST_CHUNK_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)
_DURATION_BUCKETS = (0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600)

_OPEN, _WAITING = "mlstream_streams_open", "mlstream_streams_waiting"
_CERTIFICATE = "mlstream_tls_certificate_expiry_timestamp_seconds"
_GAUGES: dict[
    str, tuple[str, Literal["livesum", "livemin"]]
] = {  # by name: the help, and how the values of several workers become one
    _OPEN: ("Streams that run now.", "livesum"),
    _WAITING: ("Predictions that wait for a place among the open streams.", "livesum"),
    _CERTIFICATE: ("When the certificate of the sidecar's port expires.", "livemin"),
}

_KINDS = ("counter", "histogram", "gauge_livesum", "gauge_livemin")  # as the library names the files of ours
_FIRST_SIZE = 64 * 1024  # of a file, as the library makes it; it doubles
_MOST_OF_A_SERIES = 32 * 1024  # the buckets of a histogram, each with the metric's help and a model's id

Metric = TypeVar("Metric", Counter, Histogram)


class _Uncounted:
    """Takes the place of a series for which there is no room on the disk."""

    def inc(self, amount: float = 1) -> None:
        """Count nothing."""

    def observe(self, amount: float) -> None:
        """Count nothing."""


_UNCOUNTED = _Uncounted()


class BackgroundFailures:
    """A collector of the failures of background tasks in all processes; `counts` returns them by the task's name."""

    def __init__(self, counts: Callable[[], Mapping[str, int]]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Family]:
        """Yield the metric."""
        text = "Failures of tasks that run beside the requests, and are tried again."
        metric = CounterMetricFamily("mlstream_background_failures", text, labels=["task"])
        for name, count in self._counts().items():
            metric.add_metric([name], count)
        yield metric


class Metrics:
    """The metrics of this process; `text` returns those of all workers.

    Series for which there is no room on the disk are not counted. This is logged once, and `problem` is set meanwhile.
    """

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        model = ["model_id"]
        directory = os.environ.get(MULTIPROC_DIR)
        self._files = None if directory is None else _MetricFiles(Path(directory), os.getpid())
        self.problem: str | None = None
        self._has_complained = False
        self._gauges: dict[str, Gauge] = {}
        self._values = {_OPEN: 0.0, _WAITING: 0.0}
        self._streams = Counter(
            "mlstream_streams", "Streams that ended, by outcome: ok, error or client_left.",
            [*model, "outcome"], registry=registry,
        )  # fmt: skip
        self._chunks = Counter("mlstream_stream_chunks", "Chunks relayed.", model, registry=registry)
        self._tokens = Counter(
            "mlstream_tokens", "Tokens as the providers counted them.", [*model, "type"], registry=registry
        )
        self._first = Histogram(
            "mlstream_time_to_first_chunk_seconds", "From the request to the provider's first chunk.",
            model, registry=registry, buckets=_FIRST_CHUNK_BUCKETS,
        )  # fmt: skip
        self._duration = Histogram(
            "mlstream_stream_duration_seconds", "From the request to the end of its stream.",
            model, registry=registry, buckets=_DURATION_BUCKETS,
        )  # fmt: skip
        self._predictions = Counter(
            "mlstream_predictions", "Predictions that were not streamed, by status.",
            [*model, "status"], registry=registry,
        )  # fmt: skip
        self._provider_errors = Counter(
            "mlstream_provider_errors", "Failures of providers, by their own status (none: no response).",
            [*model, "provider_status"], registry=registry,
        )  # fmt: skip
        self._breakers = Counter(
            "mlstream_circuit_breaker_changes", "Circuit breakers of connectors that opened or closed.",
            ["connector_id", "state"], registry=registry,
        )  # fmt: skip
        self._refused = Counter(
            "mlstream_refused", "Calls of models that a limit of this sidecar refused, by limit.",
            [*model, "limit"], registry=registry,
        )  # fmt: skip
        self._cost = Counter(
            "mlstream_cost", "Money spent, by the prices of the models that have some.", model, registry=registry
        )
        self._fallbacks = Counter(
            "mlstream_fallbacks", "Calls of fallback models, in place of the model that was asked.",
            [*model, "fallback_model_id"], registry=registry,
        )  # fmt: skip
        self._collectors: list[Collector] = []
        self._labelled: dict[tuple[object, ...], Any] = {}  # as many as the registry has
        for name in self._values:
            self._show(name, 0)

    def prediction_ended(self, model_id: str, outcome: Ending | Exception) -> None:
        """Count a prediction that was not streamed, and its error if it failed."""
        status = 200 if isinstance(outcome, Ending) else outcome.status if isinstance(outcome, MLStreamError) else 500
        self._of(self._predictions, model_id, str(status)).inc()
        if isinstance(outcome, Exception):
            self._count_error(model_id, outcome)

    @contextmanager
    def stream_waits(self) -> Iterator[None]:
        """Count a prediction as waiting for one of the open streams to end, while the block runs."""
        self._change(_WAITING, 1)
        try:
            yield
        finally:
            self._change(_WAITING, -1)

    def stream_opened(self) -> None:
        """Count one more open stream."""
        self._change(_OPEN, 1)

    def stream_ended(
        self,
        model_id: str,
        outcome: Ending | Exception | None,
        chunks: int,
        seconds: float,
        seconds_to_first_chunk: float | None,
    ) -> None:
        """Count the end of a stream; it has no outcome if its client disconnected."""
        self._change(_OPEN, -1)
        name = "client_left" if outcome is None else "ok" if isinstance(outcome, Ending) else "error"
        self._of(self._streams, model_id, name).inc()
        self._of(self._chunks, model_id).inc(chunks)
        self._of(self._duration, model_id).observe(seconds)
        if seconds_to_first_chunk is not None:
            self._of(self._first, model_id).observe(seconds_to_first_chunk)
        if isinstance(outcome, Ending) and outcome.usage is not None:
            for kind, count in outcome.usage.as_dict().items():
                if kind == "total_tokens" or count >= MAX_COUNT:
                    continue  # a sum over the types would count it twice; MAX_COUNT stands for more
                self._of(self._tokens, model_id, kind.removesuffix("_tokens")).inc(count)
        if isinstance(outcome, Exception):
            self._count_error(model_id, outcome)

    def count_fallback(self, asked: str, model_id: str, failed: str, error: MLStreamError) -> None:
        """Count a call of the fallback model `model_id` for the model `asked`, after `failed` failed with `error`."""
        self._of(self._fallbacks, asked, model_id).inc()
        self._count_error(failed, error)

    def circuit_breaker_changed(self, connector_id: str, state: str) -> None:
        """Count that the circuit breaker of a connector was `opened` or `closed`."""
        self._of(self._breakers, connector_id, state).inc()

    def count_refusal(self, model_id: str, error: Exception | None) -> None:
        """Count a call that a limit of its model refused with `error`; other errors are ignored."""
        if isinstance(error, Throttled) and error.limit is not None:
            self._of(self._refused, model_id, error.limit).inc()

    def count_cost(self, model_id: str, cost: float) -> None:
        """Count the cost of a call."""
        self._of(self._cost, model_id).inc(cost)

    def certificate_expires(self, when: float) -> None:
        """Set when the port's certificate expires, in epoch seconds; without TLS there is no such metric."""
        self._show(_CERTIFICATE, when)

    def add_collector(self, collector: Collector) -> None:
        """Show the metrics of a collector, too; it must yield the same in each worker."""
        self._collectors.append(collector)

    def text(self) -> bytes:
        """Return the metrics of all workers in Prometheus' text exposition format, version 0.0.4.

        Raises Unavailable if their files cannot be read now, for example because no file descriptor is left.
        """
        others = CollectorRegistry(auto_describe=False)
        for collector in self._collectors:
            others.register(collector)
        try:
            return generate_latest(self._of_all_workers()) + generate_latest(others)
        except OSError as error:
            raise Unavailable(f"Metrics cannot be read now: {error.strerror}") from error

    def output_tokens(self) -> dict[str, float]:
        """Return the output tokens of each model's streams so far, in all workers, as the providers counted them."""
        samples = [
            sample
            for family in self._of_all_workers().collect()
            if family.name == "mlstream_tokens"
            for sample in family.samples
        ]
        return {
            sample.labels["model_id"]: sample.value
            for sample in samples
            if sample.name == "mlstream_tokens_total" and sample.labels["type"] == "output"
        }

    def _of_all_workers(self) -> CollectorRegistry:
        if MULTIPROC_DIR not in os.environ:
            return self._registry
        registry = CollectorRegistry()
        try:
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        except ValueError as error:  # it is no folder any more
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from error
        return registry

    def _of(self, metric: Metric, *labels: str) -> Metric | _Uncounted:
        """Return the metric's series with these labels, cached since `labels` checks them each time."""
        key = (metric, *labels)
        series: Metric | None = self._labelled.get(key)
        if series is None:
            try:
                self._reserve()
                series = metric.labels(*labels)
            except OSError as error:
                self._complain(error)
                return _UNCOUNTED
            self._labelled[key] = series
        return series

    def _change(self, name: str, by: int) -> None:
        self._values[name] += by
        if self._files is not None:  # without files it is read when it is shown
            self._show(name, self._values[name])

    def _show(self, name: str, value: float) -> None:
        gauge = self._gauges.get(name)
        if gauge is None:
            text, mode = _GAUGES[name]
            try:
                self._reserve()
                gauge = Gauge(name, text, registry=self._registry, multiprocess_mode=mode)
            except OSError as error:
                self._complain(error)
                return
            self._gauges[name] = gauge
            if self._files is None and name in self._values:
                gauge.set_function(partial(self._values.__getitem__, name))
                return
        gauge.set(value)

    def _reserve(self) -> None:
        """Reserve room for one more series. OSError if there is none."""
        if self._files is not None:
            self._files.reserve()
        self.problem = None

    def _complain(self, error: OSError) -> None:
        self.problem = f"Metrics are not counted, for lack of room ({error.strerror}). Is the disk full?"
        if not self._has_complained:
            self._has_complained = True
            log.warning("%s They are kept in %s", self.problem, os.environ.get(MULTIPROC_DIR))

    def _count_error(self, model_id: str, error: Exception | None) -> None:
        self.count_refusal(model_id, error)
        if isinstance(error, MLStreamError) and (error.provider_status is not None or error.status == 424):
            self._of(self._provider_errors, model_id, str(error.provider_status or "none")).inc()


class _MetricFiles:
    """The files in which prometheus_client keeps the metrics of one of several workers, the process of that id.

    The library maps them sparse, and the first write to a page of a mapped file that finds no room on the disk kills
    the process. So every byte is written before it is mapped: of a new file, and of what a file will grow by.
    """

    def __init__(self, directory: Path, process_id: int) -> None:
        self._paths = [directory / f"{kind}_{process_id}.db" for kind in _KINDS]

    def reserve(self) -> None:
        """Reserve room for one more series of any kind. OSError, such as a full disk, if there is none."""
        for path in self._paths:
            try:
                file = os.open(path, os.O_RDWR)
            except FileNotFoundError:
                _create(path)
                continue
            try:
                _extend(file, used=int.from_bytes(os.pread(file, 4, 0), sys.byteorder))
            finally:
                os.close(file)


def _create(path: Path) -> None:
    """Create a file, under another name until it is whole, since other workers read all files that they find."""
    unfinished = path.with_suffix(".new")
    file = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        _extend(file, used=0)
        unfinished.rename(path)
    except OSError:
        with suppress(OSError):
            unfinished.unlink()
        raise
    finally:
        os.close(file)


def _extend(file: int, used: int) -> None:
    """Extend a file to the size that it will have after one more series."""
    size, wanted = os.fstat(file).st_size, _FIRST_SIZE
    while wanted < used + _MOST_OF_A_SERIES:
        wanted *= 2
    if size < wanted:
        append_zeros(file, size, wanted - size)
