"""The provider of whole responses: chat completions, and the embeddings of a request's documents.

    python -m bench.traffic.whole_provider PORT

A request whose bytes are those of one before gets that one's response without being parsed, so that the provider takes
little of the core that it shares with the load. Any GET gets 200: routers ask for their worker's health. `GET /calls`
gets the number of POSTs so far.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import httptools
import orjson
import uvloop

from bench.traffic.whole_bodies import chat_response, embeddings_response

_MOST_KNOWN = 256  # requests with an id of their own are all different
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


class Responses:
    """Ready responses, heads included, by what is asked; and by the bytes of whole requests."""

    def __init__(self) -> None:
        self.known: dict[bytes, bytes] = {}
        self.calls = 0
        self._chat = _with_head(chat_response())
        self._models = _with_head(b'{"object":"list","data":[{"id":"bench","object":"model"}]}')

    def to(self, method: bytes, path: bytes, body: bytes) -> bytes:
        if path == b"/calls":
            return _with_head(b"%d" % self.calls)
        if method == b"GET":
            return self._models
        self.calls += 1
        if not path.endswith(b"/embeddings"):
            return self._chat
        texts = orjson.loads(body)["input"]
        return _with_head(embeddings_response(texts if isinstance(texts, list) else [texts]))

    def remember(self, request: bytes, response: bytes) -> None:
        if len(self.known) >= _MOST_KNOWN:
            self.known.clear()
        self.known[request] = response


def _with_head(body: bytes) -> bytes:
    return _HEAD % len(body) + body


class Conversation(asyncio.Protocol):
    """One connection: a response to each request, when it is whole."""

    transport: asyncio.Transport

    def __init__(self, responses: Responses) -> None:
        self._responses = responses
        self._parser = httptools.HttpRequestParser(self)
        self._between = True  # no request has begun
        self._path, self._body = b"", b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        between = self._between
        if between and (known := self._responses.known.get(data)) is not None:
            self._responses.calls += 1
            self.transport.write(known)
            return
        self._response = b""
        self._parser.feed_data(data)
        if between and self._response and self._between:  # it came whole, and alone
            self._responses.remember(data, self._response)

    def on_message_begin(self) -> None:
        self._between = False
        self._path, self._body = b"", b""

    def on_url(self, url: bytes) -> None:
        self._path += url

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self._between = True
        method = self._parser.get_method()
        response = self._responses.to(method, self._path, self._body)
        self.transport.write(response)
        self._response = response if method == b"POST" else b""


@asynccontextmanager
async def serving(port: int) -> AsyncIterator[asyncio.Server]:
    """The provider on that port of loopback; 0 takes a free one."""
    responses = Responses()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Conversation(responses), "127.0.0.1", port, backlog=4096)
    try:
        yield server
    finally:
        server.close()


async def _serve(port: int) -> None:
    async with serving(port) as server:
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
