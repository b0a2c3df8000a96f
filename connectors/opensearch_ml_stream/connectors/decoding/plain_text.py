"""Plain-text framing: the whole body is the text, and every read is an event."""

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.decoding.contract import Outcome, truncated
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.syntax.provider_json import BYTE_ORDER_MARK

# The event name of plain text, by which providers recognise it: no other framing gives such a name.
PLAIN_TEXT = "\0text"


class PlainTextFraming:
    """Every read as an event, except for an unfinished UTF-8 character at its end, which goes into the next event.

    A byte order mark before the text is none of it.
    """

    __slots__ = ("_has_begun", "_unfinished", "error")

    def __init__(self) -> None:
        self._has_begun = False
        self._unfinished = b""  # the first bytes of a character whose other bytes have not come
        self.error: UpstreamError | None = None

    def feed(self, data: bytes) -> list[Event]:
        """Return the text of `data` as one event, none if no character ends within it."""
        data = self._unfinished + data
        end = len(data) - _unfinished_bytes(data)
        self._unfinished = data[end:]
        text = data[:end]
        if not self._has_begun and text:
            self._has_begun = True
            text = text.removeprefix(BYTE_ORDER_MARK)
        return [Event(PLAIN_TEXT, text)] if text else []

    def close(self) -> list[Event]:
        """Set `error` if the body ended within a character."""
        if self._unfinished:
            self.error = truncated("the end of a character")
        return []


def _unfinished_bytes(data: bytes) -> int:
    """Return how many bytes at the end of `data` begin a UTF-8 sequence that it does not finish: 0 to 3."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            size = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return back if back < size else 0
        if byte < 0x80:
            return 0
    return 0


class PlainTextBody:
    """Reads events of the plain-text framing. Bytes that are not UTF-8 become U+FFFD."""

    __slots__ = ()

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        """Append the event's data as text."""
        chunks.append(Chunk(event.data.decode("utf-8", "replace")))
        return None

    def end_of_input(self) -> Outcome:
        """Return a good ending: the stream has no terminator."""
        return Ending()
