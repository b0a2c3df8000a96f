"""The errors of the clients: one family, by what a caller can do about them.

SidecarError
├── RequestRefused    the request is wrong, not allowed, over a limit, or cannot be served now: `status` says which
├── ProviderFailed    the model's provider failed, or refused what it was sent
├── StreamTruncated   the response ended before its last chunk
└── ConnectionFailed  no response came; `__cause__` is the error of the HTTP client
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

_MAX_TEXT = 200  # characters of an error response that is not JSON, such as a page of a proxy


class SidecarError(Exception):
    """A prediction or another request that failed.

    Attributes:
        reason: What went wrong, in the server's words.
        status: The HTTP status; that of an error inside a stream is the one that it would have had before. None if no
            response came.
        type: OpenSearch's name of the error in snake case, e.g. `budget_exceeded_exception`; empty if there is none.
        provider_status: The HTTP status of the provider, if it is known.
        provider_code: The code of the provider's error, if it has one; `context_length_exceeded` for every conversation
            that is too long for its model.
        retry_after: Seconds to wait before another try, if the server says so.
    """

    provider_code: str | None = None

    def __init__(
        self,
        reason: str,
        *,
        status: int | None = None,
        type: str = "",
        provider_status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.type = type
        self.provider_status = provider_status
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.reason if self.status is None else f"{self.reason} (status {self.status})"


class RequestRefused(SidecarError):
    """The sidecar refuses the request, or cannot serve it now: 400, 401, 403, 404, 429, 503, ..."""


class ProviderFailed(SidecarError):
    """The model's provider failed (424), or refused what it was sent (400, 429)."""


class StreamTruncated(SidecarError):
    """A response that ended before its last chunk; what came before is only a part."""


class ConnectionFailed(SidecarError):
    """No response came: nothing listens there, its certificate is not trusted, or it was silent for too long."""


def truncated(why: str) -> StreamTruncated:
    """Return the error for a response that ended before its last chunk."""
    reason = f"The response is incomplete: {why}"
    return StreamTruncated(reason, status=424, type="stream_truncated_exception")


def silent() -> StreamTruncated:
    """Return the error for a response that was silent for too long."""
    return truncated("nothing came for too long, not even a heartbeat")


def broken(cause: Exception) -> StreamTruncated:
    """Return the error for a response whose connection broke."""
    return truncated(f"the connection broke ({type(cause).__name__})")


def connection_failed(address: str, cause: Exception) -> ConnectionFailed:
    """Return the error for a request that got no response."""
    return ConnectionFailed(f"No response from {address}: {str(cause) or type(cause).__name__}")


def not_the_sidecar() -> SidecarError:
    """Return the error for a response that the sidecar would not send."""
    reason = "The server sent something that is no inference result; is it the sidecar?"
    return SidecarError(reason, status=424, type="invalid_stream_exception")


def error_response(status: int, body: bytes, retry_after: str | None) -> SidecarError:
    """Return the error for a response whose status is not 2xx, with the reason that its body gives."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        parsed = None
    if not (isinstance(parsed, dict) and "error" in parsed):
        text = body.decode("utf-8", "replace").strip()[:_MAX_TEXT]
        parsed = {"error": text or "The server gives no reason"}
    return server_error(parsed, status, _seconds(retry_after))


def server_error(body: Mapping[str, Any], status: int, retry_after: float | None = None) -> SidecarError:
    """Return the error in a JSON object of the server; a status in the object replaces the given one.

    `{"error": {"type", "reason"}, "status"}`, or `{"error": "reason", "type", "status"}` as ML Commons sends it.
    """
    error = body["error"]
    members: Mapping[str, Any] = error if isinstance(error, dict) else {**body, "reason": error}
    own_status, provider_status = body.get("status"), members.get("provider_status")
    status = own_status if isinstance(own_status, int) else status
    kind: type[SidecarError] = RequestRefused
    if members.get("type") == "stream_truncated_exception":
        kind = StreamTruncated
    elif status == 424 or provider_status is not None or members.get("provider_code") is not None:
        kind = ProviderFailed
    failed = kind(
        str(members.get("reason") or members.get("type")),
        status=status,
        type=str(members.get("type") or ""),
        provider_status=provider_status,
        retry_after=retry_after,
    )
    failed.provider_code = members.get("provider_code")
    return failed


def _seconds(retry_after: str | None) -> float | None:
    """Return the seconds that the header `Retry-After` asks to wait, None without one that can be read."""
    text = (retry_after or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
        now = datetime.now(UTC)
        return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - now).total_seconds())
    except (ValueError, OverflowError, IndexError, TypeError):  # what email.utils raises for what is no date
        return None
