"""How long a response asks to wait: `Retry-After` (RFC 9110, section 10.2.3), or OpenAI's and Azure's milliseconds.

If both are present, the milliseconds count: they are exact.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import ceil

MAX_RETRY_AFTER_CHARS = 64  # a date has 29

# Seconds, or a date in one of the three forms that a recipient has to take (RFC 9110, sections 5.6.7 and 10.2.3).
_RETRY_AFTER = re.compile(r"[0-9]{1,10}|[A-Z][a-z]{2,8},? [A-Za-z0-9: -]{16,24}( GMT)?")
_MILLISECONDS = re.compile(r"[0-9]{1,10}(\.[0-9]{1,9})?")
_IN_MILLISECONDS = ("retry-after-ms", "x-ms-retry-after-ms")


def wait_seconds(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds that the headers of a response, in lower case, ask to wait; None if they do not say."""
    millis = _milliseconds(headers)
    return retry_after_seconds(headers.get("retry-after"), now) if millis is None else millis / 1000


def retry_after_for_caller(headers: Mapping[str, str]) -> str | None:
    """Return the `Retry-After` that says to a caller what the headers of a response do; None without one that is right.

    It has whole seconds, so milliseconds are rounded up.
    """
    if (millis := _milliseconds(headers)) is not None:
        return str(ceil(millis / 1000))
    value = headers.get("retry-after")
    return value if value is not None and _RETRY_AFTER.fullmatch(value) else None


def retry_after_seconds(value: str | None, now: datetime) -> float | None:
    """Return the seconds that a `Retry-After` header asks for, None if it is unreadable."""
    if value is None:
        return None
    text = value.strip()
    if len(text) > MAX_RETRY_AFTER_CHARS:
        return None
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - now).total_seconds())
    except (ValueError, OverflowError, IndexError, TypeError):  # what email.utils raises for what is no date
        return None


def _milliseconds(headers: Mapping[str, str]) -> float | None:
    values = (headers.get(name) for name in _IN_MILLISECONDS)
    return next((float(value) for value in values if value is not None and _MILLISECONDS.fullmatch(value)), None)
