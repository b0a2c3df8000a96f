"""Sorting of the embedded store: the order of documents, and the `sort` values of their hits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.store import Document, Index
from opensearch_ml_stream.plugin.store.mappings import FIELDS
from opensearch_ml_stream.plugin.store.sqlite.sqlite_body import list_of, options_of, single
from opensearch_ml_stream.plugin.store.sqlite.sqlite_field_values import Field, Kind, find_field

_LARGEST = {"date": 2**63 - 1, "long": 2**63 - 1, "boolean": 2**63 - 1, "integer": 2**31 - 1}  # by type of field


@dataclass(frozen=True, slots=True)
class SortKey:
    """One entry of `sort`: `read` returns what is compared, None for a document without the field."""

    read: Callable[[Document], Any]
    descending: bool
    missing: int | None  # the sort value of a document without the field

    def value(self, document: Document) -> Any:
        """Return the document's value for `sort` in its hit."""
        value = self.read(document)
        return self.missing if value is None else value

    def rank(self, document: Document) -> tuple[bool, bool, Any]:
        """Return the key to sort by: documents without the field always come last."""
        value = self.read(document)
        return (not self.descending, False, 0) if value is None else (self.descending, isinstance(value, str), value)


def compile_sort(index: Index, sort: object, documents: Sequence[Document]) -> list[SortKey]:
    """Return the keys of `sort`. InvalidRequest for a field that neither the mapping nor any of the documents has."""
    return [_compile(index, entry, documents) for entry in list_of(sort)]


def sort_documents(documents: list[Document], keys: Sequence[SortKey]) -> None:
    """Sort the documents by the keys, the first first."""
    for key in reversed(keys):
        documents.sort(key=key.rank, reverse=key.descending)


def _compile(index: Index, entry: object, documents: Sequence[Document]) -> SortKey:
    name, options = (entry, {}) if isinstance(entry, str) else single(entry, "sort")
    if isinstance(options, str):
        options = {"order": options}
    options = options_of(options, "sort", ("order", "unmapped_type"))
    order = str(options.get("order", "desc" if name == "_score" else "asc")).lower()
    if order not in ("asc", "desc"):
        raise InvalidRequest(f"order of [sort] must be asc or desc, not [{order}]")
    descending = order == "desc"
    if name == "_score":
        return SortKey(lambda document: 1.0, False, None)
    if name == "_doc":
        return SortKey(lambda document: document.seq_no, descending, None)
    field = find_field(FIELDS[index], name)
    largest = _LARGEST.get(FIELDS[index].get(name, ""))
    is_known = name == "_id" or _is_mapped(index, name) or any(field.values(document) for document in documents)
    if documents and not is_known and "unmapped_type" not in options:
        raise InvalidRequest(f"No mapping found for [{name}] in order to sort on", type="query_shard_exception")
    missing = None if largest is None else -largest - 1 if descending else largest
    return SortKey(_reader(field, descending), descending, missing)


def _is_mapped(index: Index, name: str) -> bool:
    types = FIELDS[index]
    return name in types or name.removesuffix(".keyword") in types


def _reader(field: Field, descending: bool) -> Callable[[Document], Any]:
    def read(document: Document) -> Any:
        values = [value for value in field.values(document) if not isinstance(value, Mapping)]
        if not values:
            return None
        if field.kind is Kind.TEXT and any(isinstance(value, str) for value in values):
            raise InvalidRequest(
                f"Text fields are not optimised for sorting: sort by [{field.name}.keyword] instead of [{field.name}]"
            )
        pick = max if descending else min
        return pick(values, key=lambda value: (isinstance(value, str), value))

    return read
