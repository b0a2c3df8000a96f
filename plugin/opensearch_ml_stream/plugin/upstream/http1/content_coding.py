"""Decompresses response bodies (RFC 9110, section 8.4) of providers that compress although identity is asked for."""

import asyncio
import zlib
from collections.abc import Mapping

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.upstream import Sink, UpstreamResponse, network_errors, pump_by_reading

MAX_READ_BYTES = 64 * 1024  # one read returns no more, however well the bytes were compressed

_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


class DecodedResponse:
    """A response whose body is decompressed as it is read. Use `decoded` to make one."""

    __slots__ = ("_authority", "_bits", "_coding", "_decompressor", "_response", "_undecoded", "headers", "status")

    def __init__(self, response: UpstreamResponse, coding: str, authority: str) -> None:
        self._response = response
        self._coding = coding
        self._authority = authority
        self._bits = _WINDOW_BITS[coding]
        self._decompressor = zlib.decompressobj(self._bits)
        self._undecoded = b""
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def read(self) -> bytes:
        """See UpstreamResponse.read. UpstreamError also if the bytes are not what content-encoding says."""
        while True:
            if self._undecoded:
                await asyncio.sleep(0)  # a few bytes may become a thousand times as many: others get their turn
            data = self._undecoded or await self._response.read()
            try:
                plain = self._decompress(data) if data else self._decompressor.flush()
            except zlib.error:
                raise self._undecodable() from None
            if plain:
                return plain
            if not data:
                if not self._decompressor.eof:
                    raise self._undecodable()
                return b""

    async def pump(self, sink: Sink) -> bool:
        """See UpstreamResponse.pump."""
        return await pump_by_reading(self.read, sink)

    def limit_silence(self, seconds: float) -> None:
        """See UpstreamResponse.limit_silence."""
        self._response.limit_silence(seconds)

    def fail(self, error: UpstreamError) -> None:
        """See UpstreamResponse.fail."""
        self._response.fail(error)

    def _decompress(self, data: bytes) -> bytes:
        if self._decompressor.eof:  # gzip allows one member after the other (RFC 1952, section 2.2)
            self._decompressor = zlib.decompressobj(self._bits)
        plain = self._decompressor.decompress(data, MAX_READ_BYTES)
        self._undecoded = self._decompressor.unconsumed_tail or self._decompressor.unused_data
        return plain

    def _undecodable(self) -> UpstreamError:
        return network_errors.undecodable(self._authority, self._coding)


def decoded(response: UpstreamResponse, authority: str) -> UpstreamResponse:
    """Return the response with its decompressed body. UpstreamError for a coding that is not supported.

    `authority` is the provider's host:port, for errors.
    """
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding in ("identity", ""):
        return response
    if coding not in _WINDOW_BITS:
        raise network_errors.undecodable(authority, coding)
    return DecodedResponse(response, coding, authority)
