"""The provider: responds to any POST with the stream that its prompt plans (stream_plan.py), in its path's form.

    python -m bench.traffic.provider PORT [TLS_PORT CERTIFICATE KEY]

`GET /stats` counts, as JSON, what happened since the last one: streams `started`, `finished` and `disconnected` (by the
client, before their end), `chunks` sent, and `most_chunks_disconnected`, the most sent into one of the latter.

It writes straight to the socket and formats nothing but the marker, so that it can feed every relay on one core. On the
second port it does the same over TLS, a record for each chunk.
"""

import asyncio
import json
import os
import random
import ssl
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import monotonic_ns
from typing import cast

import httptools
import uvloop

from bench.traffic.pacing import Pacer
from bench.traffic.stream_forms import form_of
from bench.traffic.stream_plan import StreamPlan, plan_in


class Counts:
    """What has happened since the last `take`."""

    def __init__(self) -> None:
        self.now: dict[str, int] = dict.fromkeys(
            ("started", "finished", "disconnected", "chunks", "most_chunks_disconnected"), 0
        )

    def take(self) -> dict[str, int]:
        taken, self.now = self.now, dict.fromkeys(self.now, 0)
        return taken


class Conversation(asyncio.Protocol):
    """One connection: reads a request and sends its stream, one after the other."""

    transport: asyncio.Transport

    def __init__(self, counts: Counts, pacer: Pacer) -> None:
        self._counts = counts
        self._pacer = pacer
        self._parser = httptools.HttpRequestParser(self)
        self._body = bytearray()
        self._url = b""
        self._plan: StreamPlan | None = None  # of the stream that runs
        self._is_sending = False  # all of it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is not registered as one
        self.transport.set_write_buffer_limits(0)
        self._is_encrypted = transport.get_extra_info("ssl_object") is not None
        self._fd: int = transport.get_extra_info("socket").fileno()

    def connection_lost(self, error: Exception | None) -> None:
        if self._plan is not None:
            self._plan = None
            now = self._counts.now
            now["disconnected"] += 1
            now["most_chunks_disconnected"] = max(now["most_chunks_disconnected"], self._sent)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._body.clear()
        self._url = b""

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        if self._url == b"/stats":
            body = json.dumps(self._counts.take()).encode()
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            self.transport.write(head + body)
            return
        if self._parser.get_method() == b"GET":  # a router asks for its worker's health
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            return
        plan = plan_in(bytes(self._body))
        if plan is None:
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            return
        self._begin(plan)

    def _begin(self, plan: StreamPlan) -> None:
        self._plan = plan
        self._form = form_of(self._url.decode("latin-1"))
        self._chunks = self._form.chunks(plan.text)
        self._sent = 0
        self._counts.now["started"] += 1
        self._write(self._form.first())
        if not plan.every:
            self._send_all()
            return
        self._every_ns = int(plan.every * 1e9)
        # A phase of its own: streams that start together must not tick together.
        self._pacer.call_at(monotonic_ns() + random.randrange(self._every_ns), self._send_next)

    def resume_writing(self) -> None:
        if self._plan is not None and not self._plan.every:
            self._send_all()

    def _send_all(self) -> None:
        plan = self._plan
        if plan is None or self._is_sending:  # TLS may call resume_writing from within write
            return
        self._is_sending = True
        while self._sent < plan.chunks:
            if self.transport.is_closing() or self.transport.get_write_buffer_size():
                self._is_sending = False
                return  # goes on in resume_writing, if at all
            self._send_chunk(plan)
        self._is_sending = False
        self._finish()

    def _send_next(self, due_ns: int) -> None:
        if self._plan is None or self.transport.is_closing():
            return
        self._send_chunk(self._plan)
        if self._sent < self._plan.chunks:
            self._pacer.call_at(due_ns + self._every_ns, self._send_next)
        else:
            self._finish()

    def _send_chunk(self, plan: StreamPlan) -> None:
        data = self._chunks[self._sent % len(self._chunks)] % (self._sent, monotonic_ns())
        if plan.piece:
            for at in range(0, len(data), plan.piece):
                self._write(data[at : at + plan.piece])
        else:
            self._write(data)
        self._sent += 1
        self._counts.now["chunks"] += 1

    def _finish(self) -> None:
        self._plan = None
        self._counts.now["finished"] += 1
        self._write(self._form.last())

    def _write(self, data: bytes) -> None:
        """Writes straight to the socket; what the kernel does not accept now goes through the transport."""
        if self.transport.is_closing():
            return
        sent = 0
        if not self._is_encrypted and not self.transport.get_write_buffer_size():
            try:
                sent = os.write(self._fd, data)
            except BlockingIOError:
                pass
            except ConnectionError:
                self.transport.abort()
                return
        if sent < len(data):
            self.transport.write(data[sent:])


@asynccontextmanager
async def serving(port: int, tls_port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator[asyncio.Server]:
    """The provider on that port of loopback, and over `tls` on the other; 0 takes a free one."""
    loop = asyncio.get_running_loop()
    counts, pacer = Counts(), Pacer(loop)

    def conversation() -> Conversation:
        return Conversation(counts, pacer)

    servers = [await loop.create_server(conversation, "127.0.0.1", port, backlog=4096)]
    if tls is not None:
        servers.append(await loop.create_server(conversation, "127.0.0.1", tls_port, backlog=4096, ssl=tls))
    try:
        yield servers[0]
    finally:
        for server in servers:
            server.close()
        pacer.close()


async def _serve(port: int, tls_port: int = 0, files: Sequence[str] = ()) -> None:
    tls = None
    if files:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(*files)
    async with serving(port, tls_port, tls) as server:
        await server.serve_forever()


if __name__ == "__main__":
    ports = [int(argument) for argument in sys.argv[1:3]]
    uvloop.run(_serve(ports[0], ports[-1], sys.argv[3:]))
