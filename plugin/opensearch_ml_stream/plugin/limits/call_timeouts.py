"""Times that a model's calls of its provider may take: to the first byte, between bytes, and in all."""

import asyncio
from contextlib import AbstractAsyncContextManager
from types import TracebackType

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.sidecar_settings import CallLimits
from opensearch_ml_stream.plugin.upstream import ReadTimedOut, Sink, UpstreamResponse


def in_time(
    opening: AbstractAsyncContextManager[UpstreamResponse], limits: CallLimits
) -> AbstractAsyncContextManager[UpstreamResponse]:
    """Open a response within the limits; ReadTimedOut if it takes longer, here or while it is read.

    The times to the first byte of the body and in all begin where it is opened: they hold the wait for one of the
    connector's connections, and all retries. Nothing is measured per chunk, and a slow client does not stop the clock.
    """
    return _TimedCall(opening, limits)


class _TimedCall(AbstractAsyncContextManager[UpstreamResponse]):
    __slots__ = ("_limits", "_opening", "_timer")

    def __init__(self, opening: AbstractAsyncContextManager[UpstreamResponse], limits: CallLimits) -> None:
        self._opening = opening
        self._limits = limits
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> UpstreamResponse:
        limits = self._limits
        loop = asyncio.get_running_loop()
        now = loop.time()
        total, silence = limits.total_timeout_seconds, limits.between_chunks_timeout_seconds
        response = await self._begin()
        if silence is not None:
            response.limit_silence(silence)
        if total is not None:
            self._timer = loop.call_at(now + total, _fail, response, total)
        return response

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        if self._timer is not None:
            self._timer.cancel()
        return await self._opening.__aexit__(kind, error, traceback)

    async def _begin(self) -> UpstreamResponse:
        """Open the response, and wait for its first byte if there is a limit to that or to what follows it."""
        limits, opening = self._limits, self._opening
        first_byte, silence = limits.first_byte_timeout_seconds, limits.between_chunks_timeout_seconds
        is_open = False
        try:
            async with asyncio.timeout(_least(limits.total_timeout_seconds, first_byte)):
                response = await opening.__aenter__()
                is_open = True
                if 200 <= response.status < 300 and (first_byte is not None or silence is not None):
                    return await _begun(response)
                return response
        except BaseException as error:
            if is_open:
                await opening.__aexit__(type(error), error, error.__traceback__)
            if isinstance(error, TimeoutError):
                raise _first_byte_timed_out(limits) from None
            raise


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


def _fail(response: UpstreamResponse, total: float) -> None:
    response.fail(_timed_out(total))


def _least(*times: float | None) -> float | None:
    return min((time for time in times if time is not None), default=None)


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
