"""The responses to one call of a runtime's process. The hot path of every runtime's stream.

For each read of the connection's socket, the responses of one call are passed to a sink together, or they are kept and
the waiting reader is woken. There is no task, queue or timer for a response.
"""

import asyncio
from collections.abc import Callable, Mapping

from opensearch_ml_stream.extensions.runtimes.service import runtime_errors
from opensearch_ml_stream.plugin.upstream import Sink
from opensearch_ml_stream.runtimes.frames import CREDIT, INITIAL_CREDIT, Kind

GRANT_BYTES = INITIAL_CREDIT // 2  # least amount that is granted again, so that few frames are needed
SEPARATOR = b"\0"  # after each response of a stream; JSON text cannot contain it

_HEADERS: Mapping[str, str] = {"content-type": "application/json"}
_STREAM_HEADERS: Mapping[str, str] = {"content-type": "application/octet-stream"}  # never one whole response


class RuntimeResponse:
    """The responses to one call: an UpstreamResponse once `begun` has returned.

    | state   | responses arrive        | `read`, `pump`                    | connection ends | silence     |
    |---------|-------------------------|-----------------------------------|-----------------|-------------|
    | waiting | the first: open         | not allowed yet                   | failed          | not limited |
    | open    | to the sink, else kept  | take all, grant credit for it (1) | failed          | failed (2)  |
    | ended   | not any more            | take the rest, then b""           | ignored         | ignored     |
    | failed  | not any more            | take the rest, then raise         | ignored         | ignored     |

    (1) In steps of GRANT_BYTES. If a sink stops, its bytes are granted with the next `read` or `pump`.
    (2) Not while the process has no credit, or waits for a request: then the client is slow, not the runtime.

    `arrived` is the connection's: the responses of this socket read, before `deliver`.
    """

    __slots__ = (
        "_asked", "_credit", "_failure", "_has_ended", "_is_asking", "_is_late_after", "_kept", "_kept_size",
        "_last_activity", "_loop", "_model", "_send", "_separator", "_sink", "_taken", "_timer", "_waiter",
        "arrived", "has_begun", "headers", "status",
    )  # fmt: skip

    def __init__(
        self,
        model: str,
        send: Callable[[Kind, bytes], None],
        *,
        is_stream: bool,
        asked: Callable[[], None] | None = None,
    ) -> None:
        self._model = model
        self._asked = asked  # None: there are no further requests
        self._is_asking = False  # the model waits for a request
        self._send = send
        self._separator = SEPARATOR if is_stream else b""
        self._loop = asyncio.get_running_loop()
        self._credit = INITIAL_CREDIT  # bytes that the process may still send
        self._taken = 0  # bytes that were taken, but not granted again
        self._kept: list[bytes] = []
        self._kept_size = 0  # without separators
        self._sink: Sink | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._has_ended = False
        self._is_late_after: float | None = None  # seconds of silence
        self._last_activity = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.arrived: list[bytes] = []
        self.has_begun = False
        self.status = 200
        self.headers = _STREAM_HEADERS if is_stream else _HEADERS

    @property
    def is_over(self) -> bool:
        """Whether nothing more can come."""
        return self._has_ended or self._failure is not None

    async def begun(self) -> None:
        """Wait for the first response or the end; raise the error that comes in place of it."""
        while not self.has_begun:
            await self._woken()
        if self._failure is not None and not self._kept:
            raise self._failure

    async def read(self) -> bytes:
        """See UpstreamResponse.read."""
        self._grant()  # for what was taken before
        while not self._kept:
            if self._failure is not None:
                raise self._failure
            if self._has_ended:
                return b""
            await self._woken()
        return self._take()

    async def pump(self, sink: Sink) -> bool:
        """See UpstreamResponse.pump."""
        while True:
            while self._kept or self.is_over:
                data = await self.read()
                if not data or not sink(data):
                    return not data
            self._grant()
            self._sink = sink
            try:
                await self._woken()
                has_stopped = self._sink is None
            finally:
                self._sink = None
            if has_stopped:
                return False

    def limit_silence(self, seconds: float) -> None:
        """See UpstreamResponse.limit_silence."""
        if self._is_late_after is None or seconds < self._is_late_after:
            self.stop()
            self._is_late_after = seconds
            self._last_activity = self._loop.time()
            self._check_silence()

    def fail(self, error: Exception) -> None:
        """See UpstreamResponse.fail; the error may be one of the client's further requests."""
        if not self.is_over:
            self._send(Kind.CANCEL, b"")
            self.break_off(error)

    def ask(self) -> None:
        """Record that the model waits for another request."""
        if self._asked is not None and not self.is_over:
            self._is_asking = True
            self._asked()

    def send_request(self, body: bytes | None) -> None:
        """Send the request that the model waits for; None if there are no more."""
        if not self.is_over:
            self._is_asking = False
            self._last_activity = self._loop.time()  # until now the client was slow, not the runtime
            self._send(*((Kind.INPUT_END, b"") if body is None else (Kind.INPUT, body)))

    def stop(self) -> None:
        """End the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def deliver(self) -> None:
        """Pass on what has arrived, and wake whoever waits for it."""
        arrived = self.arrived
        if arrived:
            self.arrived = []
            if self._timer is not None:
                self._last_activity = self._loop.time()
            separators = 0
            if self._separator:
                separators = len(arrived)
                arrived.append(b"")
            data = self._separator.join(arrived)
            size = len(data) - separators
            self._credit -= size
            sink = self._sink
            if sink is None:
                self._kept.append(data)
                self._kept_size += size
            else:
                self._taken += size
                if not sink(data):
                    self._sink = None
                elif not self._has_ended and self._failure is None:
                    if self._taken >= GRANT_BYTES:
                        self._grant()
                    return
        self.has_begun = True
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def end(self) -> None:
        """Record that all responses have arrived; `deliver` follows."""
        self._has_ended = True

    def raise_later(self, payload: bytes) -> None:
        """Record the error that the model raised; `deliver` follows."""
        is_first = not self.has_begun and not self.arrived
        error = runtime_errors.raised_before if is_first else runtime_errors.raised_in_the_middle
        self._failure = error(self._model, payload)

    def lose(self, *, is_unloaded: bool) -> None:
        """Fail because the process has ended, by itself or because the model was unloaded."""
        if is_unloaded:
            error = runtime_errors.unloaded_in_the_middle if self.has_begun else runtime_errors.unloaded
        else:
            error = runtime_errors.ended_in_the_middle if self.has_begun else runtime_errors.ended_early
        self.break_off(error(self._model))

    def break_off(self, error: Exception) -> None:
        """Fail; what has arrived may still be read before that."""
        self.stop()
        if not self.is_over:
            self._failure = error
            self.deliver()

    async def _woken(self) -> None:
        self._waiter = self._loop.create_future()
        await self._waiter

    def _take(self) -> bytes:
        kept = self._kept
        data = kept[0] if len(kept) == 1 else b"".join(kept)
        kept.clear()
        self._taken += self._kept_size
        self._kept_size = 0
        return data

    def _grant(self) -> None:
        """Grant the process as many bytes as were taken, if that is enough for a frame."""
        if self._taken >= GRANT_BYTES and not self.is_over:
            if self._credit <= 0:
                self._last_activity = self._loop.time()  # until now the consumer was slow, not the runtime
            self._send(Kind.CREDIT, CREDIT.pack(self._taken))
            self._credit += self._taken
            self._taken = 0

    def _check_silence(self) -> None:
        """Fail if the runtime has been silent for too long, else check again later."""
        limit = self._is_late_after
        if limit is None or self.is_over:
            return
        is_client_slow = self._credit <= 0 or self._is_asking
        wait = limit if is_client_slow else self._last_activity + limit - self._loop.time()
        if wait > 0:
            self._timer = self._loop.call_later(wait, self._check_silence)
        else:
            self.fail(runtime_errors.fell_silent(self._model, limit))
