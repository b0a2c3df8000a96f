"""Date maths and formats, as OpenSearch reads them; the store contract compares them with it."""

from datetime import UTC, datetime

import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.store.sqlite_dates import DEFAULT_FORMAT, parse_date

NOW = datetime(2024, 2, 29, 13, 45, 30, 250_000, tzinfo=UTC)  # a Thursday


def read(text: str, format: str = DEFAULT_FORMAT, *, round_up: bool = False) -> str:
    milliseconds = parse_date(text, format, NOW, round_up=round_up)
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("now", "2024-02-29T13:45:30.250", "2024-02-29T13:45:30.250"),
        ("now-1d", "2024-02-28T13:45:30.250", "2024-02-28T13:45:30.250"),
        ("now-y", "2023-02-28T13:45:30.250", "2023-02-28T13:45:30.250"),
        ("now+1M", "2024-03-29T13:45:30.250", "2024-03-29T13:45:30.250"),
        ("now-2M-1h", "2023-12-29T12:45:30.250", "2023-12-29T12:45:30.250"),
        ("now/d", "2024-02-29T00:00:00.000", "2024-02-29T23:59:59.999"),
        ("now/1d", "2024-02-29T00:00:00.000", "2024-02-29T23:59:59.999"),
        ("now/w", "2024-02-26T00:00:00.000", "2024-03-03T23:59:59.999"),
        ("now/M", "2024-02-01T00:00:00.000", "2024-02-29T23:59:59.999"),
        ("now/y", "2024-01-01T00:00:00.000", "2024-12-31T23:59:59.999"),
        ("now/H", "2024-02-29T13:00:00.000", "2024-02-29T13:59:59.999"),
        ("now/m+30s", "2024-02-29T13:45:30.000", "2024-02-29T13:46:29.999"),
        ("now/s", "2024-02-29T13:45:30.000", "2024-02-29T13:45:30.999"),
        ("2024-01-31T10:20:30.4Z", "2024-01-31T10:20:30.400", "2024-01-31T10:20:30.400"),
        ("2024-01-31T10:20:30.400+0130", "2024-01-31T08:50:30.400", "2024-01-31T08:50:30.400"),
        ("2024-01-31T10:20:30.400Z||+1M", "2024-02-29T10:20:30.400", "2024-02-29T10:20:30.400"),
        ("-1000", "1969-12-31T23:59:59.000", "1969-12-31T23:59:59.000"),
        ("0||/d", "1970-01-01T00:00:00.000", "1970-01-01T23:59:59.999"),
    ],
)
def test_date_maths_is_done_from_left_to_right(text: str, first: str, last: str) -> None:
    assert (read(text), read(text, round_up=True)) == (first, last)


@pytest.mark.parametrize(
    ("text", "format", "first", "last"),
    [
        ("2024", "yyyy", "2024-01-01T00:00:00.000", "2024-01-01T23:59:59.999"),
        ("2024-03", "strict_year_month", "2024-03-01T00:00:00.000", "2024-03-01T23:59:59.999"),
        ("2024-03-02", "strict_date||epoch_millis", "2024-03-02T00:00:00.000", "2024-03-02T23:59:59.999"),
        ("5", "strict_date||epoch_millis", "1970-01-01T00:00:00.005", "1970-01-01T00:00:00.005"),
        ("5", "epoch_second", "1970-01-01T00:00:05.000", "1970-01-01T00:00:05.999"),
        ("2024-03-02T10", "strict_date_optional_time", "2024-03-02T10:00:00.000", "2024-03-02T10:59:59.999"),
        ("2.3.2024", "dd.MM.yyyy", "", ""),
        ("02.03.2024", "dd.MM.yyyy", "2024-03-02T00:00:00.000", "2024-03-02T23:59:59.999"),
        ("2024-03-02T10:11:12.013+02:00", "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
         "2024-03-02T08:11:12.013", "2024-03-02T08:11:12.013"),
    ],
)  # fmt: skip
def test_a_format_is_a_name_or_letters(text: str, format: str, first: str, last: str) -> None:
    if not first:
        with pytest.raises(InvalidRequest, match="failed to parse date field"):
            read(text, format)
        return
    assert (read(text, format), read(text, format, round_up=True)) == (first, last)


@pytest.mark.parametrize(
    ("text", "format", "reason"),
    [
        ("yesterday", DEFAULT_FORMAT, r"date field \[yesterday\] with format \[strict_date_time\|\|epoch_millis\]"),
        ("2024-02-30T10:20:30.400Z", DEFAULT_FORMAT, "failed to parse date field"),
        ("", DEFAULT_FORMAT, "cannot parse empty date"),
        ("now+99999999999y", DEFAULT_FORMAT, "failed to parse date field"),
        ("now-" + "9" * 5000 + "d", DEFAULT_FORMAT, "failed to parse date field"),
        ("now/2d", DEFAULT_FORMAT, "can only be used on single unit types"),
        ("now/", DEFAULT_FORMAT, r"truncated date math \[/\]"),
        ("now*2", DEFAULT_FORMAT, r"operator not supported for date math \[\*2\]"),
        ("now-1.5d", DEFAULT_FORMAT, r"unit \[.\] not supported for date math"),
        ("9" * 30, DEFAULT_FORMAT, "failed to parse date field"),
        ("x", "nonsense", r"Invalid format: \[nonsense\]: the embedded store knows epoch_millis"),
        ("x", "yyyyyyyy", "Invalid format"),
        ("x", "yyyy-" * 100, "Invalid format"),
        ("x", "", "Invalid format"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, format: str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        read(text, format)
