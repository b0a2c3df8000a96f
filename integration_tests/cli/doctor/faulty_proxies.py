"""Proxies before a sidecar, each of which does one thing to its streams; as those of the field do."""

import asyncio
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager

import httpx
import uvicorn
from starlette.types import Receive, Scope, Send

STOP_SECONDS = 2.0
_GZIP = 16 + zlib.MAX_WBITS
_PASSED_HEADERS = ("content-type", "accept", "accept-encoding", "authorization")


class Proxy:
    """Passes requests and responses on, as they come. `kind` of the others says what they do besides."""

    def __init__(self, target: str) -> None:
        self._target = target

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(httpx.AsyncClient(base_url=self._target, timeout=30))
            passed = {name: headers[name] for name in _PASSED_HEADERS if name in headers}
            request = client.build_request(scope["method"], scope["path"], content=body, headers=passed)
            response = await self.open(client, request)
            stack.push_async_callback(response.aclose)
            await self.relay(response, send)

    async def open(self, client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
        return await client.send(request, stream=True)

    async def relay(self, response: httpx.Response, send: Send) -> None:
        await self.send_head(response, send)
        async for data in response.aiter_raw():
            await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def send_head(self, response: httpx.Response, send: Send, **more: str) -> None:
        kept = {"content-type": response.headers["content-type"], "server": "nginx/1.22", **more}
        headers = [(name.replace("_", "-").encode(), value.encode()) for name, value in kept.items()]
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})


class BufferingProxy(Proxy):
    """Sends nothing before the response is complete."""

    async def relay(self, response: httpx.Response, send: Send) -> None:
        await response.aread()
        await self.send_head(response, send)
        await send({"type": "http.response.body", "body": response.content})


class CompressingProxy(Proxy):
    """Compresses each piece and sends it at once."""

    async def relay(self, response: httpx.Response, send: Send) -> None:
        compressor = zlib.compressobj(wbits=_GZIP)
        await self.send_head(response, send, content_encoding="gzip")
        async for data in response.aiter_raw():
            piece = compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH)
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": compressor.flush()})


class CuttingProxy(Proxy):
    """Ends responses that are not complete within so many seconds after their head, as at their end.

    The sidecar learns of it later, and counts the request then.
    """

    SECONDS = 0.4
    LATER_SECONDS = 0.2

    async def relay(self, response: httpx.Response, send: Send) -> None:
        await self.send_head(response, send)
        parts = response.aiter_raw()
        loop = asyncio.get_running_loop()
        ends = loop.time() + self.SECONDS
        while True:
            part = asyncio.ensure_future(anext(parts, b""))
            await asyncio.wait({part}, timeout=ends - loop.time())
            if not part.done() or not part.result():
                break
            await send({"type": "http.response.body", "body": part.result(), "more_body": True})
        await send({"type": "http.response.body", "body": b""})
        await asyncio.sleep(self.LATER_SECONDS)
        part.cancel()


class TruncatingProxy(Proxy):
    """Ends responses after their first object, as at their end, once the sidecar has sent all of them."""

    async def relay(self, response: httpx.Response, send: Send) -> None:
        await self.send_head(response, send)
        first, newline, _ = (await response.aread()).partition(b"\n")
        await send({"type": "http.response.body", "body": first + newline})


class RetryingProxy(Proxy):
    """Gives the first response up, and sends the request a second time."""

    async def open(self, client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
        first = await client.send(request, stream=True)
        await first.aread()
        return await client.send(request, stream=True)


class RefusingProxy(Proxy):
    """Has an error page of its own for streams."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 504, "headers": [(b"content-type", b"text/html")]})
        await send({"type": "http.response.body", "body": b"<h1>504 Gateway Time-out</h1>"})


@contextmanager
def running_proxy(kind: Callable[[str], Proxy], target: str) -> Iterator[str]:
    """The URL of a proxy in a thread."""
    config = uvicorn.Config(kind(target), log_config=None, log_level="critical", lifespan="off", server_header=False)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            thread.join(STOP_SECONDS)
