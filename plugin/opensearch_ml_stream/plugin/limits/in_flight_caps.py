"""Caps on open streams: of a server, of a user, of a model, of a user of a model; and the short queue before them.

A whole prediction counts as a stream does: it holds a call of the provider as long. Predictions of guard models are
part of the prediction that they guard. Callers whom nobody asked to log in are no user.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import lru_cache
from types import TracebackType

from opensearch_ml_stream.connectors.errors import Throttled, Unavailable
from opensearch_ml_stream.connectors.model_options import CallLimits
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.limits.stream_counts import Cap, StreamCounts
from opensearch_ml_stream.plugin.metrics import Metrics
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.shared.table import table_key

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


class _Waiting:
    """A caller in the queue: `turn` is done when it has a place, or is refused at last."""

    __slots__ = ("caps", "full", "give_up", "turn")

    def __init__(self, caps: Sequence[Cap], full: Cap, give_up: float, turn: asyncio.Future[None]) -> None:
        self.caps = caps
        self.full = full  # the cap that was reached when it was last tried
        self.give_up = give_up  # by the loop's clock
        self.turn = turn


class OpenStreams:
    """The open streams of one worker, and the callers who wait for a place among those of its server.

    Who waits for the same cap is served in order of arrival, within a worker; workers do not wait for each other.
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
        """Return the cap that somebody is waiting for already: nobody overtakes them."""
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
        """Give a place back, to whoever waits for it."""
        self._counts.release(caps)
        if self._queue:
            self._serve_queue()

    async def _look(self) -> float | None:
        """Look for places that other workers have released, for as long as somebody waits."""
        self._serve_queue()
        if self._queue:
            return LOOK_SECONDS
        self._looking = None
        return None

    def _serve_queue(self) -> None:
        """Give places to those who have waited longest, and refuse those who have waited for too long."""
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
        """Whether there was a place."""
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
        f"As many predictions {subject} are in flight as may be ({full.limit}); send the request again later, or "
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
