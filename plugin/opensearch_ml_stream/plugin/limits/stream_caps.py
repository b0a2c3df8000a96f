"""Caps on open streams, for a server, a user, a model or a user of a model, and the short queue before them.

A whole prediction counts as a stream: it occupies a call of the provider as long. Predictions of guard models are part
of the prediction that they guard. Callers who did not have to log in count as no user.
"""

import asyncio
import errno
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import lru_cache
from pathlib import Path
from struct import Struct
from types import TracebackType
from typing import NamedTuple

from opensearch_ml_stream.connectors.errors import Throttled, Unavailable
from opensearch_ml_stream.connectors.model_options import CallLimits
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.metrics import Metrics
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.shared.table import CELL, SharedTable, table_key
from opensearch_ml_stream.plugin.shared.worker_files import WorkerNumber

_FIRST_LEVEL = 512  # slots: there are seldom more users with open streams
_MAX_LEVELS = 10  # half a million
LOOK_SECONDS = 0.05  # between two looks for a place that another worker has released
SERVER_STREAMS = "server_streams"
USER_STREAMS = "user_streams"
MODEL_STREAMS = "model_streams"
MODEL_USER_STREAMS = "model_user_streams"
CAPS_OVER_MODELS = (SERVER_STREAMS, USER_STREAMS)  # of all models together
_UNCAPPED = nullcontext()
_SETTING = "raise the setting opensearch_ml_stream."
_LIMIT = "raise _sidecar.limits."
_REASONS = {
    SERVER_STREAMS: ("on this server", f"{_SETTING}max_streams_per_server"),
    USER_STREAMS: ("of this user on this server", f"{_SETTING}max_streams_per_user"),
    MODEL_STREAMS: ("of this model on this server", f"{_LIMIT}max_streams of the model"),
    MODEL_USER_STREAMS: ("of this user and model on this server", f"{_LIMIT}max_streams_per_user of the model"),
}


class Cap(NamedTuple):
    """At most `limit` streams at a time for one `key`, made by `table_key`; `name` says which cap it is."""

    name: str
    key: bytes
    limit: int


class StreamCounts:
    """One worker's view of how many streams are open on its server, by what is capped.

    Each record of the shared table has a cell for each worker, which only that worker changes. The counts of a worker
    that was killed are dropped where they would exceed a cap. A stream is counted under the table's lock, for
    microseconds, so that no two workers take the last place; a single worker takes no lock. The table is in
    `directory`, which is removed with the server; nothing is written before the first stream is counted.
    """

    def __init__(self, directory: Path, workers: int) -> None:
        self._path = directory / "open-streams"
        self._workers = workers
        self._table = SharedTable(self._path, Struct(f"{workers}Q"), _MAX_LEVELS, _FIRST_LEVEL, is_shared=workers > 1)
        self._own: WorkerNumber | None = None

    def acquire(self, caps: Sequence[Cap]) -> Cap | None:
        """Count a stream for all of its caps, or for none of them: return the first that is reached.

        Unavailable if it cannot be counted: nothing that is capped goes on uncounted.
        """
        try:
            with self._table:
                return self._acquire(self._own or self._join(), caps)
        except OSError as error:
            raise Unavailable(
                f"The open streams cannot be counted in {self._path.parent} ({error.strerror}); check that its disk "
                "is not full"
            ) from error

    def release(self, caps: Sequence[Cap]) -> None:
        """Stop counting a stream. It takes no lock, and cannot fail."""
        assert self._own is not None, "acquire comes first"
        table, number = self._table, self._own.number
        for cap in caps:
            table.cells[table.find(cap.key) // CELL + number] -= 1

    def close(self) -> None:
        """Let go of the files, as the end of the process does."""
        self._table.close()
        if self._own is not None:
            self._own.close()

    def _acquire(self, own: WorkerNumber, caps: Sequence[Cap]) -> Cap | None:
        table = self._table
        places = table.places([cap.key for cap in caps], _counts_nothing)
        for cap, place in zip(caps, places, strict=True):
            counts = table.read(place)
            if sum(counts) >= cap.limit and self._sum_of_living(own, counts) >= cap.limit:
                return cap
        cells, number = table.cells, own.number
        for place in places:
            cells[place // CELL + number] += 1
        return None

    def _join(self) -> WorkerNumber:
        """Take the number of a worker that has ended, or a new one, and clear its counts."""
        own = WorkerNumber(self._path)
        try:
            if own.number >= self._workers:
                raise OSError(errno.EUSERS, "it has more workers than there should be")
            self._table.clear_cell(own.number)
        except OSError:  # else this worker would hold the number, and take another the next time
            own.close()
            raise
        self._own = own
        return own

    def _sum_of_living(self, own: WorkerNumber, counts: Sequence[int]) -> int:
        """Return the sum of a record over living workers; the counts of all others are cleared."""
        living = 0
        for number, count in enumerate(counts):
            if count and not own.lives(number):
                self._table.clear_cell(number)
            else:
                living += count
        return living


def _counts_nothing(record: tuple[int, ...]) -> bool:
    return not any(record)


class _Waiting:
    """A caller in the queue; `turn` is done when it has a place, or fails when it is refused."""

    __slots__ = ("caps", "full", "give_up", "turn")

    def __init__(self, caps: Sequence[Cap], full: Cap, give_up: float, turn: asyncio.Future[None]) -> None:
        self.caps = caps
        self.full = full  # the cap that was reached when it was last tried
        self.give_up = give_up  # by the loop's clock
        self.turn = turn


class OpenStreams:
    """The open streams of one worker, and the callers who wait for a place among those of its server.

    Callers who wait for the same cap are served in order of arrival within a worker. There is no order between workers.
    """

    def __init__(self, counts: StreamCounts, live: LiveSettings, metrics: Metrics, background: BackgroundTasks) -> None:
        self._counts = counts
        self._live = live
        self._metrics = metrics
        self._background = background
        self._queue: list[_Waiting] = []
        self._looking: asyncio.Task[None] | None = None

    def place(self, model_id: str, limits: CallLimits, user: str) -> AbstractAsyncContextManager[None]:
        """Return the place of one stream of a user ("" for none), to be held with `async with` while it is open.

        Entering it waits up to the setting `stream_queue_seconds`, and raises Throttled (429) if no place was released
        by then or too many wait already, Unavailable if the streams cannot be counted.
        """
        caps = self._caps(model_id, limits, user)
        return _Place(self, caps) if caps else _UNCAPPED

    def are_capped(self, limits: CallLimits) -> bool:
        """Whether streams of a model with these limits may need a place."""
        settings = self._live.current
        return bool(
            settings.max_streams_per_server
            or settings.max_streams_per_user
            or limits.max_streams is not None
            or limits.max_streams_per_user is not None
        )

    def _caps(self, model_id: str, limits: CallLimits, user: str) -> Sequence[Cap]:
        settings = self._live.current
        of_server, of_user = settings.max_streams_per_server, settings.max_streams_per_user
        of_model, of_model_user = limits.max_streams, limits.max_streams_per_user
        if not self.are_capped(limits):
            return ()
        return _caps(model_id, user, of_server, of_user, of_model, of_model_user)

    async def acquire(self, caps: Sequence[Cap]) -> None:
        """Count a stream, as soon as there is a place; see `place`."""
        full = self._waited_for(caps) or self._counts.acquire(caps)
        if full is None:
            return
        settings = self._live.current
        waiting_too = sum(waiting.full.key == full.key for waiting in self._queue)
        if waiting_too >= settings.stream_queue_size or not settings.stream_queue_seconds:
            raise _refusal(full)
        loop = asyncio.get_running_loop()
        waiting = _Waiting(caps, full, loop.time() + settings.stream_queue_seconds, loop.create_future())
        self._queue.append(waiting)
        if self._looking is None or self._looking.done():
            self._looking = self._background.start("stream queue", self._look, after=LOOK_SECONDS)
        with self._metrics.stream_waits():
            await self._turn(waiting)

    def _waited_for(self, caps: Sequence[Cap]) -> Cap | None:
        """Return the cap that another caller is already waiting for: nobody overtakes them."""
        if self._queue:
            waited_for = {waiting.full.key for waiting in self._queue}
            return next((cap for cap in caps if cap.key in waited_for), None)
        return None

    async def _turn(self, waiting: _Waiting) -> None:
        try:
            await waiting.turn
        except asyncio.CancelledError:  # the client has disconnected, or the server stops
            if waiting in self._queue:
                self._queue.remove(waiting)
            elif not waiting.turn.cancelled() and waiting.turn.exception() is None:
                self.release(waiting.caps)  # it was given a place at this very moment
            raise

    def release(self, caps: Sequence[Cap]) -> None:
        """Release a place, for the callers who wait for it."""
        self._counts.release(caps)
        if self._queue:
            self._serve_queue()

    async def _look(self) -> float | None:
        """Check for places that other workers have released, as long as a caller waits."""
        self._serve_queue()
        if self._queue:
            return LOOK_SECONDS
        self._looking = None
        return None

    def _serve_queue(self) -> None:
        """Give places to the callers who have waited longest, and refuse those who have waited too long."""
        now = asyncio.get_running_loop().time()
        full: set[bytes] = set()
        try:
            for waiting in self._queue:
                if waiting.turn.done():
                    continue  # its client has disconnected
                if waiting.full.key not in full and self._try_again(waiting):
                    continue
                full.add(waiting.full.key)
                if now >= waiting.give_up:
                    waiting.turn.set_exception(_refusal(waiting.full))
        except Unavailable as error:
            self._refuse_all(error)
        finally:
            self._queue = [waiting for waiting in self._queue if not waiting.turn.done()]

    def _try_again(self, waiting: _Waiting) -> bool:
        """Return whether the caller got a place."""
        full = self._counts.acquire(waiting.caps)
        if full is None:
            waiting.turn.set_result(None)
            return True
        waiting.full = full
        return False

    def _refuse_all(self, error: Unavailable) -> None:
        for waiting in self._queue:
            if not waiting.turn.done():
                waiting.turn.set_exception(Unavailable(error.reason))


class _Place(AbstractAsyncContextManager[None]):
    """A place among the open streams, held in an `async with` block."""

    __slots__ = ("_caps", "_streams")

    def __init__(self, streams: OpenStreams, caps: Sequence[Cap]) -> None:
        self._streams = streams
        self._caps = caps

    async def __aenter__(self) -> None:
        await self._streams.acquire(self._caps)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._streams.release(self._caps)


def _refusal(full: Cap) -> Throttled:
    subject, advice = _REASONS[full.name]
    return Throttled(
        f"The limit of predictions in flight {subject} is reached ({full.limit}); send the request again later, or "
        f"{advice}",
        type="rejected_execution_exception",
        retry_after="1",
        limit=full.name,
    )


@lru_cache(maxsize=1024)  # keys are hashes, and most calls are of the same few models and users
def _caps(
    model_id: str, user: str, of_server: int, of_user: int, of_model: int | None, of_model_user: int | None
) -> Sequence[Cap]:
    caps = []
    if of_server:
        caps.append(Cap(SERVER_STREAMS, _key(), of_server))
    if of_user and user:
        caps.append(Cap(USER_STREAMS, _key(user), of_user))
    if of_model is not None:
        caps.append(Cap(MODEL_STREAMS, _key(model_id, ""), of_model))
    if of_model_user is not None and user:
        caps.append(Cap(MODEL_USER_STREAMS, _key(model_id, user), of_model_user))
    return tuple(caps)


def _key(*names: str) -> bytes:
    """Return a key of these names alone."""
    return table_key(repr(names))
