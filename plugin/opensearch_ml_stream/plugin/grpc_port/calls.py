"""Calls of the gRPC port, from their metadata to their status.

A caller is checked before a message is read, calls in flight are counted, errors become statuses, each call is logged.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, cast
from urllib.parse import unquote

import grpc
import grpc.aio
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from opensearch_ml_stream.connectors.errors import Internal, InvalidRequest, MLStreamError, RequestTimeout, Unavailable
from opensearch_ml_stream.plugin.grpc_port.statuses import StatusCodes, details, error_metadata, status_code
from opensearch_ml_stream.plugin.logs.request_log import RequestLog
from opensearch_ml_stream.rest_handlers.callers import ANYONE, Caller, Gate
from opensearch_ml_stream.rest_handlers.http.asgi_extensions import RequestNotes
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.host_and_origin import Headers
from opensearch_ml_stream.rest_handlers.http.requests import foreign_id
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses

STOPPING = "The server is stopping; send the request again"

_END = cast(Any, grpc.aio).EOF  # what `read` returns after a client's last message
_CANCELLED_BY_THEN = 0.01  # seconds: at first, a cancelled or late call looks as if the client had sent all messages


class Call:
    """A call of a client. It is a request for the request log, and a response in flight while it is worked on.

    `scope` has the form of ASGI's, for the gate: the metadata are its headers.
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
        self._further = BodyReservation(in_flight.bodies)  # of a message that is read while responses are sent
        self._interrupted_by: MLStreamError | None = None
        self._task = asyncio.current_task()

    async def first_message(self) -> bytes | None:
        """Return the client's first message, None if there is none; RequestTimeout if it does not come in time."""
        try:
            async with asyncio.timeout(self._first_seconds):
                return await self.next_message()
        except TimeoutError:
            text = f"The request's message is not complete after {self._first_seconds:g} seconds"
            raise RequestTimeout(text) from None

    async def next_message(self) -> bytes | None:
        """Return the client's next message, None after its last.

        While it waits, the call is not in flight, so that a stop of the server ends it at once. Throttled if there are
        too many messages or responses in flight.
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
        """Return the client's next message while responses are sent, None after its last; the call stays in flight.

        The model must be done with the message before. Throttled as `next_message`.
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
        """Reserve memory for the parsed message, in bytes; Throttled as `next_message`."""
        self._reservation.cover(size)

    def wait(self) -> None:
        """Take the call out of flight, since it waits for something that may never come; a stop ends it at once."""
        self._reservation.release()
        self._in_flight.remove(self)
        self._waiting.add(self)

    def let_go(self) -> None:
        """Release the memory reserved for the message, which has been passed on."""
        self._reservation.release()

    async def write(self, message: bytes) -> None:
        """Send a message; returns when the client accepts another."""
        if not self.first_byte:
            self.first_byte = monotonic()
        await self._context.write(message)

    def set_trailing_metadata(self, headers: Headers) -> None:
        """Send headers as metadata after the last message."""
        said = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
        self._context.set_trailing_metadata((*self._own_metadata(), *said))

    def interrupt(self, reason: MLStreamError) -> None:
        """End the call with an error."""
        if self._interrupted_by is None and self._task is not None and not self.ended:
            self._interrupted_by = reason
            self._task.cancel()

    def take_interruption(self) -> MLStreamError | None:
        """Return the error with which the server cancelled the call, None if the client did."""
        if self._interrupted_by is not None and self._task is not None:
            self._task.uncancel()
        return self._interrupted_by

    def succeed(self) -> None:
        """Mark the response as complete."""
        self.status = 200
        self.ended = True

    async def fail(self, error: MLStreamError) -> None:
        """End the call with the error's status. Raises grpc's AbortError, which must reach grpc."""
        # grpc keeps the error that aborts a call, which refers to this one. With its traceback, the frames and the
        # message in them would stay until the next full garbage collection.
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
        except grpc.aio.BaseError:  # the client has disconnected
            self.disconnected = True
            raise asyncio.CancelledError from None

    def close(self) -> None:
        """Release everything that the call has reserved."""
        self._reservation.release()
        self._further.release()
        self._in_flight.remove(self)
        self._waiting.discard(self)

    def _own_metadata(self) -> tuple[tuple[str, str], ...]:
        return (("x-request-id", self.notes.id),)


UnaryWork = Callable[[Call, Caller, bytes], Awaitable[bytes]]
"""Returns the response to a request; both are serialized messages."""

StreamWork = Callable[[Call, Caller], Awaitable[None]]
"""Reads a call's messages and writes its responses."""

Handler = Any
"""A method's `grpc.RpcMethodHandler`, which is generic in the type stubs only."""


Ready = Callable[[], Awaitable[bool]]
"""Returns whether the server is ready, as `/_health/ready` does."""


class CallHandlers:
    """Makes the handlers that grpc calls, from functions that do the work of methods.

    All are declared to grpc as methods with a stream of requests, which are the same on the wire. So a caller can be
    checked before the message is read. `request_seconds` is the time for the first message.
    """

    def __init__(self, gate: Gate, in_flight: InFlightResponses, log: RequestLog, request_seconds: float) -> None:
        self._gate = gate
        self._in_flight = in_flight
        self._log = log
        self._request_seconds = request_seconds
        self._waiting: set[Call] = set()
        self._is_stopping = False

    def unary(self, path: str, work: UnaryWork, *actions: str, is_open: bool = False) -> Handler:
        """Return the handler of a method with one request and one response. Anyone may call it if it `is_open`."""

        async def handle(requests: object, context: Any) -> bytes:
            response = b""

            async def respond(call: Call, caller: Caller) -> None:
                nonlocal response
                request = await call.first_message()
                if request is None:
                    raise InvalidRequest("The call has no request: it must send a message, which may be empty")
                response = await work(call, caller, request)

            await self._run(path, context, respond, actions, is_open=is_open)
            return response

        return grpc.stream_unary_rpc_method_handler(handle)

    def stream(
        self, path: str, work: StreamWork, *actions: str, is_open: bool = False, code: StatusCodes = status_code
    ) -> Handler:
        """Return the handler of a method with a stream of responses. Anyone may call it if it `is_open`."""

        async def handle(requests: object, context: Any) -> None:
            await self._run(path, context, work, actions, is_open=is_open, code=code)

        return grpc.stream_stream_rpc_method_handler(handle)

    def stop(self) -> None:
        """End the calls that wait for their client, and accept no more."""
        self._is_stopping = True
        for call in tuple(self._waiting):
            call.interrupt(stopping())

    async def _run(
        self,
        path: str,
        context: Any,
        work: StreamWork,
        actions: tuple[str, ...],
        *,
        is_open: bool = False,
        code: StatusCodes = status_code,
    ) -> None:
        call = Call(path, context, self._in_flight, self._waiting, self._request_seconds, code)
        call.notes.id = foreign_id(call.scope) or next(self._log.ids)
        try:
            try:
                if self._is_stopping:
                    raise stopping()
                caller = ANYONE if is_open else await self._gate.admit(call.scope, *actions)
                await work(call, caller)
            except MLStreamError as error:
                await call.fail(error)
            except asyncio.CancelledError:
                interruption = call.take_interruption()
                if interruption is None:
                    call.disconnected = True
                    raise
                await call.fail(interruption)
            except grpc.aio.BaseError:  # of a read or write: the client has disconnected
                call.disconnected = True
                raise asyncio.CancelledError from None
            except (GeneratorExit, KeyboardInterrupt):
                raise
            except BaseException:  # noqa: BLE001 - it is logged, and the client gets an error
                self._log.exception(call, "internal error")
                await call.fail(Internal("Internal error; the server's log says more", type="exception"))
            else:
                call.succeed()
        finally:
            call.close()
            self._log.ended(call)


@dataclass(frozen=True, slots=True)
class GrpcService:
    """A service. `files` are its descriptors for reflection, `handlers` returns the handler of each method by name."""

    name: str
    files: Sequence[FileDescriptorProto]
    handlers: Callable[[CallHandlers, Ready], dict[str, Handler]]


def stopping() -> Unavailable:
    """Return the error for calls that arrive or wait while the server stops."""
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
