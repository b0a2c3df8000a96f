"""Errors in the form of Anthropic's API: https://docs.claude.com/en/api/errors.

`type` says what went wrong; the HTTP status is the same as on every route (424 for a provider's fault).
"""

from typing import Any

import orjson

from opensearch_ml_stream.connectors.errors import CONTEXT_LENGTH_EXCEEDED, InvalidRequest, MLStreamError

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}
_OVERLOADED = (503, 529)
_TIMED_OUT = (408, 504)
_PROVIDER_FAULT = 424
_TOO_LONG = "prompt is too long"  # clients shorten their conversation on these words


class ThreadUnsupported(InvalidRequest):
    """A request wants its messages stored, so that the next one has only the new ones.

    Its details tell the SDK, whose tool runner does so by default, to send whole conversations from now on.
    """

    def __init__(self) -> None:
        super().__init__("thread: The messages of a conversation are not stored for this model; send all of them")


def error_type(error: MLStreamError) -> str:
    """Return Anthropic's name for an error. A provider's 401 or 404 is no fault of the client: it is an `api_error`."""
    if error.status == _PROVIDER_FAULT:
        if error.provider_status in _OVERLOADED:
            return "overloaded_error"
        is_late = error.provider_status in _TIMED_OUT or error.type == "timeout_exception"
        return "timeout_error" if is_late else "api_error"
    found = _TYPES.get(error.status)
    if found is None:
        return "invalid_request_error" if error.status < 500 else "api_error"
    return found


def error_body(error: MLStreamError) -> bytes:
    """Encode an error. The request's id is only in the header `X-Request-Id`."""
    members: dict[str, Any] = {"type": error_type(error), "message": _message(error), **error.provider_fields()}
    if isinstance(error, ThreadUnsupported):
        members["details"] = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    return orjson.dumps({"type": "error", "error": members, "request_id": None})


def _message(error: MLStreamError) -> str:
    """Return the reason, after Anthropic's own words if another provider says that a conversation is too long."""
    is_too_long = error.provider.code == CONTEXT_LENGTH_EXCEEDED and _TOO_LONG not in error.reason.lower()
    return f"{_TOO_LONG}: {error.reason}" if is_too_long else error.reason
