"""A response body that is plain text: the end of the body is the end of the response."""

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.decoding.contract import Event, Outcome


class PlainTextBody:
    """Text that is not UTF-8 is shown as U+FFFD."""

    __slots__ = ()

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        chunks.append(Chunk(event.data.decode("utf-8", "replace")))
        return None

    def end_of_input(self) -> Outcome:
        return Ending()
