"""Values of typed fields in queries of the embedded store: read as OpenSearch reads them, or refused as it does."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.store.sqlite_dates import DEFAULT_FORMAT, parse_date
from opensearch_ml_stream.plugin.store.sqlite_field_values import Field, exact

_NUMBER = re.compile(r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,3})?", re.ASCII)
_INTEGERS = {"integer": 2**31, "long": 2**63}
_NUMBERS = (*_INTEGERS, "float", "double")
_NO_PATTERNS = ("_id", "boolean", "date", *_NUMBERS)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

Bounds = tuple[Any, Any]
"""The least and the greatest value that equals what a query names: a date without its time is a whole day."""


def read_value(field: Field, value: object) -> Any:
    """Return a stored value as it is compared, None for one that OpenSearch would not have taken."""
    read = _date if field.type == "date" else _number if field.type in _NUMBERS else None
    if read is None:
        return exact(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    try:
        return read(field, value)
    except InvalidRequest:
        return None


def read_bounds(field: Field, value: object, now: datetime) -> Bounds:
    """Return what equals a value of a query. InvalidRequest if the field's type has no such value."""
    if field.type == "date" and not isinstance(value, int):
        _check_scalar(field, value)
        low, high = (parse_date(exact(value), DEFAULT_FORMAT, now, round_up=up) for up in (False, True))
        return low, high
    single = read_limit(field, value, now, DEFAULT_FORMAT, round_up=False)
    return single, single


def read_limit(field: Field, value: object, now: datetime, date_format: str, *, round_up: bool) -> Any:
    """Return a limit of a range. InvalidRequest if the field's type has no such value."""
    _check_scalar(field, value)
    match field.type:
        case "_id" | "binary":
            return exact(value)
        case "date":
            return parse_date(exact(value), date_format, now, round_up=round_up)
        case "boolean" if exact(value) not in ("true", "false"):
            raise _refused(f"Can't parse boolean value [{value}], expected [true] or [false]")
        case "integer" | "long" | "float" | "double":
            return _number(field, value)
        case _:
            return exact(value)


def check_pattern(field: Field, kind: str) -> None:
    """Raise InvalidRequest for a field whose values are no texts."""
    if field.type in _NO_PATTERNS:
        raise InvalidRequest(
            f"Can only use {kind} queries on keyword and text fields - not on [{field.name}] which is of type "
            f"[{field.type}]",
            type="query_shard_exception",
        )


def check_searchable(field: Field) -> None:
    """Raise InvalidRequest for a field that holds bytes."""
    if field.type == "binary":
        raise InvalidRequest("Binary fields do not support searching", type="query_shard_exception")


def _check_scalar(field: Field, value: object) -> None:
    if value is None or isinstance(value, Mapping | list):
        raise InvalidRequest(f"value for [{field.name}] must be a string, a number or a boolean")


def _number(field: Field, value: object) -> int | float:
    text = exact(value)
    if _NUMBER.fullmatch(text) is None:
        raise _refused(f'For input string: "{text}"')
    number = int(text) if text.lstrip("+-").isdigit() else float(text)
    if not abs(number) < _INTEGERS.get(field.type or "", float("inf")):
        raise _refused(f"Value [{text}] is out of range for a field of type [{field.type}]")
    return number


def _date(field: Field, value: object) -> int:
    return parse_date(exact(value), DEFAULT_FORMAT, _LONG_AGO)


def _refused(reason: str) -> InvalidRequest:
    return InvalidRequest(f"failed to create query: {reason}", type="query_shard_exception")
