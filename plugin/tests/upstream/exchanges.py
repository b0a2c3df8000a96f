"""Exchanges over a fake transport."""

import asyncio

from opensearch_ml_stream.plugin.upstream.http1.connection import Connection
from opensearch_ml_stream.plugin.upstream.http1.exchange import Exchange
from tests.upstream.fake_transport import FakeTransport

AUTHORITY = "provider.example:443"
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LENGTH_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
CLOSE_HEAD = b"HTTP/1.1 200 OK\r\n\r\n"
HIGH_WATER_BYTES = 65_536  # unread, above which reading is paused


def new_exchange(read_timeout: float = 30, method: str = "GET") -> tuple[Exchange, FakeTransport]:
    connection = Connection("192.0.2.1")
    transport = FakeTransport(connection)
    connection.connection_made(transport)
    return Exchange(connection, AUTHORITY, read_timeout, method), transport


async def start(received: bytes, read_timeout: float = 30) -> tuple[Exchange, FakeTransport]:
    """An exchange that has received these bytes, the whole head among them; its calls are recorded from here on."""
    exchange, transport = new_exchange(read_timeout)
    task = asyncio.create_task(exchange.start(b"request"))
    await asyncio.sleep(0)
    transport.receive(received)
    await task
    transport.calls.clear()
    return exchange, transport
