"""What a request leaves for the log: the server puts the notes into the scope, the routes write, the server reads."""

from typing import Protocol

from opensearch_ml_stream.connectors.errors import MLStreamError

REQUEST_NOTES = "opensearch_ml_stream.request_notes"  # of the scope, where the server keeps a log


class RelayedStream(Protocol):
    """The provider's stream that a request led to."""

    @property
    def chunks(self) -> int:
        """How many chunks have come so far."""
        ...


class RequestNotes:
    """Notes of one request.

    `id` is what responses say as `X-Request-Id`, `error` what the client was told, `model` the one that it names where
    its path does not.
    """

    id = ""
    model: str | None = None
    error: MLStreamError | None = None
    stream: RelayedStream | None = None
