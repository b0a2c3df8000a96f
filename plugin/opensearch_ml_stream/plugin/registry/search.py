"""Search of stored documents: check what a body may contain, and remove hidden fields from the hits.

The stored documents hold credentials (as cipher text), so only what is listed here is allowed in a body: every query,
sort and aggregation names its fields, none of them a credential's, and nothing reads fields by script, pattern or
lookup. `_source` is applied here, after the hidden fields are removed, not in the store.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.filter_path import FieldFilter, pattern_work
from opensearch_ml_stream.plugin.registry.stored_documents import Json
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.query_string import parse_query_string

View = Callable[[Mapping[str, Json]], Awaitable[Mapping[str, Json]]]
"""Returns the sources to show for the stored ones, both by id."""


class Searched(Protocol):
    """What a search runs in: a Store, or one that shows other values than it stores."""

    async def search_for_caller(self, index: Index, body: Json) -> dict[str, Any]:
        """Return OpenSearch's search response."""
        ...


_WITHOUT_FIELDS = frozenset({
    "from", "size", "search_after", "track_total_hits", "track_scores", "min_score", "timeout", "terminate_after",
    "version", "seq_no_primary_term",
})  # fmt: skip
_FIELD_QUERIES = frozenset({
    "term", "terms", "match", "match_phrase", "match_phrase_prefix", "match_bool_prefix", "prefix", "wildcard",
    "regexp", "fuzzy", "range",
})  # fmt: skip
_FIELD_AGGREGATIONS = frozenset({
    "terms", "value_count", "cardinality", "min", "max", "avg", "sum", "stats", "missing", "histogram",
    "date_histogram", "range", "date_range",
})  # fmt: skip
_OF_ONE_BUCKET = frozenset({"filter", "missing"})  # the result itself is their bucket
_TOP_HITS = frozenset({"from", "size", "sort", "_source"})
_QUERY_STRING = frozenset({"query", "fields", "default_field", "default_operator"})
_OPTIONS = frozenset({"boost", "_name"})
_CLAUSES = ("must", "filter", "should", "must_not")
_AGGREGATIONS = frozenset({"aggs", "aggregations"})
_WRAPPERS = {"constant_score": ("filter", ()), "nested": ("query", ("path", "score_mode", "ignore_unmapped"))}
_NEVER = frozenset({"script", "_script", "inner_hits", "nested"})


MAX_AGGREGATION_DEPTH = 5


async def search(
    store: Searched,
    index: Index,
    body: Json,
    hidden: Iterable[str],
    visible: Json | None,
    view: View | None = None,
) -> Json:
    """Return the store's response without the fields `hidden`; InvalidRequest for a body that is not allowed.

    `visible` is the query that finds what the caller may see, None if that is everything: no hit, total or aggregation
    is of other documents. `view` changes the sources before `_source` is applied to them.
    """
    check_search(body)
    if visible is not None:
        _check_no_empty_buckets(_aggregations(body))
    response = await store.search_for_caller(index, _only(visible, _without_source(body)))
    shown = list(_hit_lists(body, response))
    shown_fields = FieldFilter(f"-{field}" for field in hidden)
    hits = [hit for hits, _ in shown for hit in hits]
    sources: Mapping[str, Json] = {hit["_id"]: shown_fields.apply(hit.pop("_source", {})) for hit in hits}
    if view is not None:
        sources = await view(sources)
    budget = pattern_work()
    filters = {
        patterns: FieldFilter(patterns, budget)
        for patterns in {patterns for _, patterns in shown}
        if patterns is not None
    }
    for hits, patterns in shown:
        if patterns is not None:
            for hit in hits:
                hit["_source"] = filters[patterns].apply(sources[hit["_id"]])
    return response


def _only(visible: Json | None, body: Json) -> Json:
    """Return the body that searches the visible documents alone; scores stay those of its own query."""
    if visible is None:
        return body
    return {**body, "query": {"bool": {"must": [body.get("query", {"match_all": {}})], "filter": [visible]}}}


def _without_source(body: Json) -> dict[str, Any]:
    """Return a body or an aggregation without `_source`: it is applied when hidden fields are removed."""
    reduced = {name: value for name, value in body.items() if name != "_source"}
    for name in _AGGREGATIONS & reduced.keys():
        reduced[name] = {each: _without_source(aggregation) for each, aggregation in reduced[name].items()}
    if "top_hits" in reduced:
        reduced["top_hits"] = _without_source(reduced["top_hits"])
    return reduced


Hits = tuple[list[dict[str, Any]], tuple[str, ...] | None]
"""A list of hits, with the patterns of its `_source`."""


def _hit_lists(body: Json, response: Json) -> Iterator[Hits]:
    """Yield the lists of hits in a response, those of `top_hits` too."""
    yield response["hits"]["hits"], _source_patterns(body.get("_source"))
    yield from _aggregated_hits(_aggregations(body), response.get("aggregations", {}))


def _aggregated_hits(aggregations: Json, results: Json) -> Iterator[Hits]:
    for name, aggregation in aggregations.items():
        result = results.get(name, {})
        if "top_hits" in aggregation:
            yield result["hits"]["hits"], _source_patterns(aggregation["top_hits"].get("_source"))
        for bucket in [result] if _OF_ONE_BUCKET & aggregation.keys() else _buckets(result):
            yield from _aggregated_hits(_aggregations(aggregation), bucket)


def _aggregations(body: Json) -> dict[str, Any]:
    return next((body[name] for name in _AGGREGATIONS if name in body), {})


def _buckets(result: Json) -> Iterable[Json]:
    """Return the buckets of a result, which has them in an array or in an object by key, if any."""
    buckets = result.get("buckets", [])
    return buckets.values() if isinstance(buckets, dict) else buckets


def check_search(body: Json) -> None:
    """Raise InvalidRequest, which names it, for a part of a search body that is not allowed."""
    _check_one_name(body)
    for name, value in body.items():
        if name in ("query", "post_filter"):
            _check_query(value)
        elif name in _AGGREGATIONS:
            _check_aggregations(value)
        elif name == "sort":
            _check_sort(value)
        elif name == "collapse":
            _check_only(name, _object(name, value), {"field"})
            _check_field(value.get("field"))
        elif name not in _WITHOUT_FIELDS and name != "_source":
            raise InvalidRequest(f"search: [{name}] is not supported here")


def _check_query(query: Any) -> None:
    for kind, clause in _object("query", query).items():
        if kind in _FIELD_QUERIES:
            _check_field_query(kind, _object(kind, clause))
        elif kind == "bool":
            _check_bool(_object(kind, clause))
        elif kind in _WRAPPERS:
            inner, options = _WRAPPERS[kind]
            _check_only(kind, _object(kind, clause), {inner, *options, *_OPTIONS})
            _check_query(clause.get(inner))
        elif kind == "exists":
            _check_field(_object(kind, clause).get("field"))
        elif kind == "query_string":
            _check_query_string(_object(kind, clause))
        elif kind == "multi_match":
            _check_fields(_object(kind, clause).get("fields"))
        elif kind not in ("match_all", "match_none", "ids"):
            raise InvalidRequest(f"search: the query [{kind}] is not supported here")


def _check_bool(clause: Json) -> None:
    _check_only("bool", clause, {*_CLAUSES, *_OPTIONS, "minimum_should_match", "adjust_pure_negative"})
    for name in _CLAUSES:
        inner = clause.get(name, [])
        for part in inner if isinstance(inner, list) else [inner]:
            _check_query(part)


def _check_field_query(kind: str, clause: Json) -> None:
    for field, value in clause.items():
        if field in _OPTIONS:
            continue
        _check_field(field)
        if kind == "terms" and not isinstance(value, list):  # a terms lookup would read another index
            raise InvalidRequest(f"search: [terms] on [{field}] needs an array of values")


def _check_aggregations(aggregations: Any, depth: int = 1) -> None:
    if depth > MAX_AGGREGATION_DEPTH:
        raise InvalidRequest(f"search: aggregations may be nested {MAX_AGGREGATION_DEPTH} deep")
    for name, aggregation in _object("aggs", aggregations).items():
        _check_one_name(_object(name, aggregation))
        for kind, value in aggregation.items():
            if kind in _AGGREGATIONS:
                _check_aggregations(value, depth + 1)
            elif kind == "top_hits":
                _check_only(kind, _object(kind, value), _TOP_HITS)
                _check_sort(value.get("sort", []))
                _source_patterns(value.get("_source"))
            elif kind in _FIELD_AGGREGATIONS:
                _check_field(_object(kind, value).get("field"))
                _check_never(value)
            elif kind == "filter":
                _check_query(value)
            elif kind != "meta":
                raise InvalidRequest(f"search: the aggregation [{kind}] is not supported here")


def _check_no_empty_buckets(aggregations: Json) -> None:
    """Raise InvalidRequest for `terms` that would also show values of documents that the query leaves out.

    OpenSearch lists every value in the index for a `min_doc_count` of 0, which it reads out of "0" and 0.4, too.
    """
    for aggregation in aggregations.values():
        minimum = aggregation.get("terms", {}).get("min_doc_count", 1)
        if not isinstance(minimum, int) or minimum < 1:
            raise InvalidRequest("search: [terms] needs a [min_doc_count] of 1 or more where you do not see everything")
        _check_no_empty_buckets(_aggregations(aggregation))


def _check_sort(sort: Any) -> None:
    for part in sort if isinstance(sort, list) else [sort]:
        for field in [part] if isinstance(part, str) else _object("sort", part):
            _check_field(field)
        _check_never(part)


def _check_one_name(body: Json) -> None:
    if body.keys() >= _AGGREGATIONS:
        raise InvalidRequest("search: give [aggs] or [aggregations], not both")


def _check_query_string(clause: Json) -> None:
    """Raise InvalidRequest for a text that names fields itself, or is more than words, phrases and operators."""
    _check_only("query_string", clause, {*_QUERY_STRING, *_OPTIONS})
    fields = clause.get("fields", [clause["default_field"]] if "default_field" in clause else None)
    _check_fields(fields, "query_string")
    try:
        parse_query_string(clause.get("query"))
    except InvalidRequest as error:
        raise InvalidRequest(f"search: {error.reason}") from None


def _check_fields(fields: Any, kind: str = "multi_match") -> None:
    if not isinstance(fields, list) or not fields:
        raise InvalidRequest(f"search: [{kind}] needs its fields, an array of names")
    for field in fields:
        _check_field(field.partition("^")[0] if isinstance(field, str) else field)


def _check_field(field: Any) -> None:
    if not isinstance(field, str) or not field:
        raise InvalidRequest("search: a field's name is missing")
    if "*" in field:
        raise InvalidRequest(f"search: name each field in full, not [{field}]")
    if "credential" in field.split("."):
        raise InvalidRequest(f"search: the field [{field}] cannot be used, credentials are not searchable")


def _check_only(kind: str, clause: Json, allowed: Iterable[str]) -> None:
    for name in clause:
        if name not in allowed:
            raise InvalidRequest(f"search: [{kind}] with [{name}] is not supported here")


def _check_never(value: Any) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in _NEVER:
                raise InvalidRequest(f"search: [{name}] is not supported here")
            _check_never(inner)
    elif isinstance(value, list):
        for inner in value:
            _check_never(inner)


def _object(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRequest(f"search: [{name}] must be an object")
    return value


def _source_patterns(source: Any) -> tuple[str, ...] | None:
    """Return `_source` as path patterns; None if no source is to be returned."""
    if source is None or source is True:
        return ()
    if source is False:
        return None
    if isinstance(source, dict):
        _check_only("_source", source, {"includes", "include", "excludes", "exclude"})
        excludes = _names(source.get("excludes", source.get("exclude")))
        return (*_names(source.get("includes", source.get("include"))), *(f"-{name}" for name in excludes))
    return tuple(_names(source))


def _names(value: Any) -> list[str]:
    names = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidRequest("search: [_source] must be true, false, or names of fields")
    return names
