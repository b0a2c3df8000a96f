"""Streaming through an async client: `opensearchpy.AsyncOpenSearch` over aiohttp."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import yarl
from opensearchpy import AIOHttpConnection, AsyncHttpConnection, AsyncOpenSearch
from opensearchpy.exceptions import ConnectionError, ConnectionTimeout, ImproperlyConfigured, SSLError

from opensearch_ml_stream.client.prediction_request import (
    AUTHORIZATION,
    IDLE_SECONDS,
    STREAM_HEADERS,
    connection_options,
    http_error,
    login_headers,
    predict_body,
    predict_path,
)
from opensearch_ml_stream.client.response_chunks import Chunk, ChunkReader, StreamError, truncated


async def async_predict_stream(
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
        OpenSearchException: Before the first chunk, opensearch-py's own: AuthenticationException (401),
            AuthorizationException (403), NotFoundError, RequestError, ConnectionError, ConnectionTimeout, SSLError, ...
        StreamError: After it, if the provider fails or the stream ends before its last chunk.
    """
    reader = ChunkReader()
    body = predict_body(parameters)
    headers = {**STREAM_HEADERS, **login_headers(api_key)}
    async with (
        _connection_to(client, url) as connection,
        _open_response(connection, predict_path(model_id, stream=True), body, headers, idle_timeout) as response,
    ):
        try:
            async for data in _body_pieces(response):
                for chunk in reader.feed(data):
                    yield chunk
            for chunk in reader.close():
                yield chunk
        except StreamError:
            if not reader.ended:
                raise


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


@asynccontextmanager
async def _open_response(
    connection: Any, path: str, body: bytes, headers: Mapping[str, str], idle_seconds: float
) -> AsyncIterator[aiohttp.ClientResponse]:
    """Send the request and lend its response, whose body is not read yet.

    Raises opensearch-py's exception if there is no response or its status is not 2xx.
    """
    if not isinstance(connection, AIOHttpConnection | AsyncHttpConnection):
        raise ImproperlyConfigured(
            f"Streams need AsyncHttpConnection or AIOHttpConnection, not {type(connection).__name__}"
        )
    response = await _send(connection, path, body, headers, idle_seconds)
    try:
        if response.status >= 300:
            error_body = b"".join([data async for data in _body_pieces(response)])
            raise http_error(response.status, error_body, response.headers.get("content-type", ""))
        yield response
    finally:
        # Closes the connection, unless the whole body was read: then it is back in the client's pool already.
        response.close()


async def _send(
    connection: Any, path: str, body: bytes, own_headers: Mapping[str, str], idle_seconds: float
) -> aiohttp.ClientResponse:
    if connection.session is None:
        await connection._create_aiohttp_session()
    session: Any = connection.session
    url = connection.host + connection.url_prefix + path
    headers: dict[str, str] = {**connection.headers, **own_headers}
    signer: Any = None if AUTHORIZATION in own_headers else connection._http_auth
    # A login stands in the headers already (AIOHttpConnection), or is an object of aiohttp's (AsyncHttpConnection).
    if isinstance(signer, aiohttp.BasicAuth):
        headers["authorization"] = signer.encode()
    elif callable(signer):
        sign: Any = signer  # callable() would have narrowed its result to object
        headers |= sign(method="POST", url=url, body=body, headers=headers)
    try:
        response: aiohttp.ClientResponse = await session.post(
            yarl.URL(url, encoded=True),
            data=body,
            headers=headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connection.timeout, sock_read=idle_seconds),
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
