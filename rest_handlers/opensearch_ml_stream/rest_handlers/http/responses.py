"""Every JSON answer, good or bad: `pretty`, `filter_path` and `X-Opaque-Id` are seen to here, once for all routes."""

import json
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.syntax.filter_path import filter_path

JSON_CONTENT_TYPE = "application/json; charset=UTF-8"


def json_response(request: Request, body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """The body as the request's query wants it."""
    query = request.query_params
    if patterns := query.get("filter_path"):
        body = filter_path(body, patterns.split(","))
    content = _pretty(body) if query.get("pretty") in ("", "true") else _compact(body)
    return Response(
        content,
        status_code=status,
        headers={**echoed_headers(request), **(headers or {})},
        media_type=JSON_CONTENT_TYPE,
    )


def error_response(request: Request, error: MLStreamError) -> Response:
    """OpenSearch's error object with the error's status, and `Retry-After` where the error has one."""
    headers = {} if error.retry_after is None else {"Retry-After": error.retry_after}
    return json_response(request, error.body(), error.status, headers)


def echoed_headers(request: Request) -> dict[str, str]:
    """`X-Opaque-Id`, by which a caller finds its request again."""
    opaque_id = request.headers.get("x-opaque-id")
    return {} if opaque_id is None else {"X-Opaque-Id": opaque_id}


def _compact(body: Any) -> bytes:
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:  # a number of more than 64 bits, half of a surrogate pair
        return json.dumps(body).encode()


def _pretty(body: Any) -> bytes:
    return (json.dumps(body, indent=2, separators=(",", " : ")) + "\n").encode()
