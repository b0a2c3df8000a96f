"""What our server offers an application beside ASGI.

ASGI takes a message, a coroutine and often a task for each part of a request or response, which is much beside a token
or a short response. Our server puts shorter ways into the scope, most of them among its `extensions`. An application
that does not find one there uses ASGI's messages.
"""

from typing import Protocol

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation

DIRECT_EXCHANGE = "opensearch_ml_stream.direct_exchange"
"""The extension that is a DirectExchange."""

CHUNK_WRITER = "opensearch_ml_stream.chunk_writer"
"""The extension that is a ChunkWriter. The head and the end of the response are still sent as messages."""

HEAD_MEMO = "opensearch_ml_stream.head_memo"
"""A dictionary in the scope for what follows from the request head alone.

Requests with equal heads, but for the length of the body, have the same one.
"""

HALF_CLOSED = "opensearch_ml_stream.half_closed"
"""A message of `receive`, once: the client has closed its side of the connection.

It may wait for its response, or be gone; only a write can tell.
"""

REQUEST_NOTES = "opensearch_ml_stream.request_notes"
"""RequestNotes in the scope, where the server keeps a log."""

# For an application that relays requests, such as a proxy, which needs more of HTTP/1.1 than ASGI has:

HTTP_TRAILERS = "http.response.trailers"
"""ASGI's own extension."""

REQUEST_TRAILERS = "opensearch_ml_stream.request_trailers"
"""A key of the last message of `receive`: the request's trailers, if any, as (name, value) pairs."""

INFORMATIONAL = "opensearch_ml_stream.informational_response"
"""A message with `status` (102 to 199) and `headers`, before `http.response.start`."""

BROKEN = "opensearch_ml_stream.broken_response"
"""A message that breaks off a response that has started, so that the client sees that it is incomplete."""

LONG_REQUEST = "opensearch_ml_stream.long_request"
"""A message: the request may take any time, as long as its body makes progress."""


class ClientWatcher(Protocol):
    """Is told when the client disconnects or closes its side."""

    def client_disconnected(self) -> None:
        """Note that the client is gone."""
        ...

    def client_half_closed(self) -> None:
        """Note, once, that the client closed its side. It may wait for its response, or be gone: a write tells."""
        ...


class DirectExchange(Protocol):
    """One request and its response."""

    def take_body(self, reservation: BodyReservation) -> bytes | None:
        """Return the request's body, once, if all of it has been received; else None, and `receive` has what there is.

        The memory that is reserved for the body is moved to `reservation`.
        """
        ...

    def watch(self, watcher: ClientWatcher | None) -> None:
        """Tell the watcher what happens to the client once the body has been received, and what has happened before."""
        ...

    async def start(self, lines: bytes) -> None:
        """Send the head of a stream with status 200, or keep it until the first bytes of the body."""
        ...

    async def respond(self, lines: bytes, body: bytes) -> None:
        """Send a whole response with status 200. Its length is among the lines of its head."""
        ...


class ChunkWriter(Protocol):
    """Writer of the body of a response that has started and not ended."""

    last_write: float  # time of the last write, or of the start: seconds of `time.monotonic`

    def write_chunk(self, data: bytes) -> bool:
        """Write without waiting; return False if `drain` must be awaited before the next write."""
        ...

    async def drain(self) -> None:
        """Send what is still held, or wait until a slow client has caught up."""
        ...


class RelayedStream(Protocol):
    """The provider's stream that a request led to."""

    @property
    def chunks(self) -> int:
        """How many chunks have come so far."""
        ...


class RequestNotes:
    """Notes of one request: the routes write them, the server reads them for its log.

    `id` is what responses have as `X-Request-Id`, `error` the error that the client was sent, `model` the model that
    the request names where its path does not.
    """

    id = ""
    model: str | None = None
    error: MLStreamError | None = None
    stream: RelayedStream | None = None
