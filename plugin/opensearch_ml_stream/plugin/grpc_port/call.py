"""One call of the gRPC port, from its metadata to its status."""

import asyncio
from collections.abc import MutableMapping
from time import monotonic
from typing import Any, cast
from urllib.parse import unquote

import grpc.aio

from opensearch_ml_stream.connectors.errors import MLStreamError, RequestTimeout, Unavailable
from opensearch_ml_stream.plugin.grpc_port.statuses import StatusCodes, details, error_metadata
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.host_and_origin import Headers
from opensearch_ml_stream.rest_handlers.http.request_notes import RequestNotes
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses

STOPPING = "The server is stopping; send the request again"

_END = cast(Any, grpc.aio).EOF  # what is read after a client's last message
_CANCELLED_BY_THEN = 0.01  # seconds: a call that is cancelled, or too late, looks first as if its client had said all


class Call:
    """A call of a client; it is a request of the request log, and one of the responses in flight while it works.

    `scope` is what a gate reads of a request, as ASGI has it: the metadata are its headers.
    """

    __slots__ = (
        "_code", "_context", "_first_seconds", "_further", "_in_flight", "_interrupted_by", "_reservation", "_task",
        "_waiting", "begun", "disconnected", "ended", "first_byte", "notes", "scope", "status",
    )  # fmt: skip

    def __init__(
        self,
        path: str,
        context: Any,
        in_flight: InFlightResponses,
        waiting: set["Call"],
        first_seconds: float,
        code: StatusCodes,
    ) -> None:
        self.scope = _scope(path, context)
        self.notes = RequestNotes()
        self.begun = monotonic()
        self.first_byte = 0.0
        self.status = 0
        self.ended = False
        self.disconnected = False
        self._code = code
        self._context = context
        self._first_seconds = first_seconds
        self._in_flight = in_flight
        self._waiting = waiting
        self._reservation = BodyReservation(in_flight.bodies)
        self._further = BodyReservation(in_flight.bodies)  # of a message that is read while responses go out
        self._interrupted_by: MLStreamError | None = None
        self._task = asyncio.current_task()

    async def first_message(self) -> bytes | None:
        """Return the client's first message, None if there is none; RequestTimeout if it does not come in time."""
        try:
            async with asyncio.timeout(self._first_seconds):
                return await self.next_message()
        except TimeoutError:
            raise RequestTimeout(f"The request's message is not whole after {self._first_seconds:g} seconds") from None

    async def next_message(self) -> bytes | None:
        """Return the client's next message, None after its last.

        Meanwhile the call is not in flight: a stop ends it at once. Throttled where messages or responses in flight
        would be too many.
        """
        self._reservation.release()
        self._in_flight.remove(self)
        self._waiting.add(self)
        try:
            message = await self._context.read()
        finally:
            self._waiting.discard(self)
        if message is _END:
            return None
        self._in_flight.check_room()
        self._reservation.add(len(message))
        self._in_flight.add(self)
        data: bytes = message
        return data

    async def further_message(self) -> bytes | None:
        """Return the client's next message while responses go out, None after its last; the call stays in flight.

        The model has taken the further message before. Throttled as `next_message`.
        """
        self._further.release()
        message = await self._context.read()
        if message is _END:
            await asyncio.sleep(_CANCELLED_BY_THEN)
            return None
        self._further.add(len(message))
        data: bytes = message
        return data

    def cover(self, size: int) -> None:
        """Reserve what the message in work has become, in bytes; Throttled as `next_message`."""
        self._reservation.cover(size)

    def wait(self) -> None:
        """Wait from now on for what may never come: the call is not in flight any more, and a stop ends it at once."""
        self._reservation.release()
        self._in_flight.remove(self)
        self._waiting.add(self)

    def let_go(self) -> None:
        """Release what the message in work has reserved: it has been read, and sent on."""
        self._reservation.release()

    async def write(self, message: bytes) -> None:
        """Send a message; returns when the client has room for another."""
        if not self.first_byte:
            self.first_byte = monotonic()
        await self._context.write(message)

    def set_trailing_metadata(self, headers: Headers) -> None:
        """Send headers of the response behind its last message."""
        said = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
        self._context.set_trailing_metadata((*self._own_metadata(), *said))

    def interrupt(self, reason: MLStreamError) -> None:
        """End the call with an error."""
        if self._interrupted_by is None and self._task is not None and not self.ended:
            self._interrupted_by = reason
            self._task.cancel()

    def take_interruption(self) -> MLStreamError | None:
        """Return the reason for which the server has cancelled the call's task, None if it was the client."""
        if self._interrupted_by is not None and self._task is not None:
            self._task.uncancel()
        return self._interrupted_by

    def succeed(self) -> None:
        """Note that the response is whole."""
        self.status = 200
        self.ended = True

    async def fail(self, error: MLStreamError) -> None:
        """End the call with the error's status; raises grpc's AbortError, which must reach grpc."""
        # Else the frames of its traceback, and with them the message and what was read of it, would stay until a rare
        # full collection: grpc keeps the error by which a call is aborted, which keeps this one.
        error.__traceback__ = error.__context__ = error.__cause__ = None
        self.notes.error = error
        self.status = error.status
        self.ended = True
        try:
            await self._context.abort(
                self._code(error), details(error), (*self._own_metadata(), *error_metadata(error))
            )
        except grpc.aio.AbortError:
            raise
        except grpc.aio.BaseError:  # the client is gone
            self.disconnected = True
            raise asyncio.CancelledError from None

    def close(self) -> None:
        """Give back all that the call has reserved."""
        self._reservation.release()
        self._further.release()
        self._in_flight.remove(self)
        self._waiting.discard(self)

    def _own_metadata(self) -> tuple[tuple[str, str], ...]:
        return (("x-request-id", self.notes.id),)


def stopping() -> Unavailable:
    """Return the error of calls that come or wait while the server stops."""
    return Unavailable(STOPPING)


def _scope(path: str, context: Any) -> MutableMapping[str, Any]:
    headers = [
        (key.encode(), value.encode("utf-8", "surrogateescape"))
        for key, value in context.invocation_metadata()
        if isinstance(value, str)  # others are binary, their names end with -bin
    ]
    return {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": headers,
        "client": _client(context.peer()),
    }


def _client(peer: str) -> tuple[str, int] | None:
    """Return address and port of `ipv4:127.0.0.1:4711` or `ipv6:%5B::1%5D:4711`."""
    kind, _, address = peer.partition(":")
    host, _, port = unquote(address).rpartition(":")
    return (host.strip("[]"), int(port)) if kind in ("ipv4", "ipv6") and port.isdigit() else None
