"""Whole responses of `/v2`, compressed for clients that take it."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from opensearch_ml_stream.rest_handlers.http.gzip_coding import GZIP_HEADERS, MIN_BYTES, VARY, accepts_gzip, gzipped
from opensearch_ml_stream.rest_handlers.http.host_and_origin import Headers
from opensearch_ml_stream.rest_handlers.http.responses import encoded_response


async def compressed_response(
    scope: Scope, body: bytes = b"", *, gzip: bool, headers: Headers = (), of_body: Mapping[str, str] | None = None
) -> Response:
    """Return the response of a body that is encoded already, or empty; it is JSON if `of_body` says nothing else."""
    if gzip and len(body) >= MIN_BYTES:
        if accepts_gzip(scope):
            body, headers = await gzipped(body), (*headers, *GZIP_HEADERS)
        else:
            headers = (*headers, *VARY)
    response = encoded_response(Request(scope), body, headers=of_body)
    response.raw_headers.extend(headers)
    return response
