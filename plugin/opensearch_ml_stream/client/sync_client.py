"""The client over a blocking opensearch-py client: `opensearchpy.OpenSearch` over urllib3 or requests."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import requests
import urllib3
from opensearchpy import OpenSearch
from opensearchpy.connection import RequestsHttpConnection, Urllib3HttpConnection
from opensearchpy.exceptions import ImproperlyConfigured

from opensearch_ml_stream.client import use_cases
from opensearch_ml_stream.client.errors import SidecarError, broken, connection_failed, error_response, silent
from opensearch_ml_stream.client.response_chunks import Chunk, ChunkReader
from opensearch_ml_stream.client.use_cases import AUTHORIZATION, IDLE_SECONDS, Access, Operation, T, UseCase

_READ_BYTES = 64 * 1024


def predict_stream(
    client: OpenSearch,
    model_id: str,
    parameters: Mapping[str, Any],
    *,
    url: str | None = None,
    api_key: str | None = None,
    idle_timeout: float = IDLE_SECONDS,
) -> Generator[Chunk]:
    """Stream a model's response through a blocking opensearch-py client, chunk by chunk.

    The request is sent once, at the first `next`. To stop early leave the loop, or `close()` the generator where it
    is kept: the provider's stream ends with it.

    Example:
        client = OpenSearch("http://127.0.0.1:9510")
        for chunk in predict_stream(client, model_id, {"inputs": "Why is the sky blue?"}):
            print(chunk.text, end="", flush=True)

    Args:
        client: An opensearch-py client over Urllib3HttpConnection or RequestsHttpConnection.
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
    return _stream(client, use_cases.streamed_prediction(model_id, parameters), Access(url, api_key, idle_timeout))


class StreamingMLClient:
    """Client of the sidecar over a blocking opensearch-py client: creates connectors and models, and calls them.

    No request is ever sent twice. What fails raises a SidecarError, which holds the server's reason and status.

    Example:
        ml = StreamingMLClient(OpenSearch("http://127.0.0.1:9510"))
        model_id = ml.create_model("openai-chat", credential={"openAI_key": "sk-..."})
        print("".join(chunk.text for chunk in ml.predict_stream(model_id, {"inputs": "Why is the sky blue?"})))

    Args:
        client: An opensearch-py client over Urllib3HttpConnection or RequestsHttpConnection.
        url: The sidecar's, if the client does not point at it: `http(s)://[user:password@]host[:port][/prefix]`.
        api_key: A key of the sidecar, which is sent in place of the client's login.
        idle_timeout: Seconds without any byte, heartbeats included, after which a response is given up.
    """

    def __init__(
        self,
        client: OpenSearch,
        *,
        url: str | None = None,
        api_key: str | None = None,
        idle_timeout: float = IDLE_SECONDS,
    ) -> None:
        self._client = client
        self._access = Access(url, api_key, idle_timeout)

    def create_connector(
        self,
        blueprint_file: str | Path,
        *,
        parameters: Mapping[str, Any] | None = None,
        credential: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> str:
        """Create a connector from a blueprint.

        Args:
            blueprint_file: The path of a blueprint file (with a `/` or `.json`), or the name of a shipped blueprint.
            parameters: Values for the connector's parameters, beside or instead of the blueprint's own.
            credential: Values for the credential, by the blueprint's keys.
            name: The connector's name, if not the blueprint's.

        Returns:
            The connector's id.

        Raises:
            RequestRefused: If there is no such blueprint, a value that it needs is missing, or the sidecar refuses it.
            SidecarError: If the request fails otherwise.
        """
        return self._run(use_cases.create_connector(blueprint_file, parameters, credential, name))

    def create_model(
        self,
        blueprint_file: str | Path,
        *,
        parameters: Mapping[str, Any] | None = None,
        credential: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> str:
        """Create a model with a connector of its own, which is deleted again if the model cannot be registered.

        Args and errors are those of `create_connector`; `name` is also the model's.

        Returns:
            The model's id.
        """
        return self._run(use_cases.create_model(blueprint_file, parameters, credential, name))

    def predict(self, model_id: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the whole response at once: `{"inference_results": [...]}`."""
        return self._run(use_cases.predict(model_id, parameters))

    def predict_stream(self, model_id: str, parameters: Mapping[str, Any]) -> Generator[Chunk]:
        """Stream a model's response; as `opensearch_ml_stream.client.predict_stream`, with this client's options."""
        return _stream(self._client, use_cases.streamed_prediction(model_id, parameters), self._access)

    def embed(
        self, model_id: str, texts: Sequence[str], parameters: Mapping[str, Any] | None = None
    ) -> list[list[float]]:
        """Return an embedding for each text, in the order of the texts; all are sent in one request."""
        return self._run(use_cases.embed(model_id, texts, parameters))

    def _run(self, use_case: UseCase[T]) -> T:
        """Send the requests of a use case one after the other, and return its result."""
        try:
            operation = next(use_case)
            while True:
                try:
                    response = self._send(operation)
                except SidecarError as error:
                    operation = use_case.throw(error)
                else:
                    operation = use_case.send(response)
        except StopIteration as ended:
            result: T = ended.value
            return result

    def _send(self, operation: Operation) -> dict[str, Any]:
        with _open_response(self._client, operation, self._access) as pieces:
            return use_cases.json_object(b"".join(pieces))


def _stream(client: OpenSearch, operation: Operation, access: Access) -> Generator[Chunk]:
    """Send the request and yield the chunks of its response as they arrive."""
    reader = ChunkReader()
    with _open_response(client, operation, access) as pieces:
        try:
            for data in pieces:
                yield from reader.feed(data)
            yield from reader.close()
        except SidecarError:
            if not reader.ended:
                raise


@contextmanager
def _open_response(client: OpenSearch, operation: Operation, access: Access) -> Iterator[Iterator[bytes]]:
    """Send the request and lend an iterator over its response's body, piece by piece as they arrive.

    Raises SidecarError if there is no response or its status is not 2xx.
    """
    with _connection_to(client, access) as connection:
        response = _send(connection, operation, access)
        try:
            if response.status >= 300:
                body = b"".join(_body_pieces(response))
                raise error_response(response.status, body, response.headers.get("retry-after"))
            yield _body_pieces(response)
        finally:
            # Closes the connection, unless the whole body was read: then it is back in the client's pool already.
            response.close()


@contextmanager
def _connection_to(client: OpenSearch, access: Access) -> Iterator[Any]:
    """Lend the client's own connection, or one of the same kind to the sidecar's url that is closed at the end."""
    transport = client.transport
    if access.url is None:
        yield transport.get_connection()
        return
    connection: Any = transport.connection_class(**access.connection_options(transport))
    with closing(connection):
        yield connection


def _send(connection: Any, operation: Operation, access: Access) -> urllib3.HTTPResponse:
    try:
        if isinstance(connection, Urllib3HttpConnection):
            return _send_by_urllib3(connection, operation, access)
        if isinstance(connection, RequestsHttpConnection):
            return _send_by_requests(connection, operation, access)
    except (urllib3.exceptions.HTTPError, requests.exceptions.RequestException) as error:
        raise connection_failed(connection.host, error) from error
    raise ImproperlyConfigured(
        f"Streams need Urllib3HttpConnection or RequestsHttpConnection, not {type(connection).__name__}"
    )


def _send_by_urllib3(connection: Any, operation: Operation, access: Access) -> urllib3.HTTPResponse:
    own_headers, body = access.headers(operation), operation.content()
    headers: dict[str, str] = {**connection.headers, **own_headers}
    path = connection.url_prefix + operation.full_path
    signer: Any = connection.http_auth
    if callable(signer) and AUTHORIZATION not in own_headers:
        sign: Any = signer  # callable() would have narrowed its result to object
        headers.update(sign(operation.method, connection.host + path, body))
    if connection.pool is None:
        connection._create_urllib3_pool()
    pool: Any = connection.pool
    response: urllib3.HTTPResponse = pool.urlopen(
        operation.method,
        path,
        body,
        headers=headers,
        retries=urllib3.Retry(False),
        redirect=False,
        preload_content=False,
        timeout=urllib3.Timeout(connect=connection.timeout, read=access.idle_seconds),
    )
    return response


def _send_by_requests(connection: Any, operation: Operation, access: Access) -> urllib3.HTTPResponse:
    own_headers = access.headers(operation)
    response = connection.session.request(
        operation.method,
        connection.base_url + operation.full_path,
        data=operation.content(),
        headers={**connection.headers, **own_headers},
        auth=_unchanged if AUTHORIZATION in own_headers else None,
        stream=True,
        timeout=(connection.timeout, access.idle_seconds),
        allow_redirects=False,
        # Or requests would put REQUESTS_CA_BUNDLE before the client's own ca_certs.
        verify=connection.session.verify,
    )
    raw: urllib3.HTTPResponse = response.raw
    return raw


def _unchanged(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """Keep the request's own login: requests would put the session's in its place, or one of ~/.netrc."""
    return request


def _body_pieces(response: urllib3.HTTPResponse) -> Iterator[bytes]:
    try:
        if response.chunked:
            yield from response.stream()
        else:
            while data := response.read1(_READ_BYTES):
                yield data
    except urllib3.exceptions.ReadTimeoutError:
        raise silent() from None
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise broken(error) from error
