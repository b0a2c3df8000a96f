"""Framing detection by a stream's first bytes, for hosts that pass on whatever a model server writes."""

from opensearch_ml_stream.connectors.decoding.aws_eventstream import AWSEventStreamFraming
from opensearch_ml_stream.connectors.decoding.contract import Framing
from opensearch_ml_stream.connectors.decoding.json_array import JSONArrayFraming
from opensearch_ml_stream.connectors.decoding.ndjson import NDJSONFraming
from opensearch_ml_stream.connectors.decoding.plain_text import PlainTextFraming
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.syntax import provider_json
from opensearch_ml_stream.connectors.syntax.provider_json import BYTE_ORDER_MARK

MAX_UNDECIDED_BYTES = 4096  # of blanks before anything else

_SSE_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")


class DetectedFraming:
    """Events of the framing that the first bytes show.

    `{` begins NDJSON, `[` a JSON array, an SSE field or comment server-sent events; anything else is plain text.
    """

    __slots__ = ("_framing", "_undecided", "error")

    def __init__(self) -> None:
        self._framing: Framing | None = None
        self._undecided = b""  # bytes that may begin several framings
        self.error: UpstreamError | None = None

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that end within `data`, none before the framing is known."""
        if self._framing is None:
            data = self._undecided + data
            self._framing = _detect(data)
            if self._framing is None and len(data) > MAX_UNDECIDED_BYTES:
                self._framing = PlainTextFraming()
            if self._framing is None:
                self._undecided = data
                return []
            self._undecided = b""
            data = data.removeprefix(BYTE_ORDER_MARK)
        events = self._framing.feed(data)
        self.error = self._framing.error
        return events

    def close(self) -> list[Event]:
        """Return the last events. Bytes that no framing was recognised in are plain text, blank ones are nothing."""
        events: list[Event] = []
        if self._framing is None:
            if not self._undecided.strip():
                return events
            self._framing = PlainTextFraming()
            events += self._framing.feed(self._undecided)
        events += self._framing.close()
        self.error = self._framing.error
        return events


def is_stream(body: bytes) -> bool:
    """Return whether a body that is no JSON is a stream of events: server-sent ones, lines of JSON, or AWS's frames."""
    framing = _detect(body)
    if isinstance(framing, NDJSONFraming):
        lines = [line for line in body.split(b"\n", 4)[:4] if line.strip()]
        return all(_is_json(line) for line in lines[:2])
    if isinstance(framing, SSEFraming):
        return True
    frames = AWSEventStreamFraming()
    return bool(frames.feed(body)) and frames.error is None


def _is_json(line: bytes) -> bool:
    try:
        provider_json.loads(line)
    except ValueError:
        return False
    return True


def _detect(data: bytes) -> Framing | None:
    """Return the framing of a stream that begins with `data`, None while it may be several."""
    start = data.removeprefix(BYTE_ORDER_MARK).lstrip()
    if not start or BYTE_ORDER_MARK.startswith(start):
        return None
    if start[:1] == b"{":
        return NDJSONFraming()
    if start[:1] == b"[":
        return JSONArrayFraming()
    if start.startswith(_SSE_STARTS):
        return SSEFraming()
    return None if any(field.startswith(start) for field in _SSE_STARTS) else PlainTextFraming()
