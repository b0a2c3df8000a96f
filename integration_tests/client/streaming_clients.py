"""opensearch-py's four kinds of connection behind one interface."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from opensearchpy import AIOHttpConnection, AsyncHttpConnection, AsyncOpenSearch, OpenSearch
from opensearchpy.connection import RequestsHttpConnection, Urllib3HttpConnection

from opensearch_ml_stream.client import Chunk, async_predict_stream, predict_stream

CONNECTIONS = [Urllib3HttpConnection, RequestsHttpConnection, AsyncHttpConnection, AIOHttpConnection]
PARAMETERS = {"inputs": "hi"}


class Streaming:
    """A streamed prediction over a connection of one kind."""

    def __init__(self, connection_class: Any) -> None:
        self.connection_class = connection_class
        self.is_async = connection_class in (AsyncHttpConnection, AIOHttpConnection)

    async def collect(self, host: str, each: Callable[[Chunk], object] = lambda _: None, **options: Any) -> list[Chunk]:
        """All chunks; `each` may return True to end the loop."""
        call = {name: options.pop(name) for name in ("url", "api_key", "idle_timeout") if name in options}
        asked = (options.pop("model_id", "m1"), options.pop("parameters", PARAMETERS))
        if self.is_async:
            async with self._async_client(host, **options) as client:
                received = []
                async for chunk in async_predict_stream(client, *asked, **call):
                    received.append(chunk)
                    if each(chunk):
                        break
                return received
        with self._client(host, **options) as client:
            return _until(predict_stream(client, *asked, **call), each)

    @contextmanager
    def _client(self, host: str, **options: Any) -> Iterator[OpenSearch]:
        client = OpenSearch(host, connection_class=self.connection_class, **options)
        yield client
        client.close()

    @asynccontextmanager
    async def _async_client(self, host: str, **options: Any) -> AsyncIterator[AsyncOpenSearch]:
        async with AsyncOpenSearch(host, connection_class=self.connection_class, **options) as client:
            yield client


def _until(chunks: Iterable[Chunk], each: Callable[[Chunk], object]) -> list[Chunk]:
    received = []
    for chunk in chunks:
        received.append(chunk)
        if each(chunk):
            break
    return received
