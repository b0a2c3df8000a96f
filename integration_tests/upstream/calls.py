"""Calls of an upstream as tests make them."""

import asyncio
from collections.abc import Callable, Mapping

from integration_tests.support.fake_provider import FakeProvider, json_response

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.rendering.compiled_action import ProviderRequest
from opensearch_ml_stream.plugin.upstream import Upstream, UpstreamResponse

# No call of a test ends by these times.
CONFIG = ClientConfig(connection_timeout=600, read_timeout=600)


def post(url: str, body: bytes = b'{"stream":true}', headers: Mapping[str, str] | None = None) -> ProviderRequest:
    return ProviderRequest("POST", url, {"Content-Type": "application/json", **(headers or {})}, body)


async def read_to_end(response: UpstreamResponse) -> bytes:
    parts = []
    while data := await response.read():
        parts.append(data)
    return b"".join(parts)


async def fetch(upstream: Upstream, url: str, config: ClientConfig = CONFIG) -> tuple[int, bytes]:
    """Status and whole body of one call."""
    async with upstream.open(post(url), config, {}, "connector") as response:
        return response.status, await read_to_end(response)


async def comes_to_rest(upstream: Upstream, value: Callable[[], int]) -> None:
    """Return once a count stays as it is while the loop serves other calls, and would go on if it could."""
    async with FakeProvider(json_response({})) as other:
        before = None
        while before != value():
            before = value()
            for _ in range(20):
                await fetch(upstream, other.url)


class RawServer:
    """A server that writes fixed bytes to whoever connects, without waiting for a request, and then closes its side.

    It reads no more than its buffer holds. To close the other side too would reset the connection, and what the client
    has not read by then would be lost.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._writers: list[asyncio.StreamWriter] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> "RawServer":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for writer in self._writers:
            writer.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(self._data)
        await writer.drain()
        writer.write_eof()
        self._writers.append(writer)
