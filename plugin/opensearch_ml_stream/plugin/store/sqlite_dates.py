"""Dates in queries of the embedded store: date maths, and the formats that a `range` may name.

They are read as OpenSearch reads them: https://docs.opensearch.org/latest/field-types/supported-field-types/date/.
Dates without a zone are UTC. Parts that a date leaves out are read as their first moment, or as their last where a
range includes all of it.
"""

import re
from calendar import monthrange
from datetime import UTC, datetime, timedelta

from opensearch_ml_stream.connectors.errors import InvalidRequest

DEFAULT_FORMAT = "strict_date_time||epoch_millis"  # of every date in the mappings
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_FORMAT_CHARS = 200

_DAY = r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?"
_ZONE = r"(?P<zone>Z|[+-]\d\d:?\d\d)"
_OPTIONAL_TIME = (
    r"(?P<year>\d{4})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d)(?:T(?:(?P<hour>\d\d)(?::(?P<minute>\d\d)"
    rf"(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{{1,9}}))?)?)?)?{_ZONE}?)?)?)?"
)
_NAMED = {
    "date_time": f"{_DAY}T{_TIME}{_ZONE}",
    "date_time_no_millis": f"{_DAY}T{_TIME}{_ZONE}",
    "date_optional_time": _OPTIONAL_TIME,
    "date": _DAY,
    "year": r"(?P<year>\d{4})",
    "year_month": r"(?P<year>\d{4})-(?P<month>\d\d)",
}
_LETTERS = {
    "yyyy": r"(?P<year>\d{4})", "uuuu": r"(?P<year>\d{4})", "MM": r"(?P<month>\d\d)", "dd": r"(?P<day>\d\d)",
    "HH": r"(?P<hour>\d\d)", "mm": r"(?P<minute>\d\d)", "ss": r"(?P<second>\d\d)", "SSS": r"(?P<fraction>\d{3})",
    "XXX": _ZONE,
}  # fmt: skip
_LETTER = re.compile(r"yyyy|uuuu|MM|dd|HH|mm|ss|SSS|XXX|'([A-Za-z]*)'|[-/:., _]")
_EPOCHS = {"epoch_millis": 1, "epoch_second": 1000}
_NUMBER = re.compile(r"(-?\d{1,18})(?:\.\d*)?")
_STEP = re.compile(r"([+\-/])(\d*)([yMwdhHms])")
_UNITS = {"w": timedelta(weeks=1), "d": timedelta(days=1), "h": timedelta(hours=1), "H": timedelta(hours=1),
          "m": timedelta(minutes=1), "s": timedelta(seconds=1)}  # fmt: skip
_MONTHS = {"y": 12, "M": 1}


def parse_date(text: str, format: str, now: datetime, *, round_up: bool = False) -> int:
    """Return epoch milliseconds of a date, or of `now` or a date with date maths behind it.

    InvalidRequest names what cannot be read.
    """
    if not text:
        raise _unreadable("cannot parse empty date")
    try:
        if text.startswith("now"):
            moment, maths = now, text.removeprefix("now")
        else:
            date, separator, maths = text.partition("||")
            moment = _EPOCH + timedelta(milliseconds=_date(date, format, round_up and not separator))
        return (_calculated(moment, maths, round_up) - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        raise _unreadable(f"failed to parse date field [{text}] with format [{format}]") from None


def _date(text: str, format: str, round_up: bool) -> int:
    for name in format[: _MAX_FORMAT_CHARS + 1].split("||"):
        if unit := _EPOCHS.get(name):
            if number := _NUMBER.fullmatch(text):
                return int(number[1]) * unit + (unit - 1 if round_up else 0)
        elif found := re.fullmatch(_pattern(name, format), text, re.ASCII):
            return _milliseconds(found.groupdict(), round_up)
    raise ValueError(text)


def _pattern(name: str, format: str) -> str:
    """Return the pattern of a format, which has a name or is written in Java's letters."""
    if known := _NAMED.get(name.removeprefix("strict_")):
        return known
    pattern, at = "", 0
    while len(format) <= _MAX_FORMAT_CHARS and at < len(name) and (found := _LETTER.match(name, at)):
        letters = found[0]
        pattern += re.escape(found[1]) if found[1] is not None else _LETTERS.get(letters, re.escape(letters))
        at = found.end()
    if not name or at < len(name) or any(pattern.count(group) > 1 for group in _LETTERS.values()):
        known_names = ", ".join([*_EPOCHS, *(f"strict_{known}" for known in _NAMED)])
        raise InvalidRequest(
            f"Invalid format: [{format[:_MAX_FORMAT_CHARS]}]: the embedded store knows {known_names}, and patterns of "
            f"{', '.join(_LETTERS)}"
        )
    return pattern


def _milliseconds(parts: dict[str, str | None], round_up: bool) -> int:
    def part(name: str, otherwise: int) -> int:
        return int(parts.get(name) or otherwise)

    last = (23, 59, 59) if round_up else (0, 0, 0)
    moment = datetime(
        part("year", 1970), part("month", 1), part("day", 1),
        part("hour", last[0]), part("minute", last[1]), part("second", last[2]), tzinfo=UTC,
    )  # fmt: skip
    fraction = parts.get("fraction") or ("999" if round_up else "0")
    zone = (parts.get("zone") or "Z").replace(":", "")
    offset = 0 if zone == "Z" else int(f"{zone[0]}1") * (int(zone[1:3]) * 60 + int(zone[3:5]))
    return (moment - _EPOCH) // timedelta(milliseconds=1) + int(f"{fraction:0<3.3}") - offset * 60_000


def _calculated(moment: datetime, maths: str, round_up: bool) -> datetime:
    """Return the moment after each step of date maths: `+1d`, `-h`, `/d`."""
    at = 0
    while at < len(maths):
        step = _STEP.match(maths, at)
        if step is None:
            raise _unreadable(_unreadable_step(maths[at:]))
        operator, number, unit = step.groups()
        if operator == "/":
            if number not in ("", "1"):
                raise _unreadable(f"rounding `/` can only be used on single unit types [{maths}]")
            moment = _first_moment(moment, unit)
            if round_up:
                moment = _moved(moment, unit, 1) - timedelta(milliseconds=1)
        else:
            moment = _moved(moment, unit, int(f"{operator}{number or 1}"))
        at = step.end()
    return moment


def _unreadable_step(rest: str) -> str:
    if rest[0] not in "+-/":
        return f"operator not supported for date math [{rest}]"
    unit = rest[1:].lstrip("0123456789")[:1]
    return f"unit [{unit}] not supported for date math [{rest}]" if unit else f"truncated date math [{rest}]"


def _moved(moment: datetime, unit: str, count: int) -> datetime:
    if unit not in _MONTHS:
        return moment + count * _UNITS[unit]
    years, month = divmod(moment.year * 12 + moment.month - 1 + count * _MONTHS[unit], 12)
    day = min(moment.day, monthrange(years, month + 1)[1])
    return moment.replace(year=years, month=month + 1, day=day)


def _first_moment(moment: datetime, unit: str) -> datetime:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "y":
            return day.replace(month=1, day=1)
        case "M":
            return day.replace(day=1)
        case "w":
            return day - timedelta(days=day.weekday())
        case "d":
            return day
        case "h" | "H":
            return moment.replace(minute=0, second=0, microsecond=0)
        case "m":
            return moment.replace(second=0, microsecond=0)
        case _:
            return moment.replace(microsecond=0)


def _unreadable(reason: str) -> InvalidRequest:
    return InvalidRequest(reason, type="parse_exception")
