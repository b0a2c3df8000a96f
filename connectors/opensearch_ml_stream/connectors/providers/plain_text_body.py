"""Plain-text body: the body of the response is the text, and its end is the end of the stream."""

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.decoding.contract import Outcome
from opensearch_ml_stream.connectors.event import Event


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
