"""One call of a provider: the address is checked, the request signed, the answer's status and errors understood."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic

from opensearch_ml_stream.connectors.chunks import Chunks, Ending
from opensearch_ml_stream.connectors.decoding.decoder import Decoder
from opensearch_ml_stream.connectors.decoding.fast_path import FastPathDecoder
from opensearch_ml_stream.connectors.errors import InvalidRequest, StreamTruncated, UpstreamError
from opensearch_ml_stream.connectors.providers.non_stream_response import MAX_NON_STREAM_BYTES, non_stream_response
from opensearch_ml_stream.connectors.rendering.action import ProviderRequest
from opensearch_ml_stream.connectors.rendering.sigv4 import sign
from opensearch_ml_stream.plugin.credentials.redaction import redact
from opensearch_ml_stream.plugin.predictions.rate_limits import RateLimits
from opensearch_ml_stream.plugin.predictions.ready_models import ReadyModel
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.upstream import ReadTimedOut, Upstream, UpstreamResponse
from opensearch_ml_stream.plugin.upstream.retries import open_with_retries
from opensearch_ml_stream.plugin.upstream.trusted_endpoints import check_endpoint

MAX_ERROR_BODY_BYTES = 64 * 1024  # more of an error is not read; 2 KiB of it are shown


@dataclass(frozen=True, slots=True)
class ProviderCalls:
    """The way to the providers, with what limits it."""

    live: LiveSettings
    upstream: Upstream
    limits: RateLimits

    def count(self, model: ReadyModel) -> None:
        """Count one more prediction by the provider; Throttled if the model's `rate_limiter` does not allow it."""
        if (rate_limit := model.rate_limit) is not None:
            self.limits.acquire(model.model_id, rate_limit)

    def open(self, model: ReadyModel, request: ProviderRequest) -> AbstractAsyncContextManager[UpstreamResponse]:
        """Open the provider's response, whatever its status (see `check_status`); retried as `client_config` says.

        InvalidRequest for an endpoint that is not trusted, or credentials that do not sign.
        """
        connector = model.connector
        check_endpoint(request.url, self.live.current)
        if connector.protocol == "aws_sigv4":
            request = _signed(model, request)
        config = connector.client_config
        tls = model.credential if config.mutual_tls_enabled else {}
        if config.max_retry_times:
            return open_with_retries(self.upstream, request, config, tls, model.pool_key)
        return self.upstream.open(request, config, tls, model.pool_key)

    async def fetch(self, model: ReadyModel, request: ProviderRequest) -> bytes:
        """Return the whole body of a good response, which is never empty."""
        async with self.open(model, request) as response:
            await check_status(response, model)
            body = await read_all(response, self.live.current.max_json_size)
        if not body.strip():
            raise UpstreamError("Remote service returned empty response body")
        return body


async def check_status(response: UpstreamResponse, model: ReadyModel) -> None:
    """UpstreamError with the provider's words for a status that is not good."""
    if not 200 <= response.status < 300:
        raise await _refusal(response, model.credential)


async def read_all(response: UpstreamResponse, limit: int) -> bytes:
    """The whole body; UpstreamError beyond `limit` bytes."""
    parts: list[bytes] = []
    size = 0
    while data := await response.read():
        size += len(data)
        if size > limit:
            raise UpstreamError(
                f"The provider's answer is larger than {limit} bytes (plugins.ml_commons.max_json_size)"
            )
        parts.append(data)
    return b"".join(parts)


class ProviderStream:
    """A provider's answer as chunks, then one outcome."""

    __slots__ = ("_before", "_credential", "_decoder", "_response", "first_chunk", "outcome")

    def __init__(
        self, response: UpstreamResponse, decoder: Decoder | FastPathDecoder, credential: Mapping[str, str]
    ) -> None:
        self._response = response
        self._decoder = decoder
        self._credential = credential
        self._before = bytearray()  # what came before the first chunk
        self.first_chunk: float | None = None  # the time of CLOCK_MONOTONIC at which it came
        self.outcome: Ending | UpstreamError | None = None

    @property
    def chunks(self) -> int:
        return self._decoder.chunks

    @property
    def skipped_events(self) -> int:
        return self._decoder.skipped_events

    async def read(self) -> Chunks:
        """The next chunks; none only when the outcome is known."""
        while True:
            try:
                data = await self._response.read()
            except UpstreamError as error:
                return self._broken_off(error)
            chunks = self._take(data) if data else self._close()
            if chunks or self.outcome is not None:
                return chunks

    async def pump(self, encode: Callable[[Chunks], bytes], write: Callable[[bytes], bool]) -> Chunks:
        """Encodes and writes every read's chunks as they come, until `write` returns False or the outcome is known.

        Returns the chunks that came with the outcome; those are not written. The hot path: what happens for a chunk
        happens in the connection's own callback.
        """
        decoder = self._decoder
        feed = decoder.feed
        last: Chunks = []

        def sink(data: bytes) -> bool:
            nonlocal last
            chunks = feed(data)
            if decoder.outcome is not None:
                last = chunks
                return False
            if not chunks:
                return True
            return write(encode(chunks))

        try:
            if await self._response.pump(sink):
                return self._close()
        except UpstreamError as error:
            return self._broken_off(error)
        if decoder.outcome is not None:
            self.outcome = self._understood(decoder.outcome)
        return last

    def _take(self, data: bytes) -> Chunks:
        decoder = self._decoder
        chunks = decoder.feed(data)
        if self.first_chunk is None:
            if chunks:
                self.first_chunk = monotonic()
                self._before.clear()
            elif len(self._before) < MAX_NON_STREAM_BYTES:
                self._before += data
        if decoder.outcome is not None:
            self.outcome = self._understood(decoder.outcome)
        return chunks

    def _close(self) -> Chunks:
        decoder = self._decoder
        chunks = decoder.close()
        if decoder.outcome is not None:
            self.outcome = self._understood(decoder.outcome)
        return chunks

    def _broken_off(self, error: UpstreamError) -> Chunks:
        self.outcome = error if isinstance(error, ReadTimedOut) else StreamTruncated(error.reason)
        return []

    def _understood(self, outcome: Ending | UpstreamError) -> Ending | UpstreamError:
        # Where the end of the body is a good end, one that says nothing at all may still have been no stream.
        unread = isinstance(outcome, StreamTruncated) or self.skipped_events or outcome == Ending()
        if unread and not self.chunks:
            kind = self._response.headers.get("content-type", "")
            outcome = non_stream_response(bytes(self._before), kind) or outcome
        if isinstance(outcome, Ending):
            return outcome
        return type(outcome)(
            redact(outcome.reason, self._credential.values()),
            type=outcome.type,
            provider_status=outcome.provider_status,
        )


async def _refusal(response: UpstreamResponse, credential: Mapping[str, str]) -> UpstreamError:
    parts: list[bytes] = []
    size = 0
    while size < MAX_ERROR_BODY_BYTES and (data := await response.read()):
        parts.append(data)
        size += len(data)
    text = redact(b"".join(parts).decode("utf-8", "replace"), credential.values())
    status = response.status
    throttled = response.headers.get("x-amzn-errortype", "").startswith("ThrottlingException")
    reason = (
        "The request was denied due to remote server throttling. "
        "To change the retry policy and behavior, please update the connector client_config."
        if throttled
        else text
    )
    return UpstreamError(
        f"Error from remote service: {reason}"
        if reason
        else f"Remote service returned error status {status} with empty body",
        type="remote_connector_throttling_exception" if throttled else None,
        retry_after=response.headers.get("retry-after"),
        provider_status=429 if throttled else status,
    )


def _signed(model: ReadyModel, request: ProviderRequest) -> ProviderRequest:
    credential = model.credential
    parameters = model.connector.parameters
    region = parameters.get("region") or credential.get("region")
    service = parameters.get("service_name") or credential.get("service_name")
    if not region or not service:
        raise InvalidRequest("Missing region" if not region else "Missing service name")
    return sign(request, credential, region, service, datetime.now(UTC))
