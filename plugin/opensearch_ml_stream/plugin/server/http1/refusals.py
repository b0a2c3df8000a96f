"""Error responses to requests that do not reach the application, after which the connection is closed."""

import http
from collections.abc import Iterable

import orjson

from opensearch_ml_stream.connectors.errors import HeadTooLarge, InvalidRequest, MLStreamError, RequestTimeout
from opensearch_ml_stream.plugin.server.http1.limits import MAX_HEAD_BYTES, MAX_HEADERS, ConnectionLimits

Headers = Iterable[tuple[bytes, bytes]]


def status_line(status: int) -> bytes:
    """Return the first line of a response."""
    try:
        phrase = http.HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()


def refusal(error: MLStreamError, headers: Headers) -> bytes:
    """Return the response that refuses a request; `headers` are those of every response."""
    body = orjson.dumps(error.body())
    own = [
        (b"content-type", b"application/json; charset=UTF-8"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    if error.retry_after is not None:
        own.append((b"retry-after", error.retry_after.encode()))
    lines = [b"%b: %b\r\n" % pair for pair in (*headers, *own)]
    return b"".join([status_line(error.status), *lines, b"\r\n", body])


def not_http(why: str) -> InvalidRequest:
    """Return the error for bytes that are not a valid request; it does not repeat them."""
    return InvalidRequest(f"The request cannot be read as HTTP/1.1: {why}", type="bad_request_exception")


def head_too_large() -> HeadTooLarge:
    """Return the error for a head that exceeds the limits."""
    return HeadTooLarge(
        f"The request's head (URL and headers) is larger than {MAX_HEAD_BYTES} bytes, or has more than {MAX_HEADERS} "
        "headers"
    )


def head_timeout(limits: ConnectionLimits) -> RequestTimeout:
    """Return the error for a head that is not complete in time."""
    return RequestTimeout(f"The request's head was not whole {limits.head_seconds:g} seconds after its first byte")


def body_timeout(limits: ConnectionLimits) -> RequestTimeout:
    """Return the error for a body that is not complete in time."""
    return RequestTimeout(
        f"The request's body is not whole: nothing of it came for {limits.body_read_seconds:g} seconds, or "
        f"{limits.request_seconds:g} seconds (setting opensearch_ml_stream.request_timeout_seconds) have passed since "
        "the request began"
    )
