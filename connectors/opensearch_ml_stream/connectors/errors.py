"""The error family of the whole package: each error holds the HTTP status, type and reason that the caller sees.

    MLStreamError
    ├── InvalidRequest      400  the caller's request, or the connector's template filled with it
    │   └── FeatureDisabled 400  a request for what a setting has switched off, where ML Commons has no 403 for it
    ├── Unauthorized        401  no valid credentials of a caller (never used for a provider)
    ├── Forbidden           403  a disabled model or feature, a missing permission
    ├── NotFound            404  no such model, connector, task, group
    ├── MethodNotAllowed    405  a method that a path does not have
    ├── NotAcceptable       406  a request body whose content type is not JSON
    ├── RequestTimeout      408  a request that does not come to its end
    ├── Conflict            409  in use, or existing already
    ├── BodyTooLarge        413  a request body over the limit
    ├── MisdirectedRequest  421  a `Host` that is none of this sidecar's names
    ├── InvalidBody         422  a body that is no request of the V2 protocol; holds `detail`
    ├── Throttled           429  a limit of this sidecar; holds `retry_after`
    ├── HeadTooLarge        431  a request head over the limits
    ├── Internal            500  stored data that cannot be read, a wrong encryption key
    ├── Unavailable         503  the sidecar's own store does not respond (never used for a provider)
    └── UpstreamError       424  the provider failed; its 400 and 429 keep their status
        ├── StreamTruncated 424  the provider closed the stream before its terminator
        └── UnreadableEvent 424  an event of a stream is of no form that is expected there

No reason ever holds a credential or a prompt. A failing provider is never a 502, 503 or 504: OpenSearch clients retry
those, and the caller would pay for the same prompt again.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

MAX_REASON_CHARS = 16_384  # a reason may name what the caller wrote, which may be a whole body

CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded"
"""The code of every error for a conversation that is too long for its model, however its provider says that."""


class ProviderWords(NamedTuple):
    """What a provider's error says beside its message, None for what it does not: by it programs tell errors apart.

    `param` is the member of the request that is wrong.
    """

    code: str | None = None
    type: str | None = None
    param: str | None = None


_NO_WORDS = ProviderWords()


class MLStreamError(Exception):
    """An error with the response that the caller gets.

    `reason` is the message, `type` OpenSearch's snake-case exception name, `retry_after` the value of the header
    `Retry-After`, `provider_status` the HTTP status of the provider's response, if there was one, `provider` what else
    the provider's error says.
    """

    status = 500
    type = "status_exception"
    provider = _NO_WORDS

    def __init__(
        self,
        reason: str,
        *,
        type: str | None = None,
        retry_after: str | None = None,
        provider_status: int | None = None,
    ) -> None:
        # JSON can name half a surrogate pair, which cannot be encoded in UTF-8.
        reason = reason[:MAX_REASON_CHARS].encode("utf-8", "replace").decode()
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after
        self.provider_status = provider_status
        if type is not None:
            self.type = type

    def body(self) -> dict[str, Any]:
        """Return OpenSearch's error body: `{"error": {"root_cause": [...], "type", "reason"}, "status"}`."""
        cause: dict[str, Any] = {"type": self.type, "reason": self.reason}
        return {"error": {"root_cause": [cause], **cause, **self.provider_fields()}, "status": self.status}

    def provider_fields(self) -> dict[str, int | str]:
        """Return what is known of the provider's error beside its message: status, code, type and param."""
        code, type, param = self.provider
        fields = {
            "provider_status": self.provider_status,
            "provider_code": code,
            "provider_type": type,
            "provider_param": param,
        }
        return {name: value for name, value in fields.items() if value is not None}


class InvalidRequest(MLStreamError):
    """The caller's request, or the connector's template filled with it, is wrong."""

    status = 400
    type = "illegal_argument_exception"


class FeatureDisabled(InvalidRequest):
    """A setting has switched off what the request asks for, and ML Commons has no 403 for it."""

    type = "status_exception"


class Unauthorized(MLStreamError):
    """The request has no credentials of a caller, or wrong ones; which of these is not said.

    `challenge` is the value of the header `WWW-Authenticate`.
    """

    status = 401
    type = "security_exception"

    def __init__(self, challenge: str = 'Basic realm="opensearch-ml-stream", charset="UTF-8"') -> None:
        super().__init__("Unauthorized")
        self.challenge = challenge


class Forbidden(MLStreamError):
    """The model or feature is disabled, or the caller lacks the permission."""

    status = 403


class NotFound(MLStreamError):
    """The model, connector, task or model group does not exist."""

    status = 404


class MethodNotAllowed(MLStreamError):
    """A path does not have the request's method; said so where errors have a form that is not OpenSearch's."""

    status = 405


class NotAcceptable(MLStreamError):
    """The content type of the request body is not JSON."""

    status = 406

    def body(self) -> dict[str, Any]:
        """Return OpenSearch's error body for this status, whose `error` is a bare string."""
        return {"error": self.reason, "status": self.status}


class RequestTimeout(MLStreamError):
    """The client takes too long to send its request."""

    status = 408
    type = "timeout_exception"


class Conflict(MLStreamError):
    """The resource is in use, exists already, or was changed at the same time."""

    status = 409


class BodyTooLarge(MLStreamError):
    """The request body is over the limit."""

    status = 413


class MisdirectedRequest(MLStreamError):
    """The request's `Host` is none of this sidecar's names."""

    status = 421


class InvalidBody(MLStreamError):
    """The body is no request of the V2 protocol.

    `detail` says what is wrong and where, as servers made with FastAPI do: `[{"type", "loc", "msg"}]`.
    """

    status = 422
    type = "parse_exception"

    def __init__(self, reason: str, detail: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(reason)
        self.detail = detail


class Throttled(MLStreamError):
    """A limit of this sidecar is reached; `limit` names it in the metrics, if it is one of a model."""

    status = 429

    def __init__(
        self, reason: str, *, type: str | None = None, retry_after: str | None = None, limit: str | None = None
    ) -> None:
        super().__init__(reason, type=type, retry_after=retry_after)
        self.limit = limit


class HeadTooLarge(MLStreamError):
    """The request's URL and headers are over their limits."""

    status = 431
    type = "too_long_http_header_exception"


class Internal(MLStreamError):
    """Stored data cannot be read, or the encryption key does not fit."""

    status = 500


class Unavailable(MLStreamError):
    """The sidecar's own store does not respond, or the sidecar is stopping."""

    status = 503


class UpstreamError(MLStreamError):
    """The provider failed. The status is 400 for its 400 and 422, 429 for its 429, and 424 for anything else.

    A conversation that is too long is the caller's to mend, 400 whatever the provider's status is.
    """

    status = 424

    def __init__(
        self,
        reason: str,
        *,
        type: str | None = None,
        retry_after: str | None = None,
        provider_status: int | None = None,
        provider: ProviderWords = _NO_WORDS,
    ) -> None:
        super().__init__(reason, type=type, retry_after=retry_after, provider_status=provider_status)
        self.provider = provider
        self.status = 400 if provider.code == CONTEXT_LENGTH_EXCEEDED else _status_for_caller(provider_status)

    def redacted(self, redact: Callable[[str], str]) -> Self:
        """Return this error with what the provider wrote in it as `redact` returns it."""
        return type(self)(
            redact(self.reason),
            type=self.type,
            retry_after=self.retry_after and _unless_changed(self.retry_after, redact),
            provider_status=self.provider_status,
            provider=ProviderWords(*[word and redact(word) for word in self.provider]),
        )


class StreamTruncated(UpstreamError):
    """The provider closed the stream before its terminator."""

    type = "stream_truncated_exception"


class UnreadableEvent(UpstreamError):
    """The provider sent an event that may hold a part of its response, and is of no form that is expected there."""


def _status_for_caller(provider_status: int | None) -> int:
    if provider_status in (400, 422):
        return 400
    return 429 if provider_status == 429 else 424


def _unless_changed(text: str, redact: Callable[[str], str]) -> str | None:
    return text if redact(text) == text else None
