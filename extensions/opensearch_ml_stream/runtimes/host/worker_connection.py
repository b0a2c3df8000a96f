"""A worker's connection: frames in and out, many calls at once."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from time import monotonic
from typing import Any, TypeAlias, cast

from opensearch_ml_stream.runtimes.frames import (
    CREDIT,
    HEADER,
    INITIAL_CREDIT,
    MAX_PAYLOAD,
    FrameParser,
    Kind,
    MalformedFrame,
)
from opensearch_ml_stream.runtimes.host.served_model import ServedModel
from opensearch_ml_stream.runtimes.interface.wire import MalformedRequest

HIGH_WATER = 1024 * 1024  # bytes waiting for the worker, above which streams pause
FLUSH_AT = 256 * 1024  # bytes that are held back in one turn of the event loop
Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

SECONDS_TO_CANCEL = 5.0
SLICE_SECONDS = 0.001  # for which a stream that never waits may occupy the event loop

DATA, END, ERROR, READ = (
    int(Kind.DATA),
    int(Kind.END),
    int(Kind.ERROR),
    int(Kind.READ),
)  # plain numbers are packed faster


class WorkerConnection(asyncio.Protocol):
    """Takes a worker's calls; frames of one turn of the event loop are written together.

    `connections` are the open ones; it adds and removes itself. `turn` counts the writes, `writable` is set while the
    worker reads.
    """

    def __init__(self, model: ServedModel, connections: set["WorkerConnection"]) -> None:
        self.model = model
        self.turn = 0
        self.writable = asyncio.Event()
        self.writable.set()
        self._connections = connections
        self._parser = FrameParser()
        self._calls: dict[int, Call] = {}
        self._parts: list[bytes] = []
        self._held = 0
        self._scheduled = False
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(HIGH_WATER)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel all calls: nobody reads their responses."""
        self._transport = None
        self._connections.discard(self)
        self.writable.set()
        self.cancel_calls()

    def cancel_calls(self) -> list["asyncio.Task[None]"]:
        """Cancel every call; return their tasks."""
        return [call.cancel() for call in self._calls.values()]

    def pause_writing(self) -> None:
        """Hold streams: the worker does not read."""
        self.writable.clear()

    def resume_writing(self) -> None:
        """Let streams go on."""
        self.writable.set()

    def data_received(self, data: bytes) -> None:
        """Read whole frames, or a part of one."""
        try:
            for number, kind, payload in self._parser.feed(data):
                self._take(number, kind, payload)
        except MalformedFrame as error:
            self.model.log.say(f"a worker's connection was closed: {error}")
            if self._transport is not None:
                self._transport.abort()

    def _take(self, number: int, kind: int, payload: bytes) -> None:
        call = self._calls.get(number)
        if kind in (Kind.PREDICT, Kind.STREAM, Kind.HANDLE):
            if call is not None:
                raise MalformedFrame(f"Call {number} was begun twice")
            self._begin(number, kind, payload)
        elif kind not in (Kind.INPUT, Kind.INPUT_END, Kind.CREDIT, Kind.CANCEL):
            raise MalformedFrame(f"A frame of the kind {kind}")
        elif call is None:
            pass  # it has ended while the frame was on its way
        elif kind == Kind.CREDIT:
            call.grant(CREDIT.unpack(payload)[0])
        elif kind == Kind.INPUT:
            call.add_request(payload)
        elif kind == Kind.INPUT_END:
            call.end_requests()
        else:
            call.cancel()

    def _begin(self, number: int, kind: int, payload: bytes) -> None:
        call = self._calls[number] = Call(self, number)
        self.model.figures.calls += 1
        self.model.figures.in_flight += 1
        if kind == Kind.STREAM:
            call.stream(payload)
        elif kind == Kind.HANDLE:
            call.handle(payload)
        else:
            call.predict(payload)

    def ended(self, number: int, call: "Call") -> None:
        """Remove a call; frames that still come for it are dropped."""
        if self._calls.get(number) is call:
            del self._calls[number]
            self.model.figures.in_flight -= 1

    def send(self, number: int, kind: int, payload: bytes = b"") -> None:
        """Send a frame, with all others of this turn of the event loop."""
        self._parts += (HEADER.pack(len(payload), number, kind), payload)
        self._held += len(payload)
        if self._held > FLUSH_AT:
            self._write()
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush_scheduled)

    def _flush_scheduled(self) -> None:
        self._scheduled = False
        self.flush()

    def flush(self) -> None:
        """Write the frames that are held back."""
        self.turn += 1
        self._write()

    def _write(self) -> None:
        parts, self._parts, self._held = self._parts, [], 0
        if parts and self._transport is not None:
            self._transport.write(b"".join(parts))


class Call:
    """A call that a worker has begun on a connection, from its first frame to the end of its task."""

    __slots__ = (
        "_cancelled",
        "_connection",
        "_credit",
        "_granted",
        "_number",
        "_overdue",
        "_requests",
        "_started",
        "_task",
    )

    def __init__(self, connection: "WorkerConnection", number: int) -> None:
        self._connection = connection
        self._number = number
        self._credit = INITIAL_CREDIT
        self._granted: asyncio.Future[None] | None = None
        self._started = False
        self._cancelled = False
        self._requests: StreamedRequests | None = None
        self._overdue: asyncio.TimerHandle | None = None

    def predict(self, payload: bytes) -> None:
        """Begin a call with one response."""
        self._begin("predict()", partial(self._predict, payload))

    def stream(self, payload: bytes) -> None:
        """Begin a call with a stream of responses."""
        ask = partial(self._connection.send, self._number, READ)
        self._requests = StreamedRequests(self._connection.model, payload, ask)
        self._begin("predict_stream()", partial(self._stream, self._requests))

    def handle(self, payload: bytes) -> None:
        """Begin a call of a custom handler."""
        self._begin("a custom handler", partial(self._handle, payload))

    def add_request(self, payload: bytes) -> None:
        """Take one more request of a stream."""
        if self._requests is not None:
            self._requests.add(payload)

    def end_requests(self) -> None:
        """No further requests come."""
        if self._requests is not None:
            self._requests.end()

    def grant(self, size: int) -> None:
        """Let `size` more bytes of DATA be sent."""
        self._credit += size
        if self._credit > 0 and self._granted is not None and not self._granted.done():
            self._granted.set_result(None)

    def cancel(self) -> "asyncio.Task[None]":
        """Cancel the model's work; nothing more of it is sent. After 5 s more cancel it again, and give it up."""
        if not self._cancelled:
            self._cancelled = True
            if self._started:  # a task that is cancelled before its first step would not clean up
                self._task.cancel()
            self._overdue = self._task.get_loop().call_later(SECONDS_TO_CANCEL, self._give_up)
        return self._task

    def _give_up(self) -> None:
        self._connection.model.log.say(f"a cancelled call went on for {SECONDS_TO_CANCEL:.0f} s")
        self._task.cancel()
        self._connection.ended(self._number, self)

    def _begin(self, name: str, work: Work) -> None:
        self._task: asyncio.Task[None] = asyncio.get_running_loop().create_task(self._guarded(name, work))

    async def _guarded(self, name: str, work: Work) -> None:
        self._started = True
        try:
            if not self._cancelled:
                await work()
            if not self._cancelled:
                self._connection.send(self._number, END)
        except asyncio.CancelledError as error:
            if not self._cancelled:  # raised in the model, as by a task that it awaited
                self._failed(name, error)
        except Exception as error:  # noqa: BLE001 - a model raises what it likes
            self._failed(name, error)
        except BaseException as error:  # noqa: BLE001 - the process ends by it, but as by any other cause
            self._failed(name, error)
            self._connection.model.end()
        finally:
            if self._overdue is not None:
                self._overdue.cancel()
            self._connection.ended(self._number, self)

    def _failed(self, name: str, error: BaseException) -> None:
        model = self._connection.model
        if not isinstance(error, MalformedRequest):
            model.log.raised(name, error)
        if not self._cancelled:
            model.figures.failures += 1
            self._connection.send(self._number, ERROR, model.error_payload(error))

    async def _predict(self, payload: bytes) -> None:
        model = self._connection.model
        request = model.decode(payload)
        identifier = request.id
        response = await model.predict(request)
        if not self._cancelled:
            self._send_data(model.encode(response, identifier))

    async def _handle(self, payload: bytes) -> None:
        response = await self._connection.model.handle(payload)
        if not self._cancelled:
            self._send_data(response)

    async def _stream(self, requests: "StreamedRequests") -> None:
        connection, model = self._connection, self._connection.model
        identifier, encode, writable = requests.begin(), model.encode, connection.writable
        responses = model.predict_stream(requests)
        turn, since = connection.turn, monotonic()
        try:
            async for response in responses:
                if self._cancelled:  # the model has ignored it
                    return
                self._send_data(encode(response, identifier))
                if self._credit <= 0 or not writable.is_set():
                    await self._may_send()
                elif turn != connection.turn:  # earlier frames were written: the stream has waited since
                    turn, since = connection.turn, monotonic()
                elif monotonic() - since >= SLICE_SECONDS:
                    connection.flush()
                    await asyncio.sleep(0)
                    turn, since = connection.turn, monotonic()
        finally:
            close = getattr(responses, "aclose", None)
            if close is not None:
                await close()

    def _send_data(self, payload: bytes) -> None:
        if len(payload) > MAX_PAYLOAD:
            raise ValueError(f"A response of {len(payload)} bytes; {MAX_PAYLOAD} are allowed")
        self._credit -= len(payload)
        self._connection.send(self._number, DATA, payload)

    async def _may_send(self) -> None:
        """Wait until there is credit, and room in the connection."""
        while self._credit <= 0:
            self._granted = asyncio.get_running_loop().create_future()
            await self._granted
        await self._connection.writable.wait()


class StreamedRequests:
    """The requests of one stream as an async iterator: the first at once, the others as they come.

    `ask` is called for each further request that is waited for. All have the identifier of the first, as in MLServer.
    The iteration raises MalformedRequest for a malformed request.
    """

    def __init__(self, model: ServedModel, payload: bytes, ask: Callable[[], None]) -> None:
        self._model = model
        self._first: Any = None
        self._identifier: str | None = None
        self._payloads = deque([payload])
        self._ask = ask
        self._has_asked = False
        self._ended = False
        self._changed: asyncio.Future[None] | None = None

    def begin(self) -> str:
        """Decode the first request and return its identifier. MalformedRequest if it is none."""
        self._first = self._model.decode(self._payloads.popleft())
        identifier: str = self._first.id
        self._identifier = identifier
        return identifier

    def add(self, payload: bytes) -> None:
        """Add a request."""
        self._payloads.append(payload)
        self._has_asked = False
        self._wake()

    def end(self) -> None:
        """End the iteration after the requests that have come."""
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    def __aiter__(self) -> "StreamedRequests":
        return self

    async def __anext__(self) -> Any:
        if self._first is not None:
            request, self._first = self._first, None
            return request
        while not self._payloads:
            if self._ended:
                raise StopAsyncIteration
            if not self._has_asked:
                self._has_asked = True
                self._ask()
            self._changed = asyncio.get_running_loop().create_future()
            await self._changed
        return self._model.decode(self._payloads.popleft(), self._identifier)

    async def aclose(self) -> None:
        """End the iteration, like that of MLServer's async generator."""
        self._first = None
        self._payloads.clear()
        self.end()
