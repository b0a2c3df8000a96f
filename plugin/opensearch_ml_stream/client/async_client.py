"""The client over an async opensearch-py client: `opensearchpy.AsyncOpenSearch` over aiohttp."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yarl
from opensearchpy import AIOHttpConnection, AsyncHttpConnection, AsyncOpenSearch
from opensearchpy.exceptions import ImproperlyConfigured

from opensearch_ml_stream.client import use_cases
from opensearch_ml_stream.client.errors import SidecarError, broken, connection_failed, error_response, silent
from opensearch_ml_stream.client.response_chunks import Chunk, ChunkReader
from opensearch_ml_stream.client.use_cases import AUTHORIZATION, IDLE_SECONDS, Access, Operation, T, UseCase


def async_predict_stream(
    client: AsyncOpenSearch,
    model_id: str,
    parameters: Mapping[str, Any],
    *,
    url: str | None = None,
    api_key: str | None = None,
    idle_timeout: float = IDLE_SECONDS,
) -> AsyncGenerator[Chunk]:
    """Stream a model's response through an async opensearch-py client, chunk by chunk; as `predict_stream`.

    The client is one over AsyncHttpConnection or AIOHttpConnection. To stop early leave the loop, or `aclose()` the
    generator where it is kept (as contextlib.aclosing does): the provider's stream ends with it.

    Example:
        client = AsyncOpenSearch("http://127.0.0.1:9510")
        async for chunk in async_predict_stream(client, model_id, {"inputs": "Why is the sky blue?"}):
            print(chunk.text, end="", flush=True)
    """
    return _stream(client, use_cases.streamed_prediction(model_id, parameters), Access(url, api_key, idle_timeout))


class AsyncStreamingMLClient:
    """`StreamingMLClient` for programs with an async opensearch-py client: the same methods, to be awaited.

    The client is one over AsyncHttpConnection or AIOHttpConnection.

    Example:
        async with AsyncOpenSearch("http://127.0.0.1:9510") as client:
            ml = AsyncStreamingMLClient(client)
            model_id = await ml.create_model("openai-chat", credential={"openAI_key": "sk-..."})
            async for chunk in ml.predict_stream(model_id, {"inputs": "Why is the sky blue?"}):
                print(chunk.text, end="", flush=True)
    """

    def __init__(
        self,
        client: AsyncOpenSearch,
        *,
        url: str | None = None,
        api_key: str | None = None,
        idle_timeout: float = IDLE_SECONDS,
    ) -> None:
        self._client = client
        self._access = Access(url, api_key, idle_timeout)

    async def create_connector(
        self,
        blueprint_file: str | Path,
        *,
        parameters: Mapping[str, Any] | None = None,
        credential: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> str:
        """Create a connector from a blueprint; as `StreamingMLClient.create_connector`."""
        return await self._run(use_cases.create_connector(blueprint_file, parameters, credential, name))

    async def create_model(
        self,
        blueprint_file: str | Path,
        *,
        parameters: Mapping[str, Any] | None = None,
        credential: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> str:
        """Create a model with a connector of its own; as `StreamingMLClient.create_model`."""
        return await self._run(use_cases.create_model(blueprint_file, parameters, credential, name))

    async def predict(self, model_id: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the whole response at once: `{"inference_results": [...]}`."""
        return await self._run(use_cases.predict(model_id, parameters))

    def predict_stream(self, model_id: str, parameters: Mapping[str, Any]) -> AsyncGenerator[Chunk]:
        """Stream a model's response; as `async_predict_stream`, with this client's options."""
        return _stream(self._client, use_cases.streamed_prediction(model_id, parameters), self._access)

    async def embed(
        self, model_id: str, texts: Sequence[str], parameters: Mapping[str, Any] | None = None
    ) -> list[list[float]]:
        """Return an embedding for each text, in the order of the texts; all are sent in one request."""
        return await self._run(use_cases.embed(model_id, texts, parameters))

    async def _run(self, use_case: UseCase[T]) -> T:
        """Send the requests of a use case one after the other, and return its result."""
        try:
            operation = next(use_case)
            while True:
                try:
                    response = await self._send(operation)
                except SidecarError as error:
                    operation = use_case.throw(error)
                else:
                    operation = use_case.send(response)
        except StopIteration as ended:
            result: T = ended.value
            return result

    async def _send(self, operation: Operation) -> dict[str, Any]:
        async with _open_response(self._client, operation, self._access) as pieces:
            return use_cases.json_object(b"".join([data async for data in pieces]))


async def _stream(client: AsyncOpenSearch, operation: Operation, access: Access) -> AsyncGenerator[Chunk]:
    """Send the request and yield the chunks of its response as they arrive."""
    reader = ChunkReader()
    async with _open_response(client, operation, access) as pieces:
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
async def _open_response(
    client: AsyncOpenSearch, operation: Operation, access: Access
) -> AsyncIterator[AsyncIterator[bytes]]:
    """Send the request and lend an iterator over its response's body, piece by piece as they arrive.

    Raises SidecarError if there is no response or its status is not 2xx.
    """
    async with _connection_to(client, access) as connection:
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
async def _connection_to(client: AsyncOpenSearch, access: Access) -> AsyncIterator[Any]:
    """Lend the client's own connection, or one of the same kind to the sidecar's url that is closed at the end."""
    transport: Any = client.transport
    await transport._async_call()
    if access.url is None:
        yield transport.get_connection()
        return
    connection = transport.connection_class(**access.connection_options(transport))
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
        raise silent() from None
    except (aiohttp.ClientError, OSError) as error:
        raise broken(error) from error
