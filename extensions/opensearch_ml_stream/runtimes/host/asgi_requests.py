"""HTTP requests in frames, answered by an ASGI application of this process."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import quote

from opensearch_ml_stream.runtimes.frames import MAX_PAYLOAD, pack_message, unpack_message

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class UnsendableResponse(Exception):
    """A response that does not fit into one frame."""


async def respond(application: Application, message: bytes) -> bytes:
    """Return the application's response to a request; raises what the application raises."""
    head, body = unpack_message(message)
    response = _Response()
    await application(_scope(head), receiving(body), response.send)
    return response.message()


def receiving(body: bytes) -> Receive:
    """Return an ASGI `receive` with the body; it then waits, since the call is cancelled on disconnect."""
    parts = [body]

    async def receive() -> MutableMapping[str, Any]:
        if not parts:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": parts.pop(), "more_body": False}

    return receive


def _scope(head: dict[str, Any]) -> Scope:
    path: str = head["path"]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": head["method"],
        "scheme": "http",
        "path": path,
        "raw_path": quote(path, errors="surrogatepass").encode(),
        "root_path": "",
        "query_string": head["query"].encode("latin-1"),
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head["headers"]],
        "client": None,
        "server": None,
        "state": {},
    }


class _Response:
    """Collects what an application sends."""

    def __init__(self) -> None:
        self._status: int | None = None
        self._headers: list[tuple[str, str]] = []
        self._parts: list[bytes] = []
        self._size = 0

    async def send(self, message: MutableMapping[str, Any]) -> None:
        """Add a part. UnsendableResponse for a stream, whose length is not known in advance."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]]
        elif message["type"] == "http.response.body":
            if message.get("more_body") and not any(name == "content-length" for name, _ in self._headers):
                raise UnsendableResponse("a custom handler cannot stream its response here; predict_stream() streams")
            part: bytes = message.get("body", b"")
            self._size += len(part)
            if self._size > MAX_PAYLOAD:
                raise UnsendableResponse(f"a custom handler's response of more than {MAX_PAYLOAD} bytes")
            self._parts.append(part)

    def message(self) -> bytes:
        """Return the whole response. UnsendableResponse if there is none."""
        if self._status is None:
            raise UnsendableResponse("a custom handler has sent no response")
        return pack_message({"status": self._status, "headers": self._headers}, b"".join(self._parts))
