"""The header `Retry-After` (RFC 9110, section 10.2.3)."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MAX_RETRY_AFTER_CHARS = 64  # a date has 29


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
