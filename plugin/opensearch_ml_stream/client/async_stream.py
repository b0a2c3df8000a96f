"""Streams through an async client: `opensearchpy.AsyncOpenSearch` over aiohttp."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import yarl
from opensearchpy import AIOHttpConnection, AsyncHttpConnection, AsyncOpenSearch
from opensearchpy.exceptions import ConnectionError, ConnectionTimeout, ImproperlyConfigured, SSLError

from opensearch_ml_stream.client.response_chunks import Chunk, ChunkReader, StreamError, cut_short
from opensearch_ml_stream.client.stream_request import (
    IDLE_SECONDS,
    STREAM_HEADERS,
    connection_options,
    http_error,
    predict_body,
    predict_path,
)


async def async_predict_stream(
    client: AsyncOpenSearch,
    model_id: str,
    parameters: Mapping[str, Any],
    *,
    url: str | None = None,
    idle_timeout: float = IDLE_SECONDS,
) -> AsyncGenerator[Chunk]:
    """As predict_stream. Where the generator is kept, stop early with `aclose()` (or contextlib.aclosing)."""
    reader = ChunkReader()
    body = predict_body(parameters)
    async with (
        _connection_to(client, url) as connection,
        _open(connection, predict_path(model_id, stream=True), body, idle_timeout) as response,
    ):
        try:
            async for data in _pieces(response):
                for chunk in reader.feed(data):
                    yield chunk
            for chunk in reader.close():
                yield chunk
        except StreamError:
            if not reader.ended:
                raise


@asynccontextmanager
async def _connection_to(client: AsyncOpenSearch, url: str | None) -> AsyncIterator[Any]:
    """The client's own connection, or one of the same kind to `url` that is closed at the end."""
    transport: Any = client.transport
    await transport._async_call()
    if url is None:
        yield transport.get_connection()
        return
    connection = transport.connection_class(**connection_options(transport, url))
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def _open(connection: Any, path: str, body: bytes, idle: float) -> AsyncIterator[aiohttp.ClientResponse]:
    """The answer whose head has come; opensearch-py's exception if there is none or its status is an error."""
    if not isinstance(connection, AIOHttpConnection | AsyncHttpConnection):
        raise ImproperlyConfigured(
            f"Streams need AsyncHttpConnection or AIOHttpConnection, not {type(connection).__name__}"
        )
    response = await _send(connection, path, body, idle)
    try:
        if response.status >= 300:
            said = b"".join([data async for data in _pieces(response)])
            raise http_error(response.status, said, response.headers.get("content-type", ""))
        yield response
    finally:
        # Closes the connection, unless the whole answer was read: then it is back in the client's pool already.
        response.close()


async def _send(connection: Any, path: str, body: bytes, idle: float) -> aiohttp.ClientResponse:
    if connection.session is None:
        await connection._create_aiohttp_session()
    url = connection.host + connection.url_prefix + path
    headers = {**connection.headers, **STREAM_HEADERS}
    signer = connection._http_auth
    # A login stands in the headers already (AIOHttpConnection), or is an object of aiohttp's (AsyncHttpConnection).
    if isinstance(signer, aiohttp.BasicAuth):
        headers["authorization"] = signer.encode()
    elif callable(signer):
        headers |= signer(method="POST", url=url, body=body, headers=headers)
    try:
        response: aiohttp.ClientResponse = await connection.session.post(
            yarl.URL(url, encoded=True),
            data=body,
            headers=headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connection.timeout, sock_read=idle),
            **({"ssl": fingerprint} if (fingerprint := _fingerprint(connection)) else {}),
        )
    except (aiohttp.ClientSSLError, aiohttp.ServerFingerprintMismatch) as error:
        raise SSLError("N/A", str(error), error) from error
    except TimeoutError as error:
        raise ConnectionTimeout("TIMEOUT", str(error), error) from error
    except aiohttp.ClientError as error:
        raise ConnectionError("N/A", str(error), error) from error
    return response


def _fingerprint(connection: Any) -> aiohttp.Fingerprint | None:
    text = connection.ssl_assert_fingerprint
    return aiohttp.Fingerprint(bytes.fromhex(text.replace(":", ""))) if text else None


async def _pieces(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for data in response.content.iter_any():
            yield data
    except TimeoutError:
        raise cut_short("nothing came for too long, not even a heartbeat") from None
    except (aiohttp.ClientError, OSError) as error:
        raise cut_short(f"the connection broke ({type(error).__name__})") from error
