"""Sorting of the embedded store: the order of documents, and the `sort` values of their hits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.mappings import FIELDS
from opensearch_ml_stream.plugin.store.sqlite_body import list_of, options_of
from opensearch_ml_stream.plugin.store.sqlite_field_values import Candidate, Field, Kind, find_field
from opensearch_ml_stream.plugin.store.sqlite_search_bounds import MAX_SORT_KEYS

_LARGEST = {"date": 2**63 - 1, "long": 2**63 - 1, "boolean": 2**31 - 1, "integer": 2**31 - 1}  # by type of field


@dataclass(frozen=True, slots=True)
class SortKey:
    """One entry of `sort`: `read` returns what is compared, None for a document without the field."""

    name: str
    read: Callable[[Candidate], Any]
    descending: bool
    missing: int | None = None  # the sort value of a document without the field

    def value(self, candidate: Candidate) -> Any:
        """Return the document's value for `sort` in its hit."""
        value = self.read(candidate)
        return self.missing if value is None else value

    def rank(self, candidate: Candidate) -> tuple[bool, bool, Any]:
        """Return the key to sort by: documents without the field always come last."""
        value = self.read(candidate)
        return (not self.descending, False, 0) if value is None else (self.descending, isinstance(value, str), value)


def compile_sort(index: Index, sort: object, matching: Sequence[Candidate], score: float) -> list[SortKey]:
    """Return the keys of `sort`; none for what means the order of the scores, as no sort does.

    InvalidRequest for a field that neither the mapping nor a document that was found has. Other documents, which the
    caller may not see, have no say in it.
    """
    keys = [key for entry in list_of(sort) for key in _entries(entry)]
    if len(keys) > MAX_SORT_KEYS:
        raise InvalidRequest(f"[sort] may have {MAX_SORT_KEYS} keys; this one has {len(keys)}")
    compiled = [_compile(index, name, options, matching, score) for name, options in keys]
    return [] if [(key.name, key.descending) for key in compiled] == [("_score", True)] else compiled


def sort_documents(candidates: list[Candidate], keys: Sequence[SortKey]) -> None:
    """Sort the documents by the keys, the first first."""
    for key in reversed(keys):
        candidates.sort(key=key.rank, reverse=key.descending)


def _entries(entry: object) -> list[tuple[str, object]]:
    if isinstance(entry, str):
        return [(entry, {})]
    if not isinstance(entry, Mapping):
        raise InvalidRequest("malformed sort format, within the sort array, an object, or an actual string are allowed")
    return list(entry.items())


def _compile(index: Index, name: str, options: object, matching: Sequence[Candidate], score: float) -> SortKey:
    given = options_of({"order": options} if isinstance(options, str) else options, "sort", ("order", "unmapped_type"))
    order = str(given.get("order", "desc" if name == "_score" else "asc")).lower()
    if order not in ("asc", "desc"):
        raise InvalidRequest(f"order of [sort] must be asc or desc, not [{order}]")
    descending = order == "desc"
    if name == "_score":
        return SortKey(name, lambda candidate: score, descending)
    if name == "_doc":
        return SortKey(name, lambda candidate: candidate.document.seq_no, descending)
    field = find_field(FIELDS[index], name)
    if field.type in ("flat_object", "binary"):
        raise InvalidRequest(f"Field [{name}] of type [{field.type}] cannot be sorted by")
    is_known = field.is_mapped or any(candidate.values(field) for candidate in matching)
    if matching and not is_known and "unmapped_type" not in given:
        raise InvalidRequest(f"No mapping found for [{name}] in order to sort on", type="query_shard_exception")
    largest = _LARGEST.get(field.type or "")
    missing = None if largest is None else -largest - 1 if descending else largest
    return SortKey(name, _reader(field, descending), descending, missing)


def _reader(field: Field, descending: bool) -> Callable[[Candidate], Any]:
    pick = max if descending else min

    def read(candidate: Candidate) -> Any:
        values = candidate.values(field)
        if not values:
            return None
        if field.kind is Kind.TEXT and any(isinstance(value, str) for value in values):
            raise InvalidRequest(
                f"Text fields are not optimised for sorting: sort by [{field.name}.keyword] instead of [{field.name}]"
            )
        value = pick(values, key=lambda value: (isinstance(value, str), value))
        return int(value) if isinstance(value, bool) else value

    return read
