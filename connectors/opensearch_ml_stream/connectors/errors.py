"""Everything that can go wrong, with the status and the type that a caller sees.

    MLStreamError
    ├── InvalidRequest      400  the caller's request, or the connector's template with it
    ├── Forbidden           403  disabled model, not permitted
    ├── NotFound            404  no such model, connector, task, group
    ├── NotAcceptable       406  a body that is not JSON by its content type
    ├── Conflict            409  in use, already there
    ├── BodyTooLarge        413
    ├── Throttled           429  our own limit; carries `retry_after`
    ├── Internal            500  stored data that cannot be read, a wrong encryption key
    ├── Unavailable         503  our own store does not answer (never used for a provider)
    └── UpstreamError       424  the provider; 400 and 429 keep their status
        └── StreamTruncated 424  the provider closed without its terminator

No message ever holds a credential or a prompt. A provider's fault is never a 502, 503 or 504: OpenSearch
clients re-send those, and the caller would pay for the same prompt again.
"""

from typing import Any


class MLStreamError(Exception):
    """`reason` is the text for the caller; `type` is OpenSearch's snake-case exception name."""

    status = 500
    type = "status_exception"

    def __init__(
        self,
        reason: str,
        *,
        type: str | None = None,
        retry_after: str | None = None,
        provider_status: int | None = None,
    ) -> None:
        # Half a surrogate pair, which JSON can name, would make the answer unwritable.
        reason = reason.encode("utf-8", "replace").decode()
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after
        self.provider_status = provider_status
        if type is not None:
            self.type = type

    def body(self) -> dict[str, Any]:
        """OpenSearch's error object: `{"error": {"root_cause": [...], "type", "reason"}, "status"}`."""
        cause: dict[str, Any] = {"type": self.type, "reason": self.reason}
        error: dict[str, Any] = {"root_cause": [cause], **cause}
        if self.provider_status is not None:
            error["provider_status"] = self.provider_status
        return {"error": error, "status": self.status}


class InvalidRequest(MLStreamError):
    status = 400
    type = "illegal_argument_exception"


class Forbidden(MLStreamError):
    status = 403


class NotFound(MLStreamError):
    status = 404


class NotAcceptable(MLStreamError):
    status = 406

    def body(self) -> dict[str, Any]:
        """OpenSearch has a bare text here."""
        return {"error": self.reason, "status": self.status}


class Conflict(MLStreamError):
    status = 409


class BodyTooLarge(MLStreamError):
    status = 413


class Throttled(MLStreamError):
    status = 429


class Internal(MLStreamError):
    status = 500


class Unavailable(MLStreamError):
    status = 503


class UpstreamError(MLStreamError):
    """The provider's fault. `provider_status` is the HTTP status it answered with, if it answered."""

    status = 424

    def __init__(
        self,
        reason: str,
        *,
        type: str | None = None,
        retry_after: str | None = None,
        provider_status: int | None = None,
    ) -> None:
        super().__init__(reason, type=type, retry_after=retry_after, provider_status=provider_status)
        self.status = _status_for_caller(provider_status)


class StreamTruncated(UpstreamError):
    type = "stream_truncated_exception"


def _status_for_caller(provider_status: int | None) -> int:
    if provider_status in (400, 422):
        return 400
    return 429 if provider_status == 429 else 424
