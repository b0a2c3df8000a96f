"""gzip for clients that accept it: whole bodies, and streams that can be decompressed write by write.

The compressor of a stream takes 16 KiB, where zlib's defaults take 256: an event is much like those just before it, so
a short window compresses as well. An event costs some 2 µs and shrinks to a tenth or less.
"""

import asyncio
import zlib
from collections.abc import Callable
from typing import Any

from starlette.types import Scope

from opensearch_ml_stream.connectors.chunks import Chunks, Ending
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.wire_format import WireFormat
from opensearch_ml_stream.rest_handlers.http.asgi_extensions import CHUNK_WRITER
from opensearch_ml_stream.rest_handlers.http.host_and_origin import Headers

VARY: Headers = ((b"vary", b"Accept-Encoding"),)
GZIP_HEADERS: Headers = ((b"content-encoding", b"gzip"), *VARY)
MIN_BYTES = 1000  # of a whole body: a smaller one fits into one packet as it is

_LEVEL = 1
_GZIP = 16  # added to the window's bits: zlib's way to say gzip
_STREAM_WINDOW_BITS, _STREAM_MEMORY_LEVEL = 11, 4
_SLICE = 128 * 1024  # bytes, between two of which other work is done


def accepts_gzip(scope: Scope) -> bool:
    """Whether the client prefers gzip, or has no preference between gzip and no coding (RFC 9110, section 12.5.3)."""
    values = [value for name, value in scope["headers"] if name == b"accept-encoding"]
    if not values:
        return False
    weights: dict[str, float] = {}
    for item in b",".join(values).decode("latin-1").lower().split(","):
        coding, _, parameter = item.partition(";")
        weights[coding.strip()] = _weight(parameter)
    gzip = weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0)))
    return gzip > 0 and gzip >= weights.get("identity", 0.0)


def may_stream_gzip(scope: Scope) -> bool:
    """Whether a stream may be compressed, too: only through a writer that keeps all writes in their order."""
    return CHUNK_WRITER in scope.get("extensions", {}) and accepts_gzip(scope)


def _weight(parameter: str) -> float:
    """Return the weight of a coding; one that is malformed is 0, so that nothing is sent that may not be taken."""
    name, _, value = parameter.partition("=")
    if not name.strip():
        return 1.0
    try:
        return float(value) if name.strip() == "q" and 0 <= float(value) <= 1 else 0.0
    except ValueError:
        return 0.0


async def gzipped(body: bytes) -> bytes:
    """Compress a whole body, in slices, so that a large one does not block the event loop."""
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP + zlib.MAX_WBITS)
    parts: list[bytes] = []
    for start in range(0, len(body), _SLICE):
        if start:
            await asyncio.sleep(0)
        parts.append(compressor.compress(body[start : start + _SLICE]))
    return b"".join([*parts, compressor.flush()])


class GzipFormat(WireFormat):
    """The format of one stream, compressed: the client can decompress at once what each call returns.

    All of it must be sent, and in the order of the calls.
    """

    __slots__ = ("_compress", "_flush", "_format", "content_type")

    def __init__(self, plain: WireFormat) -> None:
        compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP + _STREAM_WINDOW_BITS, _STREAM_MEMORY_LEVEL)
        self._compress: Callable[[bytes], bytes] = compressor.compress
        self._flush: Callable[[int], bytes] = compressor.flush
        self._format = plain
        self.content_type = plain.content_type

    @property
    def heartbeat(self) -> bytes:
        """The next heartbeat."""
        return self._written(self._format.heartbeat)

    def chunks(self, chunks: Chunks) -> bytes:
        """Encode all chunks of one upstream read."""
        return self._written(self._format.chunks(chunks))

    def last(self, chunks: Chunks, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode the end of a complete stream."""
        return self._compress(self._format.last(chunks, ending, extra)) + self._flush(zlib.Z_FINISH)

    def ending(self, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode the terminal object of a complete stream."""
        return self._compress(self._format.ending(ending, extra)) + self._flush(zlib.Z_FINISH)

    def error(self, error: MLStreamError) -> bytes:
        """Encode the end of a failed stream."""
        return self._compress(self._format.error(error)) + self._flush(zlib.Z_FINISH)

    def _written(self, data: bytes) -> bytes:
        return self._compress(data) + self._flush(zlib.Z_SYNC_FLUSH)
