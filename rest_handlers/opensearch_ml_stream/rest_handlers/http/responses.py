"""JSON responses, good or bad, of all routes: `pretty`, `filter_path` and `X-Opaque-Id` are applied here.

Those of the V2 protocol are JSON as it is encoded there, whatever the query says; so are its errors.
"""

import json
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from opensearch_ml_stream.connectors.errors import InvalidBody, MLStreamError, Unauthorized
from opensearch_ml_stream.connectors.syntax.filter_path import filter_path
from opensearch_ml_stream.connectors.syntax.jsontext import to_json
from opensearch_ml_stream.rest_handlers.base_path import ErrorForm
from opensearch_ml_stream.rest_handlers.http import yaml_text
from opensearch_ml_stream.rest_handlers.http.asgi_extensions import REQUEST_NOTES
from opensearch_ml_stream.rest_handlers.http.host_and_origin import with_security_headers
from opensearch_ml_stream.rest_handlers.http.requests import header, is_yaml

JSON_CONTENT_TYPE = "application/json; charset=UTF-8"
YAML_CONTENT_TYPE = f"{yaml_text.CONTENT_TYPE}; charset=UTF-8"

NO_HEADERS: Mapping[str, str] = {}
ERROR_FORM = "opensearch_ml_stream.error_form"  # in the scope of a request whose errors are not OpenSearch's


def json_response(request: Request, body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return the body as JSON or YAML, as the request's query and headers ask for; an error keeps all its fields."""
    query = request.query_params
    if (patterns := query.get("filter_path")) and status < 400:
        body = filter_path(body, patterns.split(","))
    media_type = JSON_CONTENT_TYPE
    if _wants_yaml(request.scope, query):
        media_type, content = YAML_CONTENT_TYPE, yaml_text.to_yaml(body)
    else:
        content = _pretty(body) if query.get("pretty") in ("", "true") else to_json(body)
    return _response(request, content, status, media_type, headers)


def encoded_json_response(request: Request, content: bytes) -> Response:
    """Return a body that is compact JSON already, as OpenSearch's responses are."""
    return _response(request, content, 200, JSON_CONTENT_TYPE)


def wants_compact_json(scope: Scope, query: Mapping[str, str]) -> bool:
    """Whether a response is wanted as compact JSON with all its fields: `json_response` does nothing else then."""
    return not (query.get("filter_path") or query.get("pretty") in ("", "true") or _wants_yaml(scope, query))


def error_response(request: Request, error: MLStreamError, headers: Mapping[str, str] = NO_HEADERS) -> Response:
    """Return OpenSearch's error object with the error's status; `Retry-After` and a challenge where the error has one.

    Where the scope has an ERROR_FORM, it is an error of that form.
    """
    if (notes := request.scope.get(REQUEST_NOTES)) is not None:
        notes.error = error
    headers = dict(headers) if error.retry_after is None else {**headers, "Retry-After": error.retry_after}
    headers |= {"WWW-Authenticate": error.challenge} if isinstance(error, Unauthorized) else {}
    form: ErrorForm | None = request.scope.get(ERROR_FORM)
    if form is not None:
        return encoded_response(request, form(error), error.status, headers)
    return json_response(request, error.body(), error.status, headers)


def plain_error_body(error: MLStreamError) -> bytes:
    """Encode an error as MLServer does, `{"error": "..."}`, with FastAPI's `detail` beside it for an invalid body."""
    body: dict[str, Any] = {"error": error.reason}
    if isinstance(error, InvalidBody):
        body["detail"] = error.detail
    return orjson.dumps(body)


def encoded_response(
    request: Request, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a body that is JSON already, or empty."""
    return _response(request, body, status, "application/json" if body else None, headers)


def options_response(request: Request, headers: Mapping[str, str]) -> Response:
    """Return the empty response to OPTIONS."""
    response = Response(headers={**echoed_headers(request), **headers}, media_type="text/plain")
    return with_security_headers(request.scope, response)


def _response(
    request: Request,
    content: bytes,
    status: int,
    content_type: str | None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a response with what all have in their heads."""
    own = {"Cache-Control": "no-store", **echoed_headers(request), **(headers or {})}
    return with_security_headers(request.scope, Response(content, status, own, content_type))


def echoed_headers(request: Request) -> dict[str, str]:
    """Return the request's `X-Opaque-Id`, as OpenSearch does, and the `X-Request-Id` under which it is in the log."""
    opaque_id = request.headers.get("x-opaque-id")
    notes = request.scope.get(REQUEST_NOTES)
    return {
        **({} if opaque_id is None else {"X-Opaque-Id": opaque_id}),
        **({} if notes is None else {"X-Request-Id": notes.id}),
    }


def _wants_yaml(scope: Scope, query: Mapping[str, str]) -> bool:
    """Whether YAML is asked for: by `format`, else by `Accept`, else by the body's content type, as in OpenSearch."""
    if (format_name := query.get("format")) is not None:
        return format_name == "yaml"
    accept = header(scope, b"accept").lower()
    if yaml_text.CONTENT_TYPE in accept:
        return True
    return accept in ("", "*/*") and is_yaml(header(scope, b"content-type"))


def _pretty(body: Any) -> bytes:
    return (json.dumps(body, indent=2, separators=(",", " : ")) + "\n").encode()
