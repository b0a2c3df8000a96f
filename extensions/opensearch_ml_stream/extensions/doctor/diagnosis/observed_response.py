"""A provider's response whose reads are timed, and kept for a recording if one is asked for."""

from collections.abc import Callable, Mapping
from time import monotonic

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.extensions.doctor.diagnosis.recording import MAX_BYTES, MAX_RECORDED_READS, Read
from opensearch_ml_stream.extensions.doctor.diagnosis.report import MAX_READS
from opensearch_ml_stream.plugin.upstream import Sink, UpstreamResponse, pump_by_reading


class CallTimes:
    """The times of a call's events, in milliseconds after its request was sent; and the bytes, if they are kept.

    `attempts` is how often the provider was called. After MAX_READS, times are counted but not kept; `longest_gap` is
    between two reads, or the head and the first of them, whether they are kept or not.
    """

    def __init__(self, clock: Callable[[], float] = monotonic, *, keeps_bytes: bool = False) -> None:
        self._clock = clock
        self._keeps_bytes = keeps_bytes
        self.begin()
        self.attempts = 0

    def begin(self) -> None:
        """Begin a call: nothing has happened yet."""
        self._sent_at: float | None = None
        self.head: float | None = None
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.reads: list[tuple[float, int]] = []
        self.chunks: list[float] = []
        self.read_count = self.chunk_count = self.byte_count = 0
        self.longest_gap = self.last_read = 0.0
        self.end: float | None = None
        self.is_broken = False
        self.kept: list[Read] = []
        self.is_too_large = False

    def sent(self) -> None:
        """Note that the request is sent now."""
        self._sent_at = self._clock()

    def now(self) -> float:
        """Return the milliseconds since the request was sent."""
        return 0.0 if self._sent_at is None else (self._clock() - self._sent_at) * 1000

    def received_head(self, response: UpstreamResponse) -> None:
        """Note the response's head."""
        self.head = self.last_read = self.now()
        self.status = response.status
        self.headers = response.headers

    def received(self, data: bytes) -> None:
        """Note a read of the body, b"" at its end."""
        now = self.now()
        self.longest_gap = max(self.longest_gap, now - self.last_read)
        self.last_read = now
        if not data:
            self.end = now
            return
        self.read_count += 1
        self.byte_count += len(data)
        if len(self.reads) < MAX_READS:
            self.reads.append((now, len(data)))
        if self._keeps_bytes and not self.is_too_large:
            self.is_too_large = self.byte_count > MAX_BYTES or self.read_count > MAX_RECORDED_READS
            if self.is_too_large:
                self.kept.clear()
            else:
                self.kept.append(Read(now, data))

    def broke(self) -> None:
        """Note that the body broke off."""
        self.received(b"")
        self.is_broken = True

    def decoded(self, chunks: int) -> None:
        """Note how many chunks the last read completed."""
        self.chunk_count += chunks
        self.chunks += [self.last_read] * min(chunks, MAX_READS - len(self.chunks))


class ObservedResponse:
    """An UpstreamResponse whose reads are noted in `times`."""

    def __init__(self, response: UpstreamResponse, times: CallTimes) -> None:
        self._response = response
        self._times = times
        self.status = response.status
        self.headers = response.headers
        times.received_head(response)

    async def read(self) -> bytes:
        """See UpstreamResponse.read."""
        try:
            data = await self._response.read()
        except UpstreamError:
            self._times.broke()
            raise
        self._times.received(data)
        return data

    async def pump(self, sink: Sink) -> bool:
        """See UpstreamResponse.pump."""
        return await pump_by_reading(self.read, sink)

    def limit_silence(self, seconds: float) -> None:
        """See UpstreamResponse.limit_silence."""
        self._response.limit_silence(seconds)

    def fail(self, error: UpstreamError) -> None:
        """See UpstreamResponse.fail."""
        self._response.fail(error)
