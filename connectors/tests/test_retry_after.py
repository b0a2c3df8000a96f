"""How long a `Retry-After` header asks to wait."""

from datetime import UTC, datetime

import pytest

from opensearch_ml_stream.connectors.retry_after import retry_after_for_caller, retry_after_seconds, wait_seconds

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("Thu, 01 Jan 2026 00:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 00:00:30 -0000", 30.0),
        ("Thu, 01 Jan 2026 01:00:30 +0100", 30.0),
        ("Wed, 31 Dec 2025 23:00:00 GMT", 0.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("soon", None),
        ("Thu, 01 Jan 2026 00:00:30 +9999", None),
        ("Thu, 01 Jan 2026 00:00:30 +99999999999999", None),
        ("Thu, 01 Jan 2026 00:00:30 -999999999999999999", None),
        ("Thu, 01 Jan 99999 00:00:00 GMT", None),
        ("9" * 400, None),
        ("9" * 64, 1e64),
        ("-1", None),
        ("²", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(value, NOW) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds", "for_caller"),
    [
        ({"retry-after-ms": "350", "retry-after": "7"}, 0.35, "1"),
        ({"x-ms-retry-after-ms": "2000"}, 2.0, "2"),
        ({"retry-after-ms": "1500.5"}, 1.5005, "2"),
        ({"retry-after-ms": "0"}, 0.0, "0"),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0, "7"),
        ({"retry-after-ms": "-1"}, None, None),
        ({"retry-after-ms": "9" * 11}, None, None),
        ({"retry-after": "Thu, 01 Jan 2026 00:00:30 GMT"}, 30.0, "Thu, 01 Jan 2026 00:00:30 GMT"),
        ({"retry-after": "soon"}, None, None),
        ({}, None, None),
    ],
)
def test_milliseconds_come_first_and_are_rounded_up_for_callers(
    headers: dict[str, str], seconds: float | None, for_caller: str | None
) -> None:
    assert (wait_seconds(headers, NOW), retry_after_for_caller(headers)) == (seconds, for_caller)
