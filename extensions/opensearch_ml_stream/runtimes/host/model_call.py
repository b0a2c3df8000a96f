"""One call of a model: its task, its credit, its cancellation."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from time import monotonic
from typing import Any, Protocol, TypeAlias

from opensearch_ml_stream.runtimes.frames import INITIAL_CREDIT, MAX_PAYLOAD, Kind
from opensearch_ml_stream.runtimes.host.served_model import ServedModel
from opensearch_ml_stream.runtimes.host.streamed_requests import StreamedRequests
from opensearch_ml_stream.runtimes.interface.wire import MalformedRequest

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

SECONDS_TO_CANCEL = 5.0
SLICE_SECONDS = 0.001  # for which a stream that never waits may hold the event loop

DATA, END, ERROR, READ = (
    int(Kind.DATA),
    int(Kind.END),
    int(Kind.ERROR),
    int(Kind.READ),
)  # plain numbers are packed faster


class Connection(Protocol):
    """What a call needs of the connection that it came over."""

    @property
    def model(self) -> ServedModel:
        """The model that is called."""
        ...

    @property
    def turn(self) -> int:
        """A number that changes when what was sent is written."""
        ...

    @property
    def writable(self) -> asyncio.Event:
        """Set while the worker reads what is written."""
        ...

    def send(self, number: int, kind: int, payload: bytes = b"") -> None:
        """Send a frame, with others."""
        ...

    def flush(self) -> None:
        """Write what was sent."""
        ...

    def ended(self, number: int, call: "Call") -> None:
        """Forget a call."""
        ...


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

    def __init__(self, connection: Connection, number: int) -> None:
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
        """Cancel the model's work; nothing more is sent of it. What goes on for 5 s is cancelled again and left."""
        if not self._cancelled:
            self._cancelled = True
            if self._started:  # a task that is cancelled before its first step would not clear up
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
            if not self._cancelled:  # the model's own, say of a task that it awaited
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

    async def _stream(self, requests: StreamedRequests) -> None:
        connection, model = self._connection, self._connection.model
        identifier, encode, writable = requests.begin(), model.encode, connection.writable
        responses = model.predict_stream(requests)
        turn, since = connection.turn, monotonic()
        try:
            async for response in responses:
                if self._cancelled:  # and the model has kept on
                    return
                self._send_data(encode(response, identifier))
                if self._credit <= 0 or not writable.is_set():
                    await self._may_send()
                elif turn != connection.turn:  # what it sent before has gone: it has waited for something since
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
