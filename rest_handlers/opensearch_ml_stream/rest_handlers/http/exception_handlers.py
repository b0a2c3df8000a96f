"""MLStreamError and what Starlette raises become OpenSearch's error responses."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import Internal, MethodNotAllowed, MLStreamError, NotFound
from opensearch_ml_stream.rest_handlers.base_path import BASE_PATH
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.responses import (
    ERROR_FORM,
    error_response,
    json_response,
    options_response,
)

ONLY_THERE = {
    "agents": r"agents(?:/.*)?",
    "conversation memories": r"memory(?:/.*)?",
    "memory containers": r"memory_containers(?:/.*)?",
    "tools": r"tools(?:/.*)?",
    "MCP servers": r"mcp(?:/.*)?",
    "batch ingestions": r"_batch_ingestion",
    "uploads of local models": r"models/(?:_register_meta|meta|[^/]+/(?:upload_)?chunk/[^/]+)",
    "templates of context management": r"context_management(?:/.*)?",
    "trainings": r"_train(?:_predict|AndPredict)?(?:/.*)?",
    "executions of functions and tools": r"_execute(?:/.*)?",
    "insights of indices": r"insights/.*|index_insight_config",
}
_PATTERNS = {what: re.compile(f"{re.escape(BASE_PATH)}/(?:{pattern})/?") for what, pattern in ONLY_THERE.items()}


def only_in_ml_commons(path: str) -> str | None:
    """Return why a path that only ML Commons has is refused, None for any other path."""
    for what, pattern in _PATTERNS.items():
        if pattern.fullmatch(path):
            return f"ML Commons has {what}, the sidecar does not; with --pass-through such requests go to the cluster"
    return None


Read = TypeVar("Read")


async def read_or_refuse(
    scope: Scope, receive: Receive, send: Send, reservation: BodyReservation, reading: Awaitable[Read]
) -> Read | None:
    """Return what `reading` reads of a request; None if it is refused or its client has disconnected.

    The error of a refused request is sent, and the memory that is reserved for its body is released.
    """
    try:
        return await reading
    except ClientDisconnect:
        reservation.release()
    except MLStreamError as error:
        reservation.release()
        await error_response(Request(scope), error)(scope, receive, send)
    return None


async def mlstream_error(request: Request, exc: Exception) -> Response:
    """Respond with the status, type and reason of an MLStreamError."""
    if not isinstance(exc, MLStreamError):
        return await unexpected_error(request, exc)
    return error_response(request, exc)


async def http_error(request: Request, exc: Exception) -> Response:
    """Respond to what Starlette's router refuses as OpenSearch does: no handler, or a method not allowed."""
    status = exc.status_code if isinstance(exc, HTTPException) else 404
    if status == 405:
        allowed = (exc.headers or {}).get("Allow", "") if isinstance(exc, HTTPException) else ""
        return method_not_allowed(request, [name for name in allowed.split(", ") if name])
    return no_handler(request)


async def client_disconnected(request: Request, exc: Exception) -> Response:
    """Return a response that nobody reads: the client disconnected before its request was complete."""
    return Response(status_code=400)


async def unexpected_error(request: Request, exc: Exception) -> Response:
    """Respond to a defect with 500. The exception's text stays in the log: it may hold a prompt."""
    return error_response(request, Internal("Internal error; the server's log says more", type="exception"))


def no_handler(request: Request) -> Response:
    """Return OpenSearch's response to a path that it does not know (400; 200 for OPTIONS).

    Where errors have a form of their own it is 404 in that form.
    """
    if request.method == "OPTIONS":
        return options_response(request, {})
    text = f"no handler found for uri [{_uri(request)}] and method [{request.method}]"
    if sentence := only_in_ml_commons(request.url.path):
        text = f"{text}: {sentence}"
    if ERROR_FORM in request.scope:
        return error_response(request, NotFound(text))
    return json_response(request, {"error": text}, 400)


def method_not_allowed(request: Request, allowed: list[str]) -> Response:
    """Return OpenSearch's response to a method that a path does not have (405, but 200 for OPTIONS), with `Allow`."""
    methods = ", ".join(allowed)
    if request.method == "POST" and only_in_ml_commons(request.url.path):  # where others may have the id of a model
        return no_handler(request)
    if request.method == "OPTIONS":
        return options_response(request, {"Allow": methods})
    text = f"Incorrect HTTP method for uri [{_uri(request)}] and method [{request.method}], allowed: [{methods}]"
    if ERROR_FORM in request.scope:
        return error_response(request, MethodNotAllowed(text), {"Allow": methods})
    return json_response(request, {"error": text, "status": 405}, 405, {"Allow": methods})


def exception_handlers() -> dict[Any, Callable[[Request, Exception], Any]]:
    """Return the handlers by exception class, for `Starlette(exception_handlers=...)`."""
    return {
        MLStreamError: mlstream_error,
        HTTPException: http_error,
        ClientDisconnect: client_disconnected,
        Exception: unexpected_error,
    }


def _uri(request: Request) -> str:
    query = request.url.query
    return f"{request.url.path}?{query}" if query else request.url.path
