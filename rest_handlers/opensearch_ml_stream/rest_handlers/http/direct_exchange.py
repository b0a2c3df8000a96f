"""What our server offers beside ASGI for one request: its body at once, its client's end, its response in one piece.

ASGI takes a message, a coroutine and often a task for each of these, which is much beside a short response. Whoever
finds no DirectExchange among the `extensions` of the scope, under DIRECT_EXCHANGE, goes by messages.
"""

from typing import Protocol

from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation

DIRECT_EXCHANGE = "opensearch_ml_stream.direct_exchange"

# Of the scope: a dictionary for what follows from the request's head alone, which is the same one for requests whose
# heads are equal, but for the length of the body.
HEAD_MEMO = "opensearch_ml_stream.head_memo"


class ClientWatcher(Protocol):
    """Who wants to know what becomes of a client."""

    def client_disconnected(self) -> None:
        """Note that the client is gone."""
        ...

    def client_half_closed(self) -> None:
        """Note, once, that the client closed its side. It may wait for its response, or be gone: a write tells."""
        ...


class DirectExchange(Protocol):
    """One request and its response."""

    def take_body(self, reservation: BodyReservation) -> bytes | None:
        """Return the request's body, once, if it has come whole; else None, and `receive` has what there is.

        What is reserved for it becomes the reservation's.
        """
        ...

    def watch(self, watcher: ClientWatcher | None) -> None:
        """Tell the watcher of the client, from when the body has come on; at once of what has happened already."""
        ...

    async def start(self, lines: bytes) -> None:
        """Send the head of a stream, or keep it until the first bytes of the body; 200."""
        ...

    async def respond(self, lines: bytes, body: bytes) -> None:
        """Send a whole response; 200. Its length is among the lines of its head."""
        ...
