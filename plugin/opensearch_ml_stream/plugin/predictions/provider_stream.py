"""A provider's response as chunks and one outcome: the path of every token."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunks, Ending
from opensearch_ml_stream.connectors.decoding.contract import StreamDecoder
from opensearch_ml_stream.connectors.errors import StreamTruncated, UnreadableEvent, UpstreamError
from opensearch_ml_stream.connectors.known_providers import SHIPPED, KnownProviders
from opensearch_ml_stream.connectors.provider_errors import error_in_body
from opensearch_ml_stream.connectors.unstreamed_response import (
    MAX_NON_STREAM_BYTES,
    is_json,
    non_stream_response,
    read_whole_response,
)
from opensearch_ml_stream.plugin.credentials.redaction import Redactor
from opensearch_ml_stream.plugin.limits.budgets import Charge
from opensearch_ml_stream.plugin.upstream import ReadTimedOut, ResponseFailed, UpstreamResponse

MAX_WHOLE_RESPONSE_BYTES = 4 * 1024 * 1024  # of one JSON object in place of a stream
FINISH_SECONDS = 3.0  # waited for usage and terminator after a stream's finish reason, or a chunk that follows it


class ProviderStream:
    """A provider's response as chunks, then one outcome: an Ending, or an UpstreamError without credentials in it.

    `first_chunk` is when the first chunk came (CLOCK_MONOTONIC), None before. `charge` is paid by how the stream ends.
    `answered_by` is the id of the model, if the terminal object is to name it; `warnings` are about the request.
    """

    __slots__ = (
        "_ahead", "_before_first_chunk", "_charge", "_decoder", "_finish_by", "_known", "_redactor", "_response",
        "_tell_first_chunk", "answered_by", "first_chunk", "outcome", "warnings",
    )  # fmt: skip

    def __init__(
        self,
        response: UpstreamResponse,
        decoder: StreamDecoder,
        redactor: Redactor,
        charge: Charge | None = None,
        known: KnownProviders = SHIPPED,
    ) -> None:
        self._response = response
        self._decoder = decoder
        self._redactor = redactor
        self._known = known
        self._before_first_chunk = bytearray()
        self._finish_by: float | None = None  # when to wait no longer, by the loop's clock; None before a finish reason
        self._tell_first_chunk: Callable[[], None] | None = None
        self.first_chunk: float | None = None
        self.outcome: Ending | UpstreamError | None = None
        self.answered_by: str | None = None
        self.warnings: Sequence[str] = ()
        self._ahead: Chunks = []
        self._charge = charge
        if charge is not None:
            charge.stream = self

    @property
    def chunks(self) -> int:
        """How many chunks have come so far."""
        return self._decoder.chunk_count or int(self.first_chunk is not None)

    def terminal_fields(self, ending: Ending) -> dict[str, Any]:
        """Return what the terminal object says beside the stream's ending, which is paid for here."""
        fields: dict[str, Any] = {} if self.answered_by is None else {"model_id": self.answered_by}
        if self.warnings:
            fields["warnings"] = list(self.warnings)
        if self._charge is not None:
            self._charge.pay_stream(ending, self.chunks)
            fields |= self._charge.terminal_fields()
        return fields

    def on_first_chunk(self, tell: Callable[[], None]) -> None:
        """Call this when the first chunk comes, or now if it has come."""
        if self.first_chunk is None:
            self._tell_first_chunk = tell
        else:
            tell()

    async def read_ahead(self) -> None:
        """Wait for the first chunks, which the next `read` returns; raise the error if one comes instead."""
        chunks = await self.read()
        if not chunks and isinstance(self.outcome, UpstreamError):
            raise self.outcome
        self._ahead = chunks

    async def read(self) -> Chunks:
        """Return the next chunks; none only if the outcome is set."""
        if self._ahead:
            chunks, self._ahead = self._ahead, []
            return chunks
        if self.outcome is not None:
            return []
        while True:
            try:
                data = await (self._read_finish() if self._decoder.is_ending else self._response.read())
            except UpstreamError as error:
                return self._break_off(error)
            chunks = self._decoder.feed(data) if data else self._decoder.close()
            self._note(chunks, data)
            if self.outcome is not None and self.first_chunk is None and not chunks:
                return await self._read_whole(ended=not data)
            if chunks or self.outcome is not None:
                self._finish_by = None
                return chunks

    async def _read_finish(self) -> bytes:
        """Return the next bytes after a finish reason; b"" when the time for them is up, or the connection breaks."""
        if self._finish_by is None:
            self._finish_by = asyncio.get_running_loop().time() + FINISH_SECONDS
        try:
            async with asyncio.timeout_at(self._finish_by):
                return await self._response.read()
        except (TimeoutError, UpstreamError):
            return b""

    async def _read_whole(self, *, ended: bool) -> Chunks:
        """Return the chunk of a response that is one whole JSON object; its ending becomes the outcome."""
        if not self._is_json():
            return []
        body = self._before_first_chunk
        while not ended and len(body) < MAX_WHOLE_RESPONSE_BYTES:
            try:
                data = await self._response.read()
            except UpstreamError:
                return []
            ended = not data
            body += data
        whole = read_whole_response(bytes(body), self._known) if ended else None
        if whole is None and (error := error_in_body(bytes(body))) is not None:
            self.outcome = self._redacted(error)
        body.clear()
        if whole is None:
            return []
        chunk, ending = whole
        self.outcome = self._redacted(ending)
        self._note_first_chunk()
        return [chunk]

    async def pump(self, encode: Callable[[Chunks], bytes], write: Callable[[bytes], bool]) -> Chunks:
        """Encode and write chunks as they come, until `write` returns False or the outcome is set.

        Returns the chunks that came with the outcome; those are not written. The hot path: all of the work for a chunk
        is done in the connection's own callback. Only the end of the stream, from its finish reason on, is read.
        """
        if self._decoder.is_ending:
            return await self._pump_finish([], encode, write)
        decoder = self._decoder
        feed = decoder.feed
        last: Chunks = []

        def sink(data: bytes) -> bool:
            nonlocal last
            chunks = feed(data)
            if decoder.is_ending:
                last = chunks
                return False
            if not chunks:
                return True
            return write(encode(chunks))

        try:
            if await self._response.pump(sink):
                chunks = decoder.close()
                self._note(chunks, b"")
                return chunks
        except UpstreamError as error:
            return self._break_off(error)
        if decoder.outcome is not None:
            self.outcome = self._explain(decoder.outcome)
        return await self._pump_finish(last, encode, write) if decoder.is_ending else []

    async def _pump_finish(
        self, chunks: Chunks, encode: Callable[[Chunks], bytes], write: Callable[[bytes], bool]
    ) -> Chunks:
        """Go on with `pump` after a finish reason: write these chunks and those that follow, but not the last ones."""
        while self.outcome is None:
            if chunks and not write(encode(chunks)):
                return []
            chunks = await self.read()
        return chunks

    def _note(self, chunks: Chunks, data: bytes) -> None:
        """Note the first chunk and the outcome; until there is a chunk, keep the bytes that gave none."""
        if self.first_chunk is None:
            if chunks:
                self._note_first_chunk()
                self._before_first_chunk.clear()
            elif (size := len(self._before_first_chunk)) < MAX_NON_STREAM_BYTES or (
                size < MAX_WHOLE_RESPONSE_BYTES and self._is_json()
            ):
                self._before_first_chunk += data
        if self._decoder.outcome is not None:
            self.outcome = self._explain(self._decoder.outcome)

    def _is_json(self) -> bool:
        return is_json(self._response.headers.get("content-type", ""))

    def _note_first_chunk(self) -> None:
        self.first_chunk = monotonic()
        if self._tell_first_chunk is not None:
            self._tell_first_chunk()

    def _break_off(self, error: UpstreamError) -> Chunks:
        """End the stream after the connection failed in the middle of the body."""
        says_why = isinstance(error, ReadTimedOut | ResponseFailed)
        self.outcome = error if says_why else StreamTruncated(error.reason)
        return []

    def _explain(self, outcome: Ending | UpstreamError) -> Ending | UpstreamError:
        """Return the decoder's outcome redacted, or why the response was no stream if it had no chunk.

        Where a body may end without a terminator, one without chunks may still not have been a stream. A body that its
        framing finds damaged may be an error in plain JSON.
        """
        if not self.chunks:
            body = bytes(self._before_first_chunk)
            if isinstance(outcome, StreamTruncated | UnreadableEvent) or outcome == Ending():
                content_type = self._response.headers.get("content-type", "")
                outcome = non_stream_response(body, content_type) or outcome
            elif isinstance(outcome, UpstreamError):
                outcome = error_in_body(body) or outcome
        return self._redacted(outcome)

    def _redacted(self, outcome: Ending | UpstreamError) -> Ending | UpstreamError:
        redactor = self._redactor
        if isinstance(outcome, Ending):
            native, model = outcome.native_finish_reason, outcome.model
            both = f"{native} {model}"
            if redactor.value(both) is both:  # one search, as hardly any is ever found
                return outcome
            return replace(
                outcome,
                native_finish_reason=native and redactor.value(native),
                model=model and redactor.value(model),
            )
        return outcome.redacted(redactor.error)
