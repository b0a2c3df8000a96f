"""Timeouts of a model's calls to its provider: to the first byte, between bytes, and in total."""

import asyncio
from contextlib import AbstractAsyncContextManager
from types import TracebackType

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.model_options import CallLimits
from opensearch_ml_stream.plugin.upstream import ReadTimedOut, Sink, UpstreamResponse


def in_time(
    opening: AbstractAsyncContextManager[UpstreamResponse], limits: CallLimits
) -> AbstractAsyncContextManager[UpstreamResponse]:
    """Open a response within the limits; ReadTimedOut if it takes longer, here or while it is read.

    The times to the first byte of the body and in total start where it is opened: they include the wait for one of the
    connector's connections, and all retries. Nothing is measured per chunk, and a slow client does not stop the clock.
    """
    return _TimedCall(opening, limits)


class _TimedCall(AbstractAsyncContextManager[UpstreamResponse]):
    """One call and its one timer, which ends the wait for the first byte, and later the response.

    Until there is a response it works as `asyncio.timeout` does: it cancels the task, and turns that into an error.
    """

    __slots__ = ("_begun_at", "_cancelling", "_is_late", "_limits", "_opening", "_response", "_task", "_timer")

    def __init__(self, opening: AbstractAsyncContextManager[UpstreamResponse], limits: CallLimits) -> None:
        self._opening = opening
        self._limits = limits
        self._timer: asyncio.TimerHandle | None = None
        self._response: UpstreamResponse | None = None  # None until it has begun in time
        self._is_late = False

    async def __aenter__(self) -> UpstreamResponse:
        limits, opening = self._limits, self._opening
        silence = limits.between_chunks_timeout_seconds
        self._start_timer()
        is_open = False
        try:
            response = await opening.__aenter__()
            is_open = True
            waits = limits.first_byte_timeout_seconds is not None or silence is not None
            if waits and 200 <= response.status < 300:
                response = await _begun(response)
        except BaseException as error:
            is_late = self._stop_timer() and isinstance(error, asyncio.CancelledError)
            if is_open:
                await opening.__aexit__(type(error), error, error.__traceback__)
            if is_late:
                raise _first_byte_timed_out(limits) from None
            raise
        if silence is not None:
            response.limit_silence(silence)
        self._response = response
        return response

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        if self._timer is not None:
            self._timer.cancel()
        return await self._opening.__aexit__(kind, error, traceback)

    def _start_timer(self) -> None:
        total, first_byte = self._limits.total_timeout_seconds, self._limits.first_byte_timeout_seconds
        least = total if first_byte is None or (total is not None and total < first_byte) else first_byte
        if least is not None:
            task = asyncio.current_task()
            assert task is not None
            self._task = task
            self._cancelling = task.cancelling()
            loop = asyncio.get_running_loop()
            self._begun_at = loop.time()
            self._timer = loop.call_at(self._begun_at + least, self._look)

    def _stop_timer(self) -> bool:
        """Stop the timer; return whether it, and nobody else, has cancelled the task."""
        if self._timer is not None:
            self._timer.cancel()
        return self._is_late and self._task.uncancel() <= self._cancelling

    def _look(self) -> None:
        """End the wait for the response, or a response whose total time is over; otherwise set the timer again."""
        response, total = self._response, self._limits.total_timeout_seconds
        if response is None:
            self._is_late = True
            self._task.cancel()
        elif total is not None:
            loop = asyncio.get_running_loop()
            if loop.time() < self._begun_at + total:
                self._timer = loop.call_at(self._begun_at + total, self._look)
            else:
                response.fail(_timed_out(total))


class _BegunResponse:
    """A response whose first bytes, or the error in their place, were read already."""

    __slots__ = ("_first", "_response", "headers", "status")

    def __init__(self, response: UpstreamResponse, first: bytes | UpstreamError) -> None:
        self._response = response
        self._first: bytes | UpstreamError | None = first
        self.status = response.status
        self.headers = response.headers

    async def read(self) -> bytes:
        """See UpstreamResponse.read."""
        first, self._first = self._first, None
        if isinstance(first, UpstreamError):
            raise first
        return await self._response.read() if first is None else first

    async def pump(self, sink: Sink) -> bool:
        """See UpstreamResponse.pump."""
        if self._first is not None:
            data = await self.read()
            if not data or not sink(data):
                return not data
        return await self._response.pump(sink)

    def limit_silence(self, seconds: float) -> None:
        """See UpstreamResponse.limit_silence."""
        self._response.limit_silence(seconds)

    def fail(self, error: UpstreamError) -> None:
        """See UpstreamResponse.fail."""
        self._response.fail(error)


async def _begun(response: UpstreamResponse) -> UpstreamResponse:
    """Wait for the first bytes of the body, so that no stream begins without any."""
    try:
        return _BegunResponse(response, await response.read())
    except UpstreamError as error:
        return _BegunResponse(response, error)


def _first_byte_timed_out(limits: CallLimits) -> ReadTimedOut:
    total, first_byte = limits.total_timeout_seconds, limits.first_byte_timeout_seconds
    if first_byte is None or (total is not None and total < first_byte):
        return _timed_out(total or 0.0)
    return ReadTimedOut(
        f"The provider's response did not begin within {first_byte:g} s. Raise _sidecar.limits."
        "first_byte_timeout_seconds of the model if it needs longer",
        type="timeout_exception",
    )


def _timed_out(seconds: float) -> ReadTimedOut:
    return ReadTimedOut(
        f"The provider's response was not complete within {seconds:g} s. Raise _sidecar.limits.total_timeout_seconds "
        "of the model if it needs longer",
        type="timeout_exception",
    )
