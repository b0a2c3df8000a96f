"""Fields in the embedded store: how OpenSearch compares the values of each type, in documents and in queries.

A `text` field is compared by its words in lower case, its `.keyword` sub-field as a whole. A `flat_object` is compared
by all values in it. A field inside a nested object has values only in a nested query, which looks at one object at a
time. Numbers, dates and booleans in queries are parsed as OpenSearch parses them, with the same errors.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.store import Document
from opensearch_ml_stream.plugin.store.sqlite_dates import DEFAULT_FORMAT, parse_date
from opensearch_ml_stream.plugin.store.sqlite_search_bounds import SearchWork, check_field_name

# Words as OpenSearch's standard analyser splits them: dots join digits or letters, colons letters; ideographs stand
# alone.
_WORD = re.compile(
    r"[\u3040-\u309f\u3400-\u9fff]"
    r"|[^\W\u3040-\u309f\u3400-\u9fff]+"
    r"(?:(?:(?<=\d)[.,](?=\d)|(?<=[^\W\d_])[.:'\u2019](?=[^\W\d_]))[^\W\u3040-\u309f\u3400-\u9fff]+)*"
)
_KEYWORD = ".keyword"
_CLOSED = ("flat_object", "nested", "opaque")
_STEPS_A_FIELD = 4
_STEPS_A_CLAUSE = 2
_TERMS_A_STEP = 8
_CHARS_A_STEP = 200

Types = Mapping[str, str]
"""The types of an index' fields by dotted path, as in `mappings.FIELDS`; in a nested query, of the nested object's."""
_NUMBER = re.compile(r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,3})?", re.ASCII)
_INTEGERS = {"integer": 2**31, "long": 2**63}
_NUMBERS = (*_INTEGERS, "float", "double")
_NO_PATTERNS = ("_id", "boolean", "date", *_NUMBERS)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
Bounds = tuple[Any, Any]
"""The least and the greatest value that equals what a query names: a date without its time is a whole day."""


class Kind(Enum):
    """How the values of a field are compared."""

    TEXT = "text"
    EXACT = "exact"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Field:
    """A field that a query names: how it is compared, and its values in a document.

    `type` is that of the mapping, None without one. `is_mapped`: documents that all lack the field can be sorted by it.
    """

    name: str
    kind: Kind
    read: Callable[[Document], list[Any]]
    type: str | None = None
    is_mapped: bool = True


class Candidate:
    """A document that may match: reads each field once, and counts the steps of each use."""

    __slots__ = ("_phrases", "_terms", "_values", "document", "work")

    def __init__(self, document: Document, work: SearchWork) -> None:
        self.document = document
        self.work = work
        self._values: dict[str, list[Any]] = {}
        self._terms: dict[str, list[str]] = {}
        self._phrases: dict[str, list[str]] = {}

    def values(self, field: Field) -> list[Any]:
        """Return the field's values that are no objects."""
        values = self._values.get(field.name)
        if values is None:
            values = self._values[field.name] = [value for value in self._read(field) if not isinstance(value, Mapping)]
        self.work.spend(1 + len(values))
        return values

    def terms(self, field: Field) -> list[str]:
        """Return the terms that queries compare: the words of a `text` field, else its values in one spelling."""
        terms = self._terms.get(field.name)
        if terms is None:
            values = self.values(field)
            terms = [term for value in values for term in (words(value) if field.kind is Kind.TEXT else [exact(value)])]
            self._terms[field.name] = terms
            self.work.spend(len(terms) + sum(map(len, terms)) // _CHARS_A_STEP)
        self.work.spend(_STEPS_A_CLAUSE + len(terms) // _TERMS_A_STEP)
        return terms

    def phrases(self, field: Field) -> list[str]:
        """Return each value of a `text` field as `phrase` writes it, to look for phrases in it."""
        phrases = self._phrases.get(field.name)
        if phrases is None:
            self.work.spend(len(self.terms(field)))
            phrases = self._phrases[field.name] = [phrase(words(value)) for value in self.values(field)]
        self.work.spend(_STEPS_A_CLAUSE + sum(map(len, phrases)) // _CHARS_A_STEP)
        return phrases

    def nested(self, path: str) -> Iterator["Candidate"]:
        """Yield each nested object at a path as a candidate with that object alone."""
        self.work.spend(_STEPS_A_FIELD)
        for value in _at(self.document.source, (path,)):
            self.work.spend(_STEPS_A_FIELD)
            if isinstance(value, Mapping):
                yield Candidate(replace(self.document, source={path: value}), self.work)

    def has_value(self, field: Field) -> bool:
        """Whether the field has a value that is not an object, at any depth."""
        return next(_leaves(self._read(field)), None) is not None

    def _read(self, field: Field) -> list[Any]:
        found = field.read(self.document)
        self.work.spend(_STEPS_A_FIELD + len(found))
        return found


def find_field(types: Types, name: str) -> Field:
    """Return the field of that name among those types; one without a mapping is treated as OpenSearch would map it."""
    check_field_name(name)
    if name == "_id":
        return Field(name, Kind.EXACT, lambda document: [document.id], "_id")
    path = name.removesuffix(_KEYWORD) if name not in types else name
    keys, kind = tuple(path.split(".")), types.get(path)
    has_keyword = kind in (None, "name", "roles")
    closed = _closed_by(types, path)
    if closed == "flat_object":
        every_key = tuple(name.split("."))
        return Field(name, Kind.EXACT, lambda document: list(_leaves(_at(document.source, every_key))), kind)
    if closed is not None:
        is_mapped = kind not in (None, closed) and (path == name or has_keyword)
        return Field(name, Kind.NOTHING, lambda document: [], kind, is_mapped)
    if name.endswith(_KEYWORD) and has_keyword:
        limit = None if kind == "roles" else 256
        return Field(name, Kind.EXACT, lambda document: _keyword_values(_at(document.source, keys), limit),
                     "keyword", kind is not None)  # fmt: skip
    if name != path:
        return Field(name, Kind.NOTHING, lambda document: [], None, is_mapped=False)
    if kind in (None, "text", "name", "roles"):
        return Field(name, Kind.TEXT, lambda document: _at(document.source, keys), kind, kind is not None)
    return Field(name, Kind.EXACT, lambda document: _at(document.source, keys), kind)


def _closed_by(types: Types, path: str) -> str | None:
    """Return the type of the enclosing field that queries do not look into in the usual way, None without one.

    The mapping's few such fields are compared with the path, rather than each prefix of the path with the mapping.
    """
    for closed, kind in types.items():
        if kind in _CLOSED and path.startswith(closed) and path[len(closed) : len(closed) + 1] in ("", "."):
            return kind
    return None


def phrase(found: list[str]) -> str:
    """Return words in one string, in which only whole words in their order are found; none has a line end in it."""
    return "\n" + "".join(f"{word}\n" for word in found)


def words(value: object) -> list[str]:
    """Return a string's words in lower case, as a `text` field holds them; for another value its `exact` spelling."""
    return _WORD.findall(value.lower()) if isinstance(value, str) else [exact(value)]


def exact(value: object) -> str:
    """Return one spelling for values that OpenSearch treats as equal: `1`, `1.0` and `"1"`; `true` and `"true"`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _keyword_values(values: list[Any], limit: int | None) -> list[Any]:
    """Return what a `.keyword` sub-field holds: strings of at most `limit` characters (its `ignore_above`)."""
    return [value for value in values if isinstance(value, str) and (limit is None or len(value) <= limit)]


def _at(source: object, path: Sequence[str]) -> list[Any]:
    """Return the values at a path, those inside arrays too, without nulls."""
    values = [source]
    for key in path:
        values = [value[key] for value in _flat(values) if isinstance(value, Mapping) and key in value]
        if not values:
            return values
    return [value for value in _flat(values) if value is not None]


def _flat(values: list[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list):
            yield from _flat(value)
        else:
            yield value


def _leaves(values: list[Any]) -> Iterator[Any]:
    for value in _flat(values):
        if isinstance(value, Mapping):
            yield from _leaves(list(value.values()))
        elif value is not None:
            yield value


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
