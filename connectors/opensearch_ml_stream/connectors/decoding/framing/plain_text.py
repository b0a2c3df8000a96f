"""Streams without framing: the body is the text."""

from opensearch_ml_stream.connectors.decoding.contract import Event, truncated
from opensearch_ml_stream.connectors.errors import UpstreamError

# The name of a piece of plain text: no framing of events gives such a name.
PLAIN_TEXT = "\0text"


class PlainTextFraming:
    """Every read is an event, less what may be the beginning of a character."""

    __slots__ = ("_held", "error")

    def __init__(self) -> None:
        self._held = b""
        self.error: UpstreamError | None = None

    def feed(self, data: bytes) -> list[Event]:
        data = self._held + data
        whole = len(data) - _unfinished(data)
        self._held = data[whole:]
        return [Event(PLAIN_TEXT, data[:whole])] if whole else []

    def close(self) -> list[Event]:
        if self._held:
            self.error = truncated("the end of a character")
        return []


def _unfinished(data: bytes) -> int:
    """How many bytes at the end are the beginning of a UTF-8 sequence: 0 to 3."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if back < size else 0
        if byte < 0x80:
            return 0
    return 0
