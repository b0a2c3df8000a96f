"""Observations of predictions, each from its request to its end, for metrics, statistics and observers.

An observer is called at most four times for a prediction, and never for a chunk.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Literal, Protocol

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.errors import MLStreamError, Throttled
from opensearch_ml_stream.plugin.metrics import UNKNOWN_MODEL, Metrics
from opensearch_ml_stream.plugin.monitoring.statistics import FinishedAction, Statistics
from opensearch_ml_stream.rest_handlers.callers import Caller

log = logging.getLogger(__name__)

_WHOLE = Ending("")  # of a prediction that was not streamed: how the response ended is not known


class Observer:
    """Is called at moments of each prediction, including those of guard models; override the methods that you need.

    It is called in the event loop, so it must not block. The first error that it raises is logged. Errors do not affect
    the prediction or later calls.
    """

    def admitted(self, prediction: "Observation") -> None:
        """Handle that rights, limits, budgets and input guardrail allow the prediction; the provider is next."""

    def first_chunk(self, prediction: "Observation") -> None:
        """Handle the first chunk of a stream."""

    def ended(self, prediction: "Observation") -> None:
        """Handle the end of a prediction, successful or not, or of which the client has disconnected."""

    def refused(self, prediction: "Observation") -> None:
        """Handle, instead of `ended`, that the prediction failed before it was admitted; `outcome` is the error."""


class ObservedStream(Protocol):
    """What an observation reads of a stream."""

    @property
    def chunks(self) -> int:
        """How many chunks have come so far."""
        ...

    @property
    def first_chunk(self) -> float | None:
        """When the first chunk came (CLOCK_MONOTONIC), None before."""
        ...

    @property
    def outcome(self) -> Ending | MLStreamError | None:
        """How it has ended, None before."""
        ...

    def on_first_chunk(self, tell: Callable[[], None]) -> None:
        """Call this when the first chunk comes, or now if it has come."""
        ...


class Observation:
    """A prediction, observed while the `with` block runs. It holds no part of a prompt, response or credential.

    `model_id` is the model that is called: `asked` or, after that failed, a fallback model. Both are "" before the
    model is found. Times are of CLOCK_MONOTONIC. `outcome` is set for observers at the end: an Ending (an empty one if
    the prediction is not streamed), an exception, or None if the client disconnected. An exception that leaves the
    block is the outcome, unless the prediction has failed already or the task is cancelled.
    """

    model_id = ""
    admitted: float | None = None
    ended: float | None = None
    outcome: Ending | Exception | None = None
    _stream: ObservedStream | None = None
    _asked = ""  # if it is not the model that is called
    _slot: int | None = None  # among the predictions that run

    def __init__(self, observations: "Observations", caller: Caller, *, is_stream: bool) -> None:
        self._observations = observations
        self.caller = caller
        self.is_stream = is_stream
        self.begun = self._called = self._found = observations.clock()  # the latter two of the model that is called now

    @property
    def asked(self) -> str:
        """The id of the model that the caller asked for."""
        return self._asked or self.model_id

    @property
    def chunks(self) -> int:
        """How many chunks have come so far."""
        return 0 if self._stream is None else self._stream.chunks

    @property
    def first_chunk(self) -> float | None:
        """When the first chunk came, None before."""
        return None if self._stream is None else self._stream.first_chunk

    def __enter__(self) -> "Observation":
        if self.is_stream:
            self._observations.metrics.stream_opened()
        return self

    def set_model(self, model_id: str) -> None:
        """Set the model, which was found and which the caller may use."""
        observations = self._observations
        self.model_id = model_id
        self._found = observations.clock()
        self._slot = observations.statistics.start(model_id, self._called)

    def admit(self) -> None:
        """Note that the prediction is admitted, and tell the observers once."""
        observations = self._observations
        if observations.observers and self.admitted is None:
            self.admitted = observations.clock()
            observations.tell("admitted", self)

    def fall_back(self, model_id: str | None, error: MLStreamError) -> None:
        """Count the call of the present model as failed, and go on with a fallback model.

        `model_id` is None if there is no further one; `error` is then the error of the prediction.
        """
        if model_id is None:
            self.outcome = error
            return
        observations = self._observations
        self._asked = self.asked
        observations.metrics.count_fallback(self.asked, model_id, self.model_id, error)
        now = observations.clock()
        self._count_in_statistics(error, now)
        self._called = now
        self.set_model(model_id)

    def set_stream(self, stream: ObservedStream) -> None:
        """Set the stream of the prediction. Its outcome is the prediction's, unless one is set here."""
        self._stream = stream
        if self._observations.observers:
            stream.on_first_chunk(self._tell_first_chunk)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        observations, stream, outcome = self._observations, self._stream, self.outcome
        if outcome is None and stream is not None:
            outcome = stream.outcome
        elif outcome is None and error is None and not self.is_stream:
            outcome = _WHOLE
        if error is not None and isinstance(error, Exception) and not isinstance(outcome, Exception):
            outcome = error
        self.outcome = outcome
        self.ended = now = observations.clock()
        self._count_in_statistics(outcome, now)
        self._count_in_metrics(outcome, now)
        if observations.observers:
            is_refused = self.admitted is None and isinstance(outcome, Exception)
            observations.tell("refused" if is_refused else "ended", self)
        self._stream = self.outcome = None  # breaks a cycle: an error holds the frame that holds this

    def _count_in_statistics(self, outcome: Ending | Exception | None, now: float) -> None:
        """Count the prediction for the model that was called."""
        failed = isinstance(outcome, Exception)
        finished = FinishedAction(
            "predict",
            failed,
            failed and isinstance(outcome, Throttled),
            1000 * (now - self._called),
            1000 * (now - self._found) if outcome is not None and not failed else None,
        )
        self._observations.statistics.end(self._slot, self.model_id or None, finished)

    def _count_in_metrics(self, outcome: Ending | Exception | None, now: float) -> None:
        metrics, stream, model_id = self._observations.metrics, self._stream, self.model_id or UNKNOWN_MODEL
        if self.is_stream:
            chunks, first = (0, None) if stream is None else (stream.chunks, stream.first_chunk)
            seconds_to_first = None if first is None else first - self.begun
            metrics.stream_ended(model_id, outcome, chunks, now - self.begun, seconds_to_first)
        elif outcome is not None:
            metrics.prediction_ended(model_id, outcome)

    def _tell_first_chunk(self) -> None:
        self._observations.tell("first_chunk", self)


class Observations:
    """Begins the observations of a worker's predictions, and calls its observers."""

    def __init__(self, metrics: Metrics, statistics: Statistics, clock: Callable[[], float] = monotonic) -> None:
        self.metrics = metrics
        self.statistics = statistics
        self.clock = clock
        self.observers: list[Observer] = []
        self._failed: set[int] = set()  # indexes of observers

    def stream(self, caller: Caller) -> Observation:
        """Return the observation of a stream that begins now, to be entered with `with`."""
        return Observation(self, caller, is_stream=True)

    def whole(self, caller: Caller) -> Observation:
        """Return the observation of a prediction that is not streamed and begins now, to be entered with `with`."""
        return Observation(self, caller, is_stream=False)

    @contextmanager
    def batch_job(self, model_id: str) -> Iterator[None]:
        """Count the block as a request for a batch job, and as refused if a limit refuses it."""
        with self.statistics.action("batch_predict", model_id):
            try:
                yield
            except Throttled as error:
                self.metrics.count_refusal(model_id, error)
                raise

    def tell(self, moment: Literal["admitted", "first_chunk", "ended", "refused"], prediction: Observation) -> None:
        """Call a method of all observers."""
        for place, observer in enumerate(self.observers):
            try:
                getattr(observer, moment)(prediction)
            except Exception:  # an extension's error must not end the prediction
                if place not in self._failed:
                    self._failed.add(place)
                    log.exception("Observer %s failed; its later errors are not logged", type(observer).__qualname__)
