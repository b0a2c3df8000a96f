"""Error responses: read a provider's response that is not 2xx as an error that callers may see."""

import re

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.plugin.credentials.redaction import Redactor
from opensearch_ml_stream.plugin.upstream import UpstreamResponse

# Seconds, or a date in one of the three forms that a recipient has to take (RFC 9110, sections 5.6.7 and 10.2.3).
_RETRY_AFTER = re.compile(r"[0-9]{1,10}|[A-Z][a-z]{2,8},? [A-Za-z0-9: -]{16,24}( GMT)?")

MAX_ERROR_BODY_BYTES = 64 * 1024  # of an error response no more is read; 2 KiB of it are shown


async def read_error(response: UpstreamResponse, redactor: Redactor) -> UpstreamError:
    """Read a response that is not 2xx: its body redacted, throttling as ML Commons words it."""
    parts: list[bytes] = []
    size = 0
    while size < MAX_ERROR_BODY_BYTES and (data := await response.read()):
        parts.append(data)
        size += len(data)
    text = redactor.error(b"".join(parts).decode("utf-8", "replace"))
    status = response.status
    throttled = response.headers.get("x-amzn-errortype", "").startswith("ThrottlingException")
    reason = (
        "The request was denied due to remote server throttling. "
        "To change the retry policy and behavior, please update the connector client_config."
        if throttled
        else text
    )
    return UpstreamError(
        f"Error from remote service: {reason}"
        if reason
        else f"Remote service returned error status {status} with empty body",
        type="remote_connector_throttling_exception" if throttled else None,
        retry_after=_retry_after(response.headers.get("retry-after"), redactor),
        provider_status=429 if throttled else status,
    )


def _retry_after(value: str | None, redactor: Redactor) -> str | None:
    """Return a provider's `Retry-After` for the caller, None if it is not of RFC 9110's form, or holds a credential."""
    if value is None or not _RETRY_AFTER.fullmatch(value) or redactor.error(value) != value:
        return None
    return value
