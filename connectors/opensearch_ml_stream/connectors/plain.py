"""Streams that are no JSON: the body is the text, and its end is the end of the answer."""

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.decoding import Event, Outcome, truncated
from opensearch_ml_stream.connectors.errors import UpstreamError

# The name of a piece of plain text: no framing of events gives such a name.
PLAIN_TEXT = "\0text"


class TextFraming:
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


class PlainText:
    """Text that is not UTF-8 is shown as U+FFFD."""

    __slots__ = ()

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        chunks.append(Chunk(event.data.decode("utf-8", "replace")))
        return None

    def end_of_input(self) -> Outcome:
        return Ending()


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
