"""Statistics of a server's requests, counted once per request: what `/stats` and `/profile` are made of.

They are tables in a folder that the server's workers share and that is removed with it, so that any worker can say what
all of them did. They are mapped: to count is a write to memory, which stays when a worker is killed.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from opensearch_ml_stream.connectors.errors import NotFound, Unavailable
from opensearch_ml_stream.plugin.shared.worker_number import WorkerNumber
from opensearch_ml_stream.plugin.statistics.request_counts import (
    ActionCount,
    FinishedAction,
    ModelFigures,
    RequestCounts,
)
from opensearch_ml_stream.plugin.statistics.running_predictions import RunningPrediction, RunningPredictions

log = logging.getLogger(__name__)

DELETE = "delete"  # of a model: nothing counts it, and nothing of the model is kept
UNDEPLOY = "undeploy"


class Statistics:
    """The statistics of one server.

    A prediction does not fail because it cannot be counted: a full disk, or a worker that is stopped in the middle
    of a write, is logged once, and what cannot be written is left out.
    """

    def __init__(self, directory: Path, running: RunningPredictions, counts: RequestCounts) -> None:
        self._directory = directory
        self._running = running
        self._counts = counts
        self._has_complained = False
        self.problem: str | None = None  # why the last request could not be counted

    @contextmanager
    def action(self, action: str, model_id: str | None = None) -> Iterator[None]:
        """Count what the block does as one request, and as a failure if it does not come to its end.

        NotFound counts for the server alone, and so does a store that does not say whether there is such a model:
        callers can make up any number of ids, and each would be a file. The block has to look for the model first.
        """
        counted_for = model_id
        failed = True
        try:
            yield
            failed = False
        except (NotFound, Unavailable):
            counted_for = None
            raise
        finally:
            if action != DELETE:
                self.end(None, counted_for, FinishedAction(action, failed))
            if model_id is not None and not failed:
                self._forget(action, model_id)

    def start(self, model_id: str, started: float) -> int | None:
        """Note that a prediction of the model runs, begun then (CLOCK_MONOTONIC); return its slot, for `end`."""
        try:
            return self._running.start(model_id, started)
        except OSError as error:
            self._complain(error)
            return None

    def end(self, slot: int | None, model_id: str | None, finished: FinishedAction) -> None:
        """Count a request; `slot` is that of `start`."""
        try:
            if slot is not None:
                self._running.end(slot)
            self._counts.add(model_id, finished)
            self.problem = None
        except OSError as error:
            self._complain(error)

    def counts(self) -> Mapping[str, ActionCount]:
        """Return how often each action was requested of this server."""
        return self._counts.of_server()

    def running(self) -> Mapping[str, RunningPrediction]:
        """Return the predictions that run now on this server, by task id."""
        return self._running.read()

    def model(self, model_id: str) -> ModelFigures | None:
        """Return what is known of the model."""
        return self._counts.of_model(model_id)

    def models(self) -> dict[str, ModelFigures]:
        """Return all models of which something is known, by id."""
        return self._counts.of_models()

    def forget(self, model_id: str) -> None:
        """Forget a model that is no more."""
        self._counts.forget(model_id)

    def _forget(self, action: str, model_id: str) -> None:
        try:
            if action == UNDEPLOY:
                self._counts.forget_predictions(model_id)
            elif action == DELETE:
                self.forget(model_id)
        except OSError as error:
            self._complain(error)

    def _complain(self, error: OSError) -> None:
        self.problem = f"Requests cannot be counted ({error.strerror}); is the disk full, or a worker stopped?"
        if not self._has_complained:
            self._has_complained = True
            log.warning("%s Their statistics are in %s", self.problem, self._directory)


@contextmanager
def open_statistics(runtime: Path, *, is_shared: bool = True) -> Iterator[Statistics]:
    """Open the statistics of a server in the folder that its workers share, if it has more than one."""
    directory = runtime / "statistics"
    directory.mkdir(mode=0o700, exist_ok=True)
    with (
        closing(WorkerNumber(directory / "worker")) as worker,
        closing(RunningPredictions(directory, worker, is_shared=is_shared)) as running,
        closing(RequestCounts(directory, worker.number, is_shared=is_shared)) as counts,
    ):
        yield Statistics(directory, running, counts)
