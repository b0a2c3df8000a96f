"""Field values for the SQLite store's queries: how OpenSearch's mappings have a document's field compared.

A `text` field is compared by its words in lower case, its `.keyword` sub-field as a whole. A `flat_object` is compared
by all values in it. A field inside a nested object has values in a nested query alone, which looks at that object.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from opensearch_ml_stream.plugin.store import Document

# Words as OpenSearch's standard analyser splits them: dots join digits or letters, colons letters; ideographs stand
# alone.
_WORD = re.compile(
    r"[\u3040-\u309f\u3400-\u9fff]"
    r"|[^\W\u3040-\u309f\u3400-\u9fff]+"
    r"(?:(?:(?<=\d)[.,](?=\d)|(?<=[^\W\d_])[.:'\u2019](?=[^\W\d_]))[^\W\u3040-\u309f\u3400-\u9fff]+)*"
)
_KEYWORD = ".keyword"

Types = Mapping[str, str]
"""The types of an index' fields by dotted path, as in `mappings.FIELDS`; in a nested query, of the nested object's."""


class Kind(Enum):
    """How the values of a field are compared."""

    TEXT = "text"
    EXACT = "exact"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Field:
    """A field that a query names: how it is compared, and its values in a document."""

    name: str
    kind: Kind
    values: Callable[[Document], list[Any]]


def find_field(types: Types, name: str) -> Field:
    """Return the field of that name among those types; one without a mapping is treated as OpenSearch would map it."""
    if name == "_id":
        return Field(name, Kind.EXACT, lambda document: [document.id])
    path = name.removesuffix(_KEYWORD) if name not in types else name
    parents = [path.rsplit(".", count)[0] for count in range(1, path.count(".") + 1)]
    if any(types.get(parent) == "nested" for parent in [path, *parents]):
        return Field(name, Kind.NOTHING, lambda document: [])
    if any(types.get(parent) == "flat_object" for parent in [path, *parents]):
        return Field(name, Kind.EXACT, lambda document: list(_leaves(_at(document.source, name.split(".")))))
    kind = types.get(path)
    keys = path.split(".")
    if name.endswith(_KEYWORD) and kind in (None, "name", "roles"):
        limit = None if kind == "roles" else 256
        return Field(name, Kind.EXACT, lambda document: _keyword_values(_at(document.source, keys), limit))
    if name.endswith(_KEYWORD) and name != path:
        return Field(name, Kind.NOTHING, lambda document: [])
    if kind in (None, "text", "name", "roles"):
        return Field(name, Kind.TEXT, lambda document: _at(document.source, keys))
    return Field(name, Kind.EXACT, lambda document: _at(document.source, keys))


def nested_objects(document: Document, path: str) -> Iterator[Document]:
    """Yield each nested object at a path as a document with that object alone."""
    for value in _at(document.source, [path]):
        if isinstance(value, Mapping):
            yield replace(document, source={path: value})


def has_value(values: list[Any]) -> bool:
    """Whether there is a value that is not an object, in however many objects."""
    return next(_leaves(values), None) is not None


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


def _at(source: object, path: list[str]) -> list[Any]:
    """Return the values at a dotted path, those inside arrays too, without nulls."""
    values = [source]
    for key in path:
        values = [value[key] for value in _flat(values) if isinstance(value, Mapping) and key in value]
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
