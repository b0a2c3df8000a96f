"""A worker's connection to one process of a runtime: all its calls, over one Unix socket."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import cast

from opensearch_ml_stream.extensions.runtimes.service import runtime_errors
from opensearch_ml_stream.extensions.runtimes.service.runtime_response import RuntimeResponse
from opensearch_ml_stream.runtimes.frames import FrameParser, Kind, MalformedFrame, frame

_LAST_NUMBER = 2**32 - 1  # that a call may have

# As plain integers: comparing members of an IntEnum costs several times as much, and this is done for each frame.
_DATA, _END, _ERROR, _READ = int(Kind.DATA), int(Kind.END), int(Kind.ERROR), int(Kind.READ)


class RuntimeConnection(asyncio.Protocol):
    """The worker's side of a connection. Frames of one turn of the loop are written together.

    `on_lost` is called when the connection has ended, after its calls have failed. `is_unloaded` returns whether the
    model was unloaded.
    """

    __slots__ = (
        "_calls", "_is_unloaded", "_last_number", "_loop", "_model", "_on_lost", "_outgoing", "_parser", "_transport",
        "is_usable",
    )  # fmt: skip

    def __init__(
        self, model: str, on_lost: Callable[["RuntimeConnection"], None], is_unloaded: Callable[[], bool]
    ) -> None:
        self._model = model
        self._is_unloaded = is_unloaded
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._parser = FrameParser()
        self._calls: dict[int, RuntimeResponse] = {}
        self._last_number = 0
        self._outgoing: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self.is_usable = False  # for further calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)
        self.is_usable = True

    def begin(self, kind: Kind, request: bytes, asked: Callable[[], None] | None = None) -> tuple[int, RuntimeResponse]:
        """Send a request, and return the number of the call and its response.

        A stream has one request, unless `asked` is given, which is called when the model waits for another one; the
        response's `send_request` sends that. Throttled if the process has left too many bytes unread, also of calls
        whose clients have disconnected.
        """
        unread = 0 if self._transport is None else self._transport.get_write_buffer_size()
        if unread > runtime_errors.MAX_UNREAD:
            raise runtime_errors.not_taken(self._model, unread)
        is_stream = kind is Kind.STREAM
        number = self._last_number = self._last_number + 1
        self.is_usable = number < _LAST_NUMBER
        response = RuntimeResponse(self._model, partial(self.send, number), is_stream=is_stream, asked=asked)
        self._calls[number] = response
        self.send(number, kind, request)
        if is_stream and asked is None:
            self.send(number, Kind.INPUT_END, b"")
        return number, response

    def leave(self, number: int) -> None:
        """Release a call; cancel it if it is not over. Frames that still come for it are dropped."""
        response = self._calls.pop(number, None)
        if response is not None:
            response.stop()
            if not response.is_over:
                self.send(number, Kind.CANCEL, b"")
        if not self._calls and self._last_number == _LAST_NUMBER and self._transport is not None:
            self._transport.close()

    def send(self, number: int, kind: Kind, payload: bytes) -> None:
        """Send a frame, together with all others of this turn of the loop."""
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(frame(number, kind, payload))

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Deliver to each call all that has come for it."""
        calls = self._calls
        reached: list[RuntimeResponse] = []
        problem: str | None = None
        try:
            for number, kind, payload in self._parser.feed(data):
                response = calls.get(number)
                if response is None:
                    self._check_dropped(number, kind)
                    continue
                if kind == _READ:
                    response.ask()
                    continue
                if not response.arrived:
                    reached.append(response)
                if kind == _DATA:
                    response.arrived.append(payload)
                else:
                    self._end(number, response, kind, payload)
        except MalformedFrame as error:
            problem = str(error)
        for response in reached:
            response.deliver()
        if problem is not None:
            self._fail(problem)

    def connection_lost(self, error: Exception | None) -> None:
        """Fail all calls."""
        self.is_usable = False
        calls, self._calls = self._calls, {}
        is_unloaded = bool(calls) and self._is_unloaded()
        for response in calls.values():
            response.lose(is_unloaded=is_unloaded)
        self._on_lost(self)

    def _end(self, number: int, response: RuntimeResponse, kind: int, payload: bytes) -> None:
        if kind == _END:
            response.end()
        elif kind == _ERROR:
            response.raise_later(payload)
        else:
            raise MalformedFrame(f"A frame of kind {kind}")
        del self._calls[number]

    def _check_dropped(self, number: int, kind: int) -> None:
        if not 0 < number <= self._last_number or kind not in (_DATA, _END, _ERROR, _READ):
            raise MalformedFrame(f"A frame of kind {kind} for a call that was not made")

    def _fail(self, problem: str) -> None:
        self.is_usable = False
        calls, self._calls = self._calls, {}
        for response in calls.values():
            response.break_off(runtime_errors.malformed(self._model, problem))
        self.abort()

    def _flush(self) -> None:
        outgoing, self._outgoing = self._outgoing, []
        if self._transport is not None and not self._transport.is_closing():
            self._transport.writelines(outgoing)
