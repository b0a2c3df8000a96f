"""A worker's connection: frames in and out, many calls at once."""

import asyncio
from typing import cast

from opensearch_ml_stream.runtimes.frames import CREDIT, HEADER, FrameParser, Kind, MalformedFrame
from opensearch_ml_stream.runtimes.host.model_call import Call
from opensearch_ml_stream.runtimes.host.served_model import ServedModel

HIGH_WATER = 1024 * 1024  # bytes that wait for the worker, above which no stream goes on
FLUSH_AT = 256 * 1024  # bytes that one turn of the event loop may hold back


class WorkerConnection(asyncio.Protocol):
    """Takes a worker's calls; what they send in one turn of the event loop goes out in one write.

    `connections` are those that are open; it adds and discards itself. `turn` counts the writes, `writable` is set
    while streams may go on.
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
        """Take what came: whole frames, or a part of one."""
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

    def ended(self, number: int, call: Call) -> None:
        """Forget a call; what still comes for it is dropped."""
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
        """Write what is held back."""
        self.turn += 1
        self._write()

    def _write(self) -> None:
        parts, self._parts, self._held = self._parts, [], 0
        if parts and self._transport is not None:
            self._transport.write(b"".join(parts))
