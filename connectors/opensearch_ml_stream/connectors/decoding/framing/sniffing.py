"""Framing found out from a stream's first bytes, for bodies that carry whatever a model server writes."""

from opensearch_ml_stream.connectors.decoding.contract import Event, Framing
from opensearch_ml_stream.connectors.decoding.framing.json_array import JSONArrayFraming
from opensearch_ml_stream.connectors.decoding.framing.ndjson import NDJSONFraming
from opensearch_ml_stream.connectors.decoding.framing.plain_text import PlainTextFraming
from opensearch_ml_stream.connectors.decoding.framing.sse import SSEFraming
from opensearch_ml_stream.connectors.errors import UpstreamError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SSE_STARTS = (b"data:", b"event:", b"id:", b"retry:", b":")


class SniffedFraming:
    """`{` begins NDJSON, `[` a JSON array, a field of server-sent events those; anything else is plain text."""

    __slots__ = ("_framing", "_held", "error")

    def __init__(self) -> None:
        self._framing: Framing | None = None
        self._held = b""
        self.error: UpstreamError | None = None

    def feed(self, data: bytes) -> list[Event]:
        if self._framing is None:
            data = self._held + data
            self._framing = _detect(data)
            if self._framing is None:
                self._held = data
                return []
        return self._told(self._framing, self._framing.feed(data))

    def close(self) -> list[Event]:
        if self._framing is None:
            if not self._held.strip():
                return []
            self._framing = PlainTextFraming()
            events = self._framing.feed(self._held)
            return self._told(self._framing, [*events, *self._framing.close()])
        return self._told(self._framing, self._framing.close())

    def _told(self, framing: Framing, events: list[Event]) -> list[Event]:
        self.error = framing.error
        return events


def _detect(data: bytes) -> Framing | None:
    """None while it may be several."""
    start = data.removeprefix(_BYTE_ORDER_MARK).lstrip()
    if not start or _BYTE_ORDER_MARK.startswith(start):
        return None
    if start[:1] == b"{":
        return NDJSONFraming()
    if start[:1] == b"[":
        return JSONArrayFraming()
    if start.startswith(_SSE_STARTS):
        return SSEFraming()
    return None if any(field.startswith(start) for field in _SSE_STARTS) else PlainTextFraming()
