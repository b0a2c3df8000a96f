"""Search of the SQLite store: the part of OpenSearch's search body that it supports.

    query    match_all, term, terms, prefix, wildcard, range, match, match_phrase, query_string, ids, exists, nested,
             bool
    aggs     terms, top_hits
    sort     "field", {"field": "desc"}, {"field": {"order": "desc"}}
    from, size, _source (false, patterns, includes and excludes); version, seq_no_primary_term, track_total_hits

Anything else is an InvalidRequest that names it. Hits are in the order they were written in, unless sorted: a score is
1.0, or 0.0 where all queries are filters. `sqlite_search_bounds` says how much of each there may be.
"""

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.clock import Clock, now_millis
from opensearch_ml_stream.plugin.store import Document, Index
from opensearch_ml_stream.plugin.store.mappings import FIELDS
from opensearch_ml_stream.plugin.store.sqlite_aggregations import Aggregations, check_aggregations
from opensearch_ml_stream.plugin.store.sqlite_fields import Candidate, Field, Kind, find_field
from opensearch_ml_stream.plugin.store.sqlite_queries import compile_query, has_score
from opensearch_ml_stream.plugin.store.sqlite_search_body import count_of, flag_of, list_of, options_of, unsupported
from opensearch_ml_stream.plugin.store.sqlite_search_bounds import (
    MAX_HITS,
    MAX_SORT_KEYS,
    Counted,
    SearchWork,
    counted_aggregations,
    counted_buckets,
    counted_hits,
)

_KEYS = (
    "query", "aggs", "aggregations", "sort", "from", "size", "_source", "version", "seq_no_primary_term",
    "track_total_hits",
)  # fmt: skip
_TRACKED_HITS = 10_000  # up to which a total is exact, unless `track_total_hits` says otherwise
_MAX_DIGITS = 19
_STEPS_A_HIT = 10
_LARGEST = {"date": 2**63 - 1, "long": 2**63 - 1, "boolean": 2**31 - 1, "integer": 2**31 - 1}  # by type of field


def search(
    index: Index,
    index_name: str,
    documents: Iterable[Document],
    body: Mapping[str, Any],
    work: SearchWork | None = None,
    clock: Clock = now_millis,
) -> dict[str, Any]:
    """Return OpenSearch's response to a search of these documents; `took` is 0."""
    for key in body:
        if key not in _KEYS:
            raise InvalidRequest(unsupported(f"search key [{key}]", _KEYS))
    for flag in ("version", "seq_no_primary_term"):
        flag_of(body, flag)
    query = body.get("query", {"match_all": {}})
    matches = compile_query(FIELDS[index], query, datetime.fromtimestamp(clock() / 1000, UTC))
    searching = _Search(index, index_name, work or SearchWork(), 1.0 if has_score(query) else 0.0, counted_hits())
    return searching.response(matches, documents, body)


@dataclass(frozen=True, slots=True)
class _Search:
    """A search whose query is compiled."""

    index: Index
    index_name: str
    work: SearchWork
    score: float
    hits_left: Counted

    def response(
        self, matches: Callable[[Candidate], bool], documents: Iterable[Document], body: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the hits and aggregations of the documents that match."""
        aggregations: Any = next((body[name] for name in ("aggs", "aggregations") if name in body), {})
        check_aggregations(aggregations, counted_aggregations())
        matching = [Candidate(document, self.work) for document in documents if matches(Candidate(document, self.work))]
        hits = self._hits(matching, body, _with_versions)
        total = _total(body, len(matching))
        response = {
            "took": 0,
            "timed_out": False,
            "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
            "hits": hits if total is None else {"total": total, **hits},
        }
        if aggregations:
            of_search = Aggregations(self.index, self._top_hits, self.work, counted_buckets())
            response["aggregations"] = of_search.results(aggregations, matching)
        return response

    def _top_hits(self, group: Sequence[Candidate], options: Mapping[str, Any]) -> dict[str, Any]:
        hits = self._hits(group, options, lambda document: {})
        return {"total": {"value": len(group), "relation": "eq"}, **hits}

    def _hits(
        self, matching: Sequence[Candidate], body: Mapping[str, Any], details: Callable[[Document], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return the page of the matching documents that the body asks for."""
        start, size = count_of(body, "from", 0), count_of(body, "size", 10)
        if start + size > MAX_HITS:
            raise InvalidRequest(
                f"Result window is too large, from + size must be less than or equal to: [{MAX_HITS}] but was "
                f"[{start + size}]"
            )
        select = _source_filter(body.get("_source", True))
        keys = compile_sort(self.index, body.get("sort", []), matching, self.score)
        ordered = list(matching)
        self.work.spend((1 + len(keys)) * (_STEPS_A_HIT + len(ordered)))
        sort_documents(ordered, keys)
        page = ordered[start : start + size]
        self.hits_left.add(len(page))
        self.work.spend(_STEPS_A_HIT * len(page))
        score = self.score if not keys or any(key.name == "_score" for key in keys) else None
        first_is_score = not keys or (keys[0].name == "_score" and keys[0].descending)
        hits = []
        for candidate in page:
            hit = {"_index": self.index_name, "_id": candidate.document.id, **details(candidate.document)}
            hit["_score"] = score
            source = select(candidate.document.source)
            hits.append(hit if source is None else {**hit, "_source": source})
            if keys:
                hits[-1]["sort"] = [key.value(candidate) for key in keys]
        return {"max_score": score if first_is_score and page else None, "hits": hits}


def _with_versions(document: Document) -> dict[str, Any]:
    return {"_version": document.version, "_seq_no": document.seq_no, "_primary_term": document.primary_term}


def _total(body: Mapping[str, Any], found: int) -> dict[str, Any] | None:
    """Return `total` as `track_total_hits` asks: exact, up to a number, or not at all."""
    tracked = str(body.get("track_total_hits", _TRACKED_HITS)).lower()
    if tracked in ("false", "-1"):
        return None
    if tracked != "true" and not (tracked.isascii() and tracked.isdecimal() and len(tracked) < _MAX_DIGITS):
        raise InvalidRequest("[track_total_hits] must be true, false or an integer of at least 0")
    limit = found if tracked == "true" else int(tracked)
    return {"value": min(found, limit), "relation": "eq" if found <= limit else "gte"}


def _source_filter(spec: object) -> Callable[[Mapping[str, Any]], Mapping[str, Any] | None]:
    """Return the function that applies `_source` to a document; it returns None for `false`."""
    if spec is False:
        return lambda source: None
    if spec is True:
        return lambda source: source
    if isinstance(spec, Mapping):
        options = options_of(spec, "_source", ("includes", "excludes"))
        includes, excludes = _patterns(options.get("includes", [])), _patterns(options.get("excludes", []))
    else:
        includes, excludes = _patterns(spec), []
    return lambda source: _filtered(source, includes, excludes, "")


def _patterns(value: object) -> list[str]:
    return [str(pattern) for pattern in list_of(value)]


def _filtered(value: Any, includes: list[str], excludes: list[str], path: str) -> Any:
    """Return the object with its included and without its excluded fields.

    A pattern names a field and everything in it; `*` stands for any characters. `path` is the object's own, with a dot.
    """
    if isinstance(value, list):
        return [_filtered(entry, includes, excludes, path) if isinstance(entry, Mapping) else entry for entry in value]
    kept: dict[str, Any] = {}
    for name, entry in value.items():
        entry_path = f"{path}{name}"
        if any(fnmatch.fnmatchcase(entry_path, pattern) for pattern in excludes):
            continue
        included = not includes or any(fnmatch.fnmatchcase(entry_path, pattern) for pattern in includes)
        if _holds_objects(entry):
            inner = _filtered(entry, [] if included else includes, excludes, f"{entry_path}.")
            if included or any(inner):
                kept[name] = inner
        elif included:
            kept[name] = entry
    return kept


def _holds_objects(entry: object) -> bool:
    return isinstance(entry, Mapping) or (isinstance(entry, list) and any(isinstance(item, Mapping) for item in entry))


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
    """Return the keys of `sort`; none for the order of scores, which is that without a sort.

    InvalidRequest for a field that is neither in the mapping nor in a document that was found. Documents that the
    caller may not see make no difference.
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
