"""Errors in the form of OpenAI's API: `{"error": {"message", "type", "param", "code"}}`."""

import re
from collections.abc import Mapping
from typing import Any

import orjson

from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError

_INVALID = "invalid_request_error"
_TYPES: Mapping[int, tuple[str, str | None]] = {
    400: (_INVALID, None),
    401: ("authentication_error", "invalid_api_key"),
    403: ("permission_error", None),
    404: ("not_found_error", "model_not_found"),
    424: ("server_error", "provider_error"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
}  # the type and code of each status
_LIMITED = ("requests", "tokens")  # types of rate limits, which say what is limited
_PATH = r"[a-zA-Z_]\w*(?:\[\d+\]|\.\w+)*"
_MEMBER = re.compile(
    rf"({_PATH})(?= (?:must|is missing|cannot)\b)|\[({_PATH})\] "
)  # how the reason of an error about a member begins


def error_body(error: MLStreamError) -> bytes:
    """Encode an error with the type and code that its provider gave, else with those of its status.

    `param` is the member of the request that is wrong, if the reason begins with one.
    """
    other = ("server_error", None) if error.status >= 500 else (_INVALID, None)
    kind, code = _TYPES.get(error.status, other)
    member = _MEMBER.match(error.reason) if isinstance(error, InvalidRequest) else None
    body: dict[str, Any] = {
        "message": error.reason,
        "type": kind if error.provider.type in _LIMITED else error.provider.type or kind,
        "param": error.provider.param if member is None else member[1] or member[2],
        "code": error.provider.code or code,
    }
    if error.provider_status is not None:
        body["provider_status"] = error.provider_status
    return orjson.dumps({"error": body})
