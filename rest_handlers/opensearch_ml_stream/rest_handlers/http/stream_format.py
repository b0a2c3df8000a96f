"""What a response needs of the format of its stream."""

from typing import Any, Protocol

from opensearch_ml_stream.connectors.chunks import Chunks, Ending
from opensearch_ml_stream.connectors.errors import MLStreamError


class StreamFormat(Protocol):
    """The format of a stream: a WireFormat, or one around it. Everything is the bytes of whole objects."""

    @property
    def content_type(self) -> str:
        """The value of the header `Content-Type`."""
        ...

    @property
    def heartbeat(self) -> bytes:
        """What is sent while there is nothing to send."""
        ...

    def chunks(self, chunks: Chunks) -> bytes:
        """Encode all chunks of one upstream read."""
        ...

    def last(self, chunks: Chunks, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode the end of a complete stream, and the chunks, if any, that came with it."""
        ...

    def error(self, error: MLStreamError) -> bytes:
        """Encode the end of a failed stream."""
        ...
