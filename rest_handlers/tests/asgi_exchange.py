"""One request to an ASGI application and the messages of its response, in memory.

Unlike httpx's ASGITransport, which returns a response when it is complete, an exchange shows every message at once
and in order, and lets a test disconnect the client or make it slow.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import ASGIApp, Message, Scope

JSON_HEADERS = {"content-type": "application/json"}
SECURITY_HEADERS = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
_LONG = 1000.0  # seconds of a clock that may be virtual


class Exchange:
    """`body` may be the pieces in which the request body comes; if `cut`, the client disconnects within it."""

    def __init__(
        self,
        method: str = "GET",
        target: str = "/",
        body: bytes | list[bytes] = b"",
        headers: Mapping[str, str] | None = None,
        extensions: dict[str, Any] | None = None,
        cut: bool = False,
    ) -> None:
        path, _, query = target.partition("?")
        self.scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()],
            "server": ("sidecar", 80),
        }
        if extensions is not None:
            self.scope["extensions"] = extensions
        self.messages: list[Message] = []
        self.send_times: list[float] = []  # of the event loop, one for each message
        self.writable = asyncio.Event()  # cleared: the client does not read, and `send` waits
        self.writable.set()
        self.body_ended = asyncio.Event()  # set when the last message was sent
        self._incoming: asyncio.Queue[Message] = asyncio.Queue()
        self._sent = asyncio.Event()
        pieces = [body] if isinstance(body, bytes) else body
        for number, piece in enumerate(pieces, 1):
            more = cut or number < len(pieces)
            self.receive_more({"type": "http.request", "body": piece, "more_body": more})
        if cut:
            self.disconnect()

    async def receive(self) -> Message:
        message = await self._incoming.get()
        if message["type"] == "http.disconnect":
            self.disconnect()  # a server says it again to whoever asks again
        return message

    async def send(self, message: Message) -> None:
        await self.writable.wait()
        self.messages.append(message)
        self.send_times.append(asyncio.get_running_loop().time())
        self._sent.set()
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self.body_ended.set()

    def receive_more(self, *messages: Message) -> None:
        """Let the application receive these, too."""
        for message in messages:
            self._incoming.put_nowait(message)

    def disconnect(self) -> None:
        self.receive_more({"type": "http.disconnect"})

    async def until_sent(self, count: int) -> None:
        """Wait until so many messages were sent."""
        async with asyncio.timeout(_LONG):
            while len(self.messages) < count:
                self._sent.clear()
                await self._sent.wait()

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.messages[0]["headers"]}

    @property
    def parts(self) -> list[bytes]:
        """The body of each message after the head."""
        return [message["body"] for message in self.messages[1:]]

    @property
    def body(self) -> bytes:
        return b"".join(self.parts)

    @property
    def complete(self) -> bool:
        """Whether the response has one head, first, and one last message, at its end."""
        types = [message["type"] for message in self.messages]
        last = [not message.get("more_body", False) for message in self.messages[1:]]
        return (
            len(types) > 1
            and types == ["http.response.start"] + ["http.response.body"] * (len(types) - 1)
            and last == [False] * (len(last) - 1) + [True]
        )

    def json(self) -> Any:
        return json.loads(self.body)

    def reason(self) -> str:
        """The reason of OpenSearch's error body."""
        return str(self.json()["error"]["reason"])

    async def run(self, application: ASGIApp) -> "Exchange":
        """Call the application and wait until it returns."""
        async with asyncio.timeout(_LONG):
            await application(self.scope, self.receive, self.send)
        return self

    @asynccontextmanager
    async def running(self, application: ASGIApp) -> AsyncIterator[asyncio.Task["Exchange"]]:
        """Call the application in a task of its own, which must return by itself after the block."""
        task = asyncio.create_task(self.run(application))
        try:
            yield task
            await task
        finally:
            task.cancel()


async def send_request(
    application: ASGIApp,
    method: str,
    target: str,
    body: object = None,
    headers: Mapping[str, str] | None = None,
) -> Exchange:
    """Send one request with a JSON body (bytes are sent as they are), and return the exchange when it is over."""
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    return await Exchange(method, target, data, {**(JSON_HEADERS if data else {}), **(headers or {})}).run(application)
