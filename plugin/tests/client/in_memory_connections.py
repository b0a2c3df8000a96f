"""opensearch-py's four kinds of connection over a server in memory: its sent bytes come in, its responses go out.

Below opensearch-py stand urllib3's pool, requests' adapter and aiohttp's session; these three are the fakes. The
responses of the first two are real urllib3 responses over http.client, parsed from bytes.
"""

import http.client
import io
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from typing import Any, cast

import aiohttp
import requests
import urllib3
from opensearchpy import AIOHttpConnection, AsyncHttpConnection, AsyncOpenSearch, OpenSearch
from opensearchpy.connection import RequestsHttpConnection, Urllib3HttpConnection
from requests.adapters import BaseAdapter

from opensearch_ml_stream.client import Chunk, async_predict_stream, predict_stream

BLOCKING = (Urllib3HttpConnection, RequestsHttpConnection)
ASYNC = (AIOHttpConnection, AsyncHttpConnection)
PARAMETERS = {"inputs": "hi"}


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it would go out; header names in lower case, timeouts in seconds."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    connect_timeout: float | None
    read_timeout: float | None


@dataclass(frozen=True, slots=True)
class Reply:
    """A response; `fault` is raised after the last piece of the body, in place of its end."""

    pieces: tuple[bytes, ...] = ()
    status: int = 200
    content_type: str = "application/x-ndjson"
    chunked: bool = True
    fault: Exception | None = None
    retry_after: str = ""


@dataclass(slots=True)
class InMemoryServer:
    """Gives each request the same reply, or raises it if it is an exception; records what was sent and closed."""

    reply: Reply | Exception
    sent: list[Sent] = field(default_factory=list)
    open_responses: int = 0
    opened_connections: int = 0
    closed_connections: int = 0
    kept: list[object] = field(default_factory=list)  # responses, so that none is closed by the garbage collector

    def connection_class(self, kind: type) -> type:
        """Return a connection class of that kind whose requests come to this server."""
        return _KINDS[kind](self)

    def respond(self, request: Sent) -> Reply:
        self.sent.append(request)
        if isinstance(self.reply, Exception):
            raise self.reply
        self.open_responses += 1
        return self.reply


async def stream(
    server: InMemoryServer,
    kind: type,
    host: str = "http://sidecar:9510",
    call: Mapping[str, Any] | None = None,
    **options: Any,
) -> AsyncGenerator[Chunk]:
    """Stream one prediction over a client with these options, by the blocking or the async function."""
    over = server.connection_class(kind)
    if kind in BLOCKING:
        client = OpenSearch(host, connection_class=over, **options)
        with closing(predict_stream(client, "m1", PARAMETERS, **call or {})) as blocking:
            for chunk in blocking:
                yield chunk
    else:
        async with (
            AsyncOpenSearch(host, connection_class=over, **options) as running,
            aclosing(async_predict_stream(running, "m1", PARAMETERS, **call or {})) as chunks,
        ):
            async for chunk in chunks:
                yield chunk


def _urllib3_connection(server: InMemoryServer) -> type:
    class InMemory(Urllib3HttpConnection):
        def _create_urllib3_pool(self) -> None:
            self.pool: Any = _Pool(server, self.host)
            server.opened_connections += 1

    return InMemory


def _requests_connection(server: InMemoryServer) -> type:
    class InMemory(RequestsHttpConnection):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.session.mount("http://", _Adapter(server))
            server.opened_connections += 1

    return InMemory


def _aiohttp_connection(base: type) -> Callable[[InMemoryServer], type]:
    def connection_class(server: InMemoryServer) -> type:
        async def create_session(self: Any) -> None:
            self.session = _Session(server)
            server.opened_connections += 1

        return type("InMemory", (base,), {"_create_aiohttp_session": create_session})

    return connection_class


_KINDS: dict[type, Callable[[InMemoryServer], type]] = {
    Urllib3HttpConnection: _urllib3_connection,
    RequestsHttpConnection: _requests_connection,
    AsyncHttpConnection: _aiohttp_connection(AsyncHttpConnection),
    AIOHttpConnection: _aiohttp_connection(AIOHttpConnection),
}


@dataclass(slots=True)
class _Pool:
    server: InMemoryServer
    host: str

    def urlopen(self, method: str, path: str, body: bytes, **options: Any) -> urllib3.HTTPResponse:
        # What would send a prompt twice, or to another server.
        assert (options["redirect"], options["retries"].total) == (False, False)
        headers = {name.lower(): value for name, value in options["headers"].items()}
        timeout: urllib3.Timeout = options["timeout"]
        connect, read = cast(float, timeout.connect_timeout), cast(float, timeout.read_timeout)
        return _urllib3_response(self.server, Sent(method, self.host + path, headers, body, connect, read))

    def close(self) -> None:
        self.server.closed_connections += 1


class _Adapter(BaseAdapter):
    def __init__(self, server: InMemoryServer) -> None:
        super().__init__()
        self.server = server

    def send(self, request: requests.PreparedRequest, *_: Any, **options: Any) -> requests.Response:
        headers = {name.lower(): str(value) for name, value in request.headers.items()}
        body = cast(bytes, request.body or b"")
        sent = Sent(str(request.method), str(request.url), headers, body, *options["timeout"])
        response = requests.Response()
        response.raw = _urllib3_response(self.server, sent)
        response.status_code, response.request = response.raw.status, request
        return response

    def close(self) -> None:
        self.server.closed_connections += 1


class _Body(io.RawIOBase):
    def __init__(self, server: InMemoryServer, data: bytes, fault: Exception | None) -> None:
        self._server, self._rest, self._fault = server, data, fault

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = min(len(buffer), len(self._rest))
        if not size and self._fault is not None:
            raise self._fault
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def close(self) -> None:
        if not self.closed:
            self._server.open_responses -= 1
        super().close()


@dataclass(frozen=True, slots=True)
class _Socket:
    file: "io.BufferedReader[_Body]"

    def makefile(self, _mode: str) -> "io.BufferedReader[_Body]":
        return self.file


def _urllib3_response(server: InMemoryServer, sent: Sent) -> urllib3.HTTPResponse:
    reply = server.respond(sent)
    body = b"".join(reply.pieces)
    if reply.chunked:
        framing, body = (
            "Transfer-Encoding: chunked",
            b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in reply.pieces),
        )
        body += b"" if reply.fault else b"0\r\n\r\n"
    else:
        framing = f"Content-Length: {len(body) + (1 if reply.fault else 0)}"
    if reply.retry_after:
        framing += f"\r\nRetry-After: {reply.retry_after}"
    head = f"HTTP/1.1 {reply.status} OK\r\nContent-Type: {reply.content_type}\r\n{framing}\r\n\r\n"
    file = io.BufferedReader(_Body(server, head.encode() + body, reply.fault))
    parsed = http.client.HTTPResponse(cast(Any, _Socket(file)), method=sent.method)
    parsed.begin()
    response = urllib3.HTTPResponse(
        body=parsed,
        headers=urllib3.HTTPHeaderDict(parsed.headers.items()),
        status=parsed.status,
        preload_content=False,
        original_response=parsed,
    )
    server.kept.append(response)
    return response


@dataclass(slots=True)
class _Session:
    server: InMemoryServer

    async def request(
        self, method: str, url: object, *, data: bytes, headers: Mapping[str, str], **options: Any
    ) -> Any:
        assert options["allow_redirects"] is False
        timeout: aiohttp.ClientTimeout = options["timeout"]
        assert timeout.total is None
        lower = {name.lower(): value for name, value in headers.items()}
        sent = Sent(method, str(url), lower, data, timeout.sock_connect, timeout.sock_read)
        return _AsyncResponse(self.server, self.server.respond(sent))

    async def close(self) -> None:
        self.server.closed_connections += 1


class _AsyncResponse:
    def __init__(self, server: InMemoryServer, reply: Reply) -> None:
        self._server, self._reply = server, reply
        self.status = reply.status
        self.headers = {"retry-after": reply.retry_after} if reply.retry_after else {}
        self.content = self

    async def iter_any(self) -> AsyncIterator[bytes]:
        for piece in self._reply.pieces:
            yield piece
        if self._reply.fault is not None:
            raise self._reply.fault

    def close(self) -> None:
        self._server.open_responses -= 1
