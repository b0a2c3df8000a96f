"""Measure how `_predict/stream` arrives by one path: the raw reads of the body, and when they held text."""

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from urllib.parse import quote

import httpx

from opensearch_ml_stream.client.errors import SidecarError
from opensearch_ml_stream.client.response_chunks import ChunkReader
from opensearch_ml_stream.extensions.doctor.cli.path_comparison import End, PathTimeline, Place, WireFormat
from opensearch_ml_stream.plugin.cli.command_errors import CommandFailed
from opensearch_ml_stream.plugin.cli.sidecar_api import CONNECT_SECONDS, SidecarAPI, error_reason
from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH

MAX_SECONDS = 150  # of a response: more than a provider is given by the diagnosis before it
MAX_BYTES = 16 * 1024 * 1024  # of a response, also when it is decompressed
MAX_READS = 10_000
ONE_READ_MS = 1.0  # the parts of a body that httpx gives one after the other came in one read of the connection
_IDLE_SECONDS = 60  # heartbeats come each 15 s
_ACCEPT: Mapping[WireFormat, str] = {"SSE": "text/event-stream", "NDJSON": "application/x-ndjson"}
_SHOWN_HEADERS = frozenset({"content-type", "content-encoding", "cache-control", "server", "via", "x-accel-buffering"})
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


@dataclass(slots=True)
class _Arriving:
    """What has arrived of a response so far."""

    reads: list[tuple[float, int]] = field(default_factory=list)
    chunks: list[float] = field(default_factory=list)
    size: int = 0

    def add(self, milliseconds: float, size: int) -> None:
        """Add bytes as a read, or to the last one if they came with it."""
        self.size += size
        if self.reads and (milliseconds - self.reads[-1][0] < ONE_READ_MS or len(self.reads) == MAX_READS):
            before, known = self.reads[-1]
            self.reads[-1] = (before, known + size)
        else:
            self.reads.append((milliseconds, size))


class _UnreadableError(Exception):
    """A body that no client could read, or that has no end. `str()` of it says why."""


class _Decompressor:
    """The content of a body in gzip or deflate, which are asked for, or in none. _UnreadableError for any other."""

    def __init__(self, encoding: str) -> None:
        if encoding not in ("identity", "gzip", "deflate"):
            raise _UnreadableError(f"it is compressed with {encoding[:40]}, which was not asked for")
        self._inflate = None if encoding == "identity" else zlib.decompressobj(_GZIP_OR_ZLIB)

    def feed(self, data: bytes) -> bytes:
        """Return what the bytes decompress to."""
        if self._inflate is None:
            return data
        try:
            content = self._inflate.decompress(data, MAX_BYTES)
        except zlib.error:
            raise _UnreadableError("its compressed body cannot be decompressed") from None
        if self._inflate.unconsumed_tail:
            raise _UnreadableError(f"it has more than {MAX_BYTES} bytes")
        return content


@dataclass(frozen=True, slots=True)
class PathMeter:
    """Calls a model's stream by one path. `clock` counts seconds."""

    client: httpx.Client
    place: Place
    model_id: str
    parameters: Mapping[str, str]
    clock: Callable[[], float] = monotonic

    def measure(self, wire_format: WireFormat) -> PathTimeline:
        """Return how the response arrives. Whatever goes wrong is in the timeline; nothing is raised."""
        arriving = _Arriving()
        status, headers, reason = 0, dict[str, str](), ""
        started = self.clock()
        request = self.client.build_request(
            "POST",
            f"{BASE_PATH}/models/{quote(self.model_id, safe='')}/_predict/stream",
            json={"parameters": self.parameters},
            headers={"accept": _ACCEPT[wire_format], "accept-encoding": "gzip, deflate"},
            timeout=httpx.Timeout(_IDLE_SECONDS, connect=CONNECT_SECONDS),
        )
        end: End
        try:
            response = self.client.send(request, stream=True)
            try:
                status = response.status_code
                headers = {name: value for name, value in response.headers.items() if name in _SHOWN_HEADERS}
                end = "refused" if not response.is_success else self._read(response, started, arriving)
                if end == "refused":
                    reason = _refusal(response)
            finally:
                response.close()
        except SidecarError as error:
            # What is no object of a stream, or the stream's own error; a missing end is found before.
            end, reason = "error", error.reason
        except _UnreadableError as error:
            end, reason = "error", str(error)
        except (httpx.ReadError, httpx.RemoteProtocolError, httpx.ReadTimeout) as error:
            end, reason = "cut", type(error).__name__
        except httpx.TransportError as error:
            end, reason = "unreachable", str(error)
        return PathTimeline(
            self.place,
            wire_format,
            end,
            (self.clock() - started) * 1000,
            status,
            headers,
            tuple(arriving.reads),
            tuple(arriving.chunks),
            reason,
        )

    def _read(self, response: httpx.Response, started: float, arriving: _Arriving) -> End:
        decompressor = _Decompressor(response.headers.get("content-encoding", "identity").strip().lower())
        reader = ChunkReader()
        for data in response.iter_raw():
            milliseconds = (self.clock() - started) * 1000
            arriving.add(milliseconds, len(data))
            content = decompressor.feed(data)
            if arriving.size > MAX_BYTES:
                raise _UnreadableError(f"it has more than {MAX_BYTES} bytes")
            chunks = list(reader.feed(content))
            if any(not chunk.is_last for chunk in chunks) and len(arriving.chunks) < MAX_READS:
                arriving.chunks.append(milliseconds)
            if reader.ended:
                return "complete"
            if milliseconds > MAX_SECONDS * 1000:
                return "too long"
        return "cut"


def count_requests(api: SidecarAPI, model_id: str) -> int | None:
    """Return how many predictions of a model the sidecar has counted, None if the caller may not know."""
    body = {"target_stat_levels": ["model"], "models": [model_id], "actions": ["predict"]}
    try:
        stats = api.call("GET", "/stats", body)
        of_nodes = [node.get("models", {}) for node in stats.get("nodes", {}).values()]
        return sum(
            int(models[model_id]["predict"]["ml_action_request_count"]) for models in of_nodes if model_id in models
        )
    except (CommandFailed, AttributeError, LookupError, TypeError):
        return None


def _refusal(response: httpx.Response) -> str:
    try:
        response.read()
    except httpx.TransportError:
        return "the connection broke before its reason had come"
    return error_reason(response)
