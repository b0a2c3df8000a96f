"""Streaming through a blocking client: `opensearchpy.OpenSearch` over urllib3 or requests."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import requests
import urllib3
from opensearchpy import OpenSearch
from opensearchpy.connection import RequestsHttpConnection, Urllib3HttpConnection
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

_READ_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    """One HTTP request. `idle_seconds` is the longest silence of the server that is tolerated.

    A login among the headers replaces that of the connection.
    """

    path: str
    body: bytes
    headers: Mapping[str, str] = field(repr=False)
    idle_seconds: float
    method: str = "POST"


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
        OpenSearchException: Before the first chunk, opensearch-py's own: AuthenticationException (401),
            AuthorizationException (403), NotFoundError, RequestError, ConnectionError, ConnectionTimeout, SSLError, ...
        StreamError: After it, if the provider fails or the stream ends before its last chunk.
    """
    headers = {**STREAM_HEADERS, **login_headers(api_key)}
    call = Call(predict_path(model_id, stream=True), predict_body(parameters), headers, idle_timeout)
    reader = ChunkReader()
    with connection_to(client, url) as connection, open_response(connection, call) as pieces:
        try:
            for data in pieces:
                yield from reader.feed(data)
            yield from reader.close()
        except StreamError:
            if not reader.ended:
                raise


@contextmanager
def connection_to(client: OpenSearch, url: str | None) -> Iterator[Any]:
    """Lend the client's own connection, or one of the same kind to `url` that is closed at the end."""
    transport = client.transport
    if url is None:
        yield transport.get_connection()
        return
    connection: Any = transport.connection_class(**connection_options(transport, url))
    with closing(connection):
        yield connection


@contextmanager
def open_response(connection: Any, call: Call) -> Iterator[Iterator[bytes]]:
    """Send the request and lend an iterator over its response's body, piece by piece as they arrive.

    Raises opensearch-py's exception if there is no response or its status is not 2xx.
    """
    if isinstance(connection, Urllib3HttpConnection):
        response = _send_by_urllib3(connection, call)
    elif isinstance(connection, RequestsHttpConnection):
        response = _send_by_requests(connection, call)
    else:
        raise ImproperlyConfigured(
            f"Streams need Urllib3HttpConnection or RequestsHttpConnection, not {type(connection).__name__}"
        )
    try:
        if response.status >= 300:
            error_body = b"".join(_body_pieces(response))
            raise http_error(response.status, error_body, response.headers.get("content-type", ""))
        yield _body_pieces(response)
    finally:
        # Closes the connection, unless the whole body was read: then it is back in the client's pool already.
        response.close()


def _send_by_urllib3(connection: Any, call: Call) -> urllib3.HTTPResponse:
    headers: dict[str, str] = {**connection.headers, **call.headers}
    path = connection.url_prefix + call.path
    signer: Any = connection.http_auth
    if callable(signer) and AUTHORIZATION not in call.headers:
        sign: Any = signer  # callable() would have narrowed its result to object
        headers.update(sign(call.method, connection.host + path, call.body))
    if connection.pool is None:
        connection._create_urllib3_pool()
    pool: Any = connection.pool
    try:
        response: urllib3.HTTPResponse = pool.urlopen(
            call.method,
            path,
            call.body,
            headers=headers,
            retries=urllib3.Retry(False),
            redirect=False,
            preload_content=False,
            timeout=urllib3.Timeout(connect=connection.timeout, read=call.idle_seconds),
        )
    except urllib3.exceptions.SSLError as error:
        raise SSLError("N/A", str(error), error) from error
    except urllib3.exceptions.ReadTimeoutError as error:
        raise ConnectionTimeout("TIMEOUT", str(error), error) from error
    except urllib3.exceptions.HTTPError as error:
        raise ConnectionError("N/A", str(error), error) from error
    return response


def _send_by_requests(connection: Any, call: Call) -> urllib3.HTTPResponse:
    try:
        response = connection.session.request(
            call.method,
            connection.base_url + call.path,
            data=call.body,
            headers={**connection.headers, **call.headers},
            auth=_unchanged if AUTHORIZATION in call.headers else None,
            stream=True,
            timeout=(connection.timeout, call.idle_seconds),
            allow_redirects=False,
            # Or requests would put REQUESTS_CA_BUNDLE before the client's own ca_certs.
            verify=connection.session.verify,
        )
    except requests.exceptions.SSLError as error:
        raise SSLError("N/A", str(error), error) from error
    except requests.exceptions.Timeout as error:
        raise ConnectionTimeout("TIMEOUT", str(error), error) from error
    except requests.exceptions.RequestException as error:
        raise ConnectionError("N/A", str(error), error) from error
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
        raise truncated("nothing came for too long, not even a heartbeat") from None
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise truncated(f"the connection broke ({type(error).__name__})") from error
