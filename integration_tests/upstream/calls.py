"""Calls of an upstream as tests make them."""

import asyncio
from collections.abc import Mapping

from opensearch_ml_stream.connectors.client_config import ClientConfig
from opensearch_ml_stream.connectors.rendering.action import ProviderRequest
from opensearch_ml_stream.plugin.upstream import Upstream, UpstreamResponse

CONFIG = ClientConfig(connection_timeout=10, read_timeout=10)


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


class RawServer:
    """A server that writes fixed bytes to whoever connects, without waiting for a request, and then closes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
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

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(self._data)
        await writer.drain()
        writer.close()
