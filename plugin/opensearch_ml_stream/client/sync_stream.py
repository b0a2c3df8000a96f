"""Streams through a blocking client: `opensearchpy.OpenSearch` over urllib3 or requests."""

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import requests
import urllib3
from opensearchpy import OpenSearch
from opensearchpy.connection import RequestsHttpConnection, Urllib3HttpConnection
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

_READ_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    """One POST. Nothing may be silent for longer than `idle` seconds."""

    path: str
    body: bytes
    headers: Mapping[str, str]
    idle: float
    method: str = "POST"


def predict_stream(
    client: OpenSearch,
    model_id: str,
    parameters: Mapping[str, Any],
    *,
    url: str | None = None,
    idle_timeout: float = IDLE_SECONDS,
) -> Generator[Chunk]:
    """Chunks of the model's answer as they arrive; the last one has `is_last`, `finish_reason` and `usage`.

    `url` is the sidecar's, if the client does not point at it. The request is sent once, at the first `next`.
    Before the stream opensearch-py's own exceptions are raised (NotFoundError, RequestError, ConnectionError, ...),
    inside it StreamError. To stop early leave the loop, or `close()` the generator where it is kept.
    """
    call = Call(predict_path(model_id, stream=True), predict_body(parameters), STREAM_HEADERS, idle_timeout)
    reader = ChunkReader()
    with connection_to(client, url) as connection, answer(connection, call) as pieces:
        try:
            for data in pieces:
                yield from reader.feed(data)
            yield from reader.close()
        except StreamError:
            if not reader.ended:
                raise


@contextmanager
def connection_to(client: OpenSearch, url: str | None) -> Iterator[Any]:
    """The client's own connection, or one of the same kind to `url` that is closed at the end."""
    transport = client.transport
    if url is None:
        yield transport.get_connection()
        return
    connection: Any = transport.connection_class(**connection_options(transport, url))
    with closing(connection):
        yield connection


@contextmanager
def answer(connection: Any, call: Call) -> Iterator[Iterator[bytes]]:
    """The body's pieces as they come; opensearch-py's exception if there is no answer or its status is an error."""
    if isinstance(connection, Urllib3HttpConnection):
        response = _open_urllib3(connection, call)
    elif isinstance(connection, RequestsHttpConnection):
        response = _open_requests(connection, call)
    else:
        raise ImproperlyConfigured(
            f"Streams need Urllib3HttpConnection or RequestsHttpConnection, not {type(connection).__name__}"
        )
    try:
        if response.status >= 300:
            raise http_error(response.status, b"".join(_pieces(response)), response.headers.get("content-type", ""))
        yield _pieces(response)
    finally:
        # Closes the connection, unless the whole answer was read: then it is back in the client's pool already.
        response.close()


def _open_urllib3(connection: Any, call: Call) -> urllib3.HTTPResponse:
    headers = {**connection.headers, **call.headers}
    path = connection.url_prefix + call.path
    if callable(connection.http_auth):
        headers.update(connection.http_auth(call.method, connection.host + path, call.body))
    if connection.pool is None:
        connection._create_urllib3_pool()
    try:
        response: urllib3.HTTPResponse = connection.pool.urlopen(
            call.method,
            path,
            call.body,
            headers=headers,
            retries=urllib3.Retry(False),
            redirect=False,
            preload_content=False,
            timeout=urllib3.Timeout(connect=connection.timeout, read=call.idle),
        )
    except urllib3.exceptions.SSLError as error:
        raise SSLError("N/A", str(error), error) from error
    except urllib3.exceptions.ReadTimeoutError as error:
        raise ConnectionTimeout("TIMEOUT", str(error), error) from error
    except urllib3.exceptions.HTTPError as error:
        raise ConnectionError("N/A", str(error), error) from error
    return response


def _open_requests(connection: Any, call: Call) -> urllib3.HTTPResponse:
    try:
        response = connection.session.request(
            call.method,
            connection.base_url + call.path,
            data=call.body,
            headers={**connection.headers, **call.headers},
            stream=True,
            timeout=(connection.timeout, call.idle),
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


def _pieces(response: urllib3.HTTPResponse) -> Iterator[bytes]:
    try:
        if response.chunked:
            yield from response.stream()
        else:
            while data := response.read1(_READ_BYTES):
                yield data
    except urllib3.exceptions.ReadTimeoutError:
        raise cut_short("nothing came for too long, not even a heartbeat") from None
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise cut_short(f"the connection broke ({type(error).__name__})") from error
