"""Logs a line for each request that failed, and for every request where the access log is on."""

import logging
import re
import sys
from collections.abc import Callable
from itertools import count
from secrets import token_hex
from time import monotonic
from typing import Any, Protocol

from starlette.types import Scope

from opensearch_ml_stream.connectors.errors import MLStreamError, UpstreamError
from opensearch_ml_stream.plugin.logs.configuration import ACCESS_LOGGER, FIELDS, KIND, LOGGER
from opensearch_ml_stream.rest_handlers.http.asgi_extensions import RequestNotes

_MODEL = re.compile(r"/models/([^/]+)/_")

log = logging.getLogger(LOGGER)
access = logging.getLogger(ACCESS_LOGGER)


class HandledRequest(Protocol):
    """A request whose response has ended. Times are seconds of `time.monotonic`, 0 for what did not happen."""

    scope: Scope
    notes: RequestNotes
    begun: float
    first_byte: float
    status: int
    ended: bool
    disconnected: bool


class RequestLog:
    """The log of one worker's requests; `is_access_logged` is asked once a request, `ids` has one for each."""

    def __init__(self, is_access_logged: Callable[[], bool] = lambda: False) -> None:
        self._is_access_logged = is_access_logged
        self.ids = map((token_hex(4) + "-{:x}").format, count(1))

    def ended(self, request: HandledRequest) -> None:
        """Log a request whose response has ended."""
        notes = request.notes
        if notes.error is not None:
            self._write_error(request, notes.error)
        if self._is_access_logged():
            self._write_access(request)
        notes.error = notes.stream = None  # an error holds the frames that hold the notes

    def exception(self, request: HandledRequest, message: str) -> None:
        """Log a defect of ours, with the lines of code that led to the exception that is being handled, if one is."""
        defect = sys.exception()
        log.error(message, exc_info=defect, extra={FIELDS: _about(request), KIND: (message, type(defect))})
        request.notes.error = None

    def _write_error(self, request: HandledRequest, error: MLStreamError) -> None:
        is_providers = isinstance(error, UpstreamError)
        level = logging.ERROR if error.status >= 500 else logging.INFO
        if is_providers or error.status == 429:
            level = logging.WARNING
        if not log.isEnabledFor(level):
            return
        about = _about(request)
        fields = {
            **about,
            "status": error.status,
            "provider_status": error.provider_status,
            "provider_code": error.provider.code,
            "type": error.type,
            "reason": error.reason,
            "chunks": _chunks(request.notes),
            "duration_ms": _milliseconds(request, monotonic()),
        }
        # Only a model that exists has a provider; what else callers name is without number.
        kind = (error.status, error.type, about["model"] if is_providers else None)
        log.log(level, "request failed", extra={FIELDS: fields, KIND: kind})

    def _write_access(self, request: HandledRequest) -> None:
        client = request.scope.get("client")
        fields = {
            **_about(request),
            "client": client[0] if client else None,
            "status": request.status or None,
            "outcome": _outcome(request),
            "chunks": _chunks(request.notes),
            "first_byte_ms": _milliseconds(request, request.first_byte) if request.first_byte else None,
            "duration_ms": _milliseconds(request, monotonic()),
        }
        access.info("request", extra={FIELDS: fields})


def _about(request: HandledRequest) -> dict[str, Any]:
    scope = request.scope
    opaque_ids = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-opaque-id"]
    match = _MODEL.search(scope["path"])
    return {
        "id": request.notes.id,
        "opaque_id": opaque_ids[0] if opaque_ids else None,
        "method": scope["method"],
        "path": scope["path"],  # without its query, which may hold a body
        "model": match[1] if match else request.notes.model,
    }


def _outcome(request: HandledRequest) -> str:
    if request.disconnected and not request.ended:
        return "client_left"
    return "error" if request.notes.error is not None or request.status >= 400 or not request.ended else "ok"


def _chunks(notes: RequestNotes) -> int | None:
    return None if notes.stream is None else notes.stream.chunks


def _milliseconds(request: HandledRequest, time: float) -> float:
    return round((time - request.begun) * 1000, 1)
