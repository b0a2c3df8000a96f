"""NDJSON framing (newline-delimited JSON): every line that is not blank is one event."""

from opensearch_ml_stream.connectors.decoding.contract import MAX_EVENT_BYTES, too_large
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.event import Event


class NDJSONFraming:
    """NDJSON lines as events. A line ends at LF (a CR before it is white space to JSON), the last one with the body."""

    __slots__ = ("_line", "error")

    def __init__(self) -> None:
        self._line = bytearray()  # the unfinished line
        self.error: UpstreamError | None = None

    def feed(self, data: bytes) -> list[Event]:
        """Return the lines that end within `data`."""
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._line:
            self._line += lines[0]
            lines[0] = bytes(self._line)
            self._line.clear()
        if rest:
            self._line += rest
            if len(self._line) > MAX_EVENT_BYTES:
                self.error = too_large()
        return [Event("", line) for line in lines if line and not line.isspace()]

    def close(self) -> list[Event]:
        """Return the last line, if it did not end."""
        return self.feed(b"\n")
