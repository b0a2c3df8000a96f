"""A provider on loopback that plays a script of bytes and pauses, and notices at once when the client disconnects.

    async with FakeProvider(openai_stream(["Hel", "lo"], pause=0.01)) as provider:
        ...                                 # call provider.url + "/v1/chat/completions"
        provider.requests[0].json()         # what arrived
        await provider.disconnected.wait()  # the client disconnected before the script was over

A script may also be made for each request: `FakeProvider(lambda request: json_answer({"path": request.path}))`.
"""

import asyncio
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from types import TracebackType
from typing import Any


class Act(Enum):
    """What a script can do besides sending bytes and pausing."""

    CLOSE = "close the connection in order"
    RESET = "break the connection off, which may overtake the bytes before"
    HALF_CLOSE = "say that nothing more comes, and go on listening"
    WAIT = "stay silent until the client disconnects"


class Gate:
    """A step at which a script waits until the test, in whatever thread, opens the gate."""

    def __init__(self) -> None:
        self._opened = threading.Event()

    @property
    def is_open(self) -> bool:
        return self._opened.is_set()

    def open(self) -> None:
        self._opened.set()


Step = bytes | float | Act | Gate  # bytes to send, seconds to pause
Script = Sequence[Step]


GATE_POLL_SECONDS = 0.002


@dataclass(frozen=True, slots=True)
class Request:
    """What arrived. Header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int

    def json(self) -> Any:
        return json.loads(self.body)


class FakeProvider:
    """Responds to every request with its script; keeps connections open between requests unless the script closes."""

    def __init__(self, script: Script | Callable[[Request], Script], tls: ssl.SSLContext | None = None) -> None:
        self._script = script
        self._tls = tls
        self._listener: socket.socket | None = None
        self._conversations: set[asyncio.Task[None]] = set()
        self.requests: list[Request] = []
        self.connections = 0
        self.open_connections = 0
        self.called = asyncio.Event()  # the first request has come
        self.played = 0  # scripts to their end
        self.disconnected = asyncio.Event()
        self.disconnected_at = 0.0  # loop time at which a client disconnected in the middle of a script
        self.disconnects = 0
        self.port = 0

    @property
    def url(self) -> str:
        scheme, host = ("http", "127.0.0.1") if self._tls is None else ("https", "localhost")
        return f"{scheme}://{host}:{self.port}"

    async def __aenter__(self) -> "FakeProvider":
        # It accepts by itself, to know of each connection: one that asyncio accepts as its server is closed is lost.
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]
        asyncio.get_running_loop().add_reader(self._listener, self._accept, self._listener)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:  # else the test has closed the provider itself
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()
        for conversation in tuple(self._conversations):
            conversation.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):  # the client has gone already
            return
        self.connections += 1
        self.open_connections += 1
        task = asyncio.create_task(self._serve(connection, self.connections))
        self._conversations.add(task)
        task.add_done_callback(partial(self._over, connection))

    def _over(self, connection: socket.socket, task: asyncio.Task[None]) -> None:
        """Close a connection, also that of a task that was cancelled before it began."""
        self.open_connections -= 1
        self._conversations.discard(task)
        connection.close()

    async def _serve(self, connection: socket.socket, number: int) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(2**24)
        protocol = asyncio.StreamReaderProtocol(reader)
        # The client disconnected, or the test is over.
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection, ssl=self._tls)
            writer = asyncio.StreamWriter(transport, protocol, reader, loop)
            try:
                await self._converse(reader, writer, number)
            finally:
                transport.abort()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        first = b""
        while True:
            request = await _read_request(reader, first, number)
            self.requests.append(request)
            self.called.set()
            script = self._script(request) if callable(self._script) else self._script
            # Whatever can be read now is the next request, or the end: the client has disconnected.
            coming = asyncio.create_task(reader.read(1))
            try:
                if not await self._play(script, writer, coming):
                    return
                first = await coming
            finally:
                coming.cancel()
            if not first:
                return

    async def _play(self, script: Script, writer: asyncio.StreamWriter, coming: asyncio.Task[bytes]) -> bool:
        """Whether the conversation goes on."""
        for step in script:
            if coming.done():
                self._note_disconnect()
                return False
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
            elif isinstance(step, Act):
                if not await self._act(step, writer, coming):
                    return False
            elif not await (self._pass(step, coming) if isinstance(step, Gate) else self._pause(step, coming)):
                return False
        self.played += 1
        return True

    async def _pass(self, gate: Gate, coming: asyncio.Task[bytes]) -> bool:
        while not gate.is_open:
            if not await self._pause(GATE_POLL_SECONDS, coming):
                return False
        return True

    async def _pause(self, seconds: float, coming: asyncio.Task[bytes]) -> bool:
        if (await asyncio.wait((coming,), timeout=seconds))[0]:
            self._note_disconnect()
            return False
        return True

    async def _act(self, act: Act, writer: asyncio.StreamWriter, coming: asyncio.Task[bytes]) -> bool:
        if act is Act.HALF_CLOSE:
            writer.write_eof()
            return True
        if act is Act.WAIT:
            await asyncio.wait((coming,))
            self._note_disconnect()
        elif act is Act.CLOSE:
            writer.close()
            await writer.wait_closed()
        else:
            # Without lingering the kernel sends a reset, not an orderly end.
            plug = writer.get_extra_info("socket")
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        return False

    def _note_disconnect(self) -> None:
        self.disconnects += 1
        self.disconnected_at = asyncio.get_running_loop().time()
        self.disconnected.set()


async def _read_request(reader: asyncio.StreamReader, first: bytes, number: int) -> Request:
    head = first + await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    method, path, _ = lines[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, body, number)


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK = b"0\r\n\r\n"


def head(status: int = 200, **headers: str) -> bytes:
    """A response head; `content_type="x"` becomes `Content-Type: x`."""
    lines = [
        f"HTTP/1.1 {status} Scripted",
        *(f"{name.replace('_', '-').title()}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "\r\n"]).encode()


def json_response(value: object, status: int = 200, **headers: str) -> list[Step]:
    """One whole JSON response with its length."""
    body = json.dumps(value).encode()
    return [head(status, content_type="application/json", content_length=str(len(body)), **headers) + body]


def chunked_stream(pieces: Iterable[bytes], pause: float = 0, content_type: str = "text/event-stream") -> list[Step]:
    """A chunked response, each piece a chunk and a write of its own, `pause` seconds before each."""
    script: list[Step] = [head(content_type=content_type, transfer_encoding="chunked")]
    for piece in pieces:
        if pause:
            script.append(pause)
        script.append(chunk(piece))
    return [*script, LAST_CHUNK]


def sse_event(value: Any, event: str | None = None) -> bytes:
    name = b"" if event is None else f"event: {event}\n".encode()
    return name + b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


# The head of a stream whose events follow as chunks.
SSE_HEAD = head(content_type="text/event-stream", transfer_encoding="chunked")


def openai_delta(text: str) -> bytes:
    """The event of an OpenAI chat stream that adds `text`."""
    return sse_event({"choices": [{"index": 0, "delta": {"content": text}}]})


def openai_stream(texts: Sequence[str], pause: float = 0, model: str = "gpt-fake") -> list[Step]:
    """OpenAI chat completions with a usage chunk and `[DONE]`."""

    def event(choices: list[dict[str, Any]], **more: Any) -> bytes:
        frame = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
        return sse_event({**frame, "choices": choices, **more})

    def choice(delta: dict[str, Any], finish: str | None = None) -> list[dict[str, Any]]:
        return [{"index": 0, "delta": delta, "finish_reason": finish}]

    usage = {"prompt_tokens": 5, "completion_tokens": len(texts), "total_tokens": 5 + len(texts)}
    pieces = [event(choice({"role": "assistant", "content": ""}))]
    pieces += [event(choice({"content": text})) for text in texts]
    pieces += [event(choice({}, "stop")), event([], usage=usage), b"data: [DONE]\n\n"]
    return chunked_stream(pieces, pause)


def anthropic_stream(texts: Sequence[str], pause: float = 0, model: str = "claude-fake") -> list[Step]:
    """Anthropic messages: message_start to message_stop."""
    message: dict[str, Any] = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 5, "output_tokens": 1},
    }  # fmt: skip
    block = {"type": "text", "text": ""}
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}} for text in texts),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": len(texts)}},
        {"type": "message_stop"},
    ]
    return chunked_stream([sse_event(event, event["type"]) for event in events], pause)
