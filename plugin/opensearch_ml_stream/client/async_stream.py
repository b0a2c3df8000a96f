"""Streaming through an async client: `opensearchpy.AsyncOpenSearch` over aiohttp."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import yarl
from opensearchpy import AIOHttpConnection, AsyncHttpConnection, AsyncOpenSearch
from opensearchpy.exceptions import ImproperlyConfigured

from opensearch_ml_stream.client.errors import SidecarError, connection_failed, error_response, truncated
from opensearch_ml_stream.client.operations import (
    AUTHORIZATION,
    IDLE_SECONDS,
    Access,
    Operation,
    connection_options,
    streamed_prediction,
)
from opensearch_ml_stream.client.response_chunks import Chunk, ChunkReader


def async_predict_stream(
    client: AsyncOpenSearch,
    model_id: str,
    parameters: Mapping[str, Any],
    *,
    url: str | None = None,
    api_key: str | None = None,
    idle_timeout: float = IDLE_SECONDS,
) -> AsyncGenerator[Chunk]:
    """Stream a model's response through an async opensearch-py client, chunk by chunk.

    The request is sent once, at the first iteration. To stop early leave the loop, or `aclose()` the generator where
    it is kept (as contextlib.aclosing does): the provider's stream ends with it.

    Example:
        client = AsyncOpenSearch("http://127.0.0.1:9510")
        async for chunk in async_predict_stream(client, model_id, {"inputs": "Why is the sky blue?"}):
            print(chunk.text, end="", flush=True)

    Args:
        client: An opensearch-py client over AsyncHttpConnection or AIOHttpConnection.
        model_id: The id of the model at the sidecar.
        parameters: The model's parameters, such as `inputs` or `messages`.
        url: The sidecar's, if the client does not point at it: `http(s)://[user:password@]host[:port][/prefix]`.
        api_key: A key of the sidecar, which is sent in place of the client's login.
        idle_timeout: Seconds without any byte, heartbeats included, after which the stream is given up.

    Yields:
        Chunks as they arrive. The last one has `is_last`, `finish_reason`, `usage` and `model`.

    Raises:
        SidecarError: RequestRefused, ProviderFailed or ConnectionFailed before the first chunk; after it
            ProviderFailed, or StreamTruncated if the stream ends before its last chunk.
    """
    return async_stream_chunks(client, streamed_prediction(model_id, parameters), Access(url, api_key, idle_timeout))


async def async_stream_chunks(client: AsyncOpenSearch, operation: Operation, access: Access) -> AsyncGenerator[Chunk]:
    """Send the request and yield the chunks of its response as they arrive."""
    reader = ChunkReader()
    async with async_open_response(client, operation, access) as pieces:
        try:
            async for data in pieces:
                for chunk in reader.feed(data):
                    yield chunk
            for chunk in reader.close():
                yield chunk
        except SidecarError:
            if not reader.ended:
                raise


@asynccontextmanager
async def async_open_response(
    client: AsyncOpenSearch, operation: Operation, access: Access
) -> AsyncIterator[AsyncIterator[bytes]]:
    """Send the request and lend an iterator over its response's body, piece by piece as they arrive.

    Raises SidecarError if there is no response or its status is not 2xx.
    """
    async with _connection_to(client, access.url) as connection:
        if not isinstance(connection, AIOHttpConnection | AsyncHttpConnection):
            raise ImproperlyConfigured(
                f"Streams need AsyncHttpConnection or AIOHttpConnection, not {type(connection).__name__}"
            )
        response = await _send(connection, operation, access)
        try:
            if response.status >= 300:
                body = b"".join([data async for data in _body_pieces(response)])
                raise error_response(response.status, body, response.headers.get("retry-after"))
            yield _body_pieces(response)
        finally:
            # Closes the connection, unless the whole body was read: then it is back in the client's pool already.
            response.close()


@asynccontextmanager
async def _connection_to(client: AsyncOpenSearch, url: str | None) -> AsyncIterator[Any]:
    """Lend the client's own connection, or one of the same kind to `url` that is closed at the end."""
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


async def _send(connection: Any, operation: Operation, access: Access) -> aiohttp.ClientResponse:
    if connection.session is None:
        await connection._create_aiohttp_session()
    session: Any = connection.session
    url = connection.host + connection.url_prefix + operation.full_path
    own_headers, body = access.headers(operation), operation.content()
    headers: dict[str, str] = {**connection.headers, **own_headers}
    signer: Any = None if AUTHORIZATION in own_headers else connection._http_auth
    # A login stands in the headers already (AIOHttpConnection), or is an object of aiohttp's (AsyncHttpConnection).
    if isinstance(signer, aiohttp.BasicAuth):
        headers["authorization"] = signer.encode()
    elif callable(signer):
        sign: Any = signer  # callable() would have narrowed its result to object
        headers |= sign(method=operation.method, url=url, body=body, headers=headers)
    try:
        response: aiohttp.ClientResponse = await session.request(
            operation.method,
            yarl.URL(url, encoded=True),
            data=body,
            headers=headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connection.timeout, sock_read=access.idle_seconds),
            **({"ssl": fingerprint} if (fingerprint := _fingerprint(connection)) else {}),
        )
    except (aiohttp.ClientError, TimeoutError) as error:
        raise connection_failed(connection.host, error) from error
    return response


def _fingerprint(connection: Any) -> aiohttp.Fingerprint | None:
    digits = connection.ssl_assert_fingerprint
    return aiohttp.Fingerprint(bytes.fromhex(digits.replace(":", ""))) if digits else None


async def _body_pieces(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for data in response.content.iter_any():
            yield data
    except TimeoutError:
        raise truncated("nothing came for too long, not even a heartbeat") from None
    except (aiohttp.ClientError, OSError) as error:
        raise truncated(f"the connection broke ({type(error).__name__})") from error
