"""Search stored documents for a caller, without showing credentials or what the caller may not see.

The stored documents hold credentials (as cipher text), and the store searches them with the sidecar's own account. So
every query, sort and aggregation must name its fields, none of them a credential's, and nothing may read fields by
script, pattern or lookup. A caller who may not see every document gets nothing that is computed from the whole index.
`_source` is applied here, after the hidden fields are removed. The store itself refuses what it does not support.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax.filter_path import FieldFilter, pattern_work
from opensearch_ml_stream.plugin.registry.stored_documents import Json
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.query_string import parse_query_string

AGGREGATIONS = frozenset({"aggs", "aggregations"})
MAX_AGGREGATION_DEPTH = 5

_WITHOUT_FIELDS = frozenset({
    "from", "size", "search_after", "track_total_hits", "track_scores", "min_score", "timeout", "terminate_after",
    "version", "seq_no_primary_term", "include_named_queries_score",
})  # fmt: skip
_OF_THE_WHOLE_INDEX = frozenset({"explain", "profile", "suggest", "global"})
_FIELD_QUERIES = frozenset({
    "term", "terms", "match", "match_phrase", "match_phrase_prefix", "match_bool_prefix", "prefix", "wildcard",
    "regexp", "fuzzy", "range", "terms_set", "intervals",
})  # fmt: skip
_FIELD_AGGREGATIONS = frozenset({
    "terms", "value_count", "cardinality", "min", "max", "avg", "sum", "stats", "missing", "histogram",
    "date_histogram", "range", "date_range", "extended_stats", "percentiles", "percentile_ranks",
    "median_absolute_deviation", "rare_terms", "auto_date_histogram", "variable_width_histogram",
})  # fmt: skip
_OTHER_AGGREGATIONS = frozenset({  # of several fields, or of other aggregations
    "composite", "multi_terms", "weighted_avg", "global", "avg_bucket", "max_bucket", "min_bucket", "sum_bucket",
    "stats_bucket", "extended_stats_bucket", "percentiles_bucket", "derivative", "cumulative_sum", "serial_diff",
    "bucket_sort",
})  # fmt: skip
_TOP_HITS = frozenset({
    "from", "size", "sort", "_source", "version", "seq_no_primary_term", "track_scores", "fields", "docvalue_fields",
    "stored_fields", "highlight",
})  # fmt: skip
_QUERY_STRING = frozenset({"query", "fields", "default_field", "default_operator"})
_OPTIONS = frozenset({"boost", "_name"})
_CLAUSES = ("must", "filter", "should", "must_not")
_WRAPPERS = {  # the queries within, and what else there may be
    "constant_score": (("filter",), ()),
    "nested": (("query",), ("path", "score_mode", "ignore_unmapped")),
    "bool": (_CLAUSES, ("minimum_should_match", "adjust_pure_negative")),
    "dis_max": (("queries",), ("tie_breaker",)),
    "boosting": (("positive", "negative"), ("negative_boost",)),
}
_FIELD_NAMES = frozenset({"field", "use_field", "minimum_should_match_field"})
_NEVER = frozenset({
    "script", "_script", "minimum_should_match_script", "inner_hits", "nested", "collate", "index", "background_filter",
})  # fmt: skip

View = Callable[[Mapping[str, Json]], Awaitable[Mapping[str, Json]]]
"""Returns the sources to show for the stored ones, both by id."""
_OF_ONE_BUCKET = frozenset({"filter", "missing", "global"})  # the result itself is their bucket
Hits = tuple[list[dict[str, Any]], tuple[str, ...] | None]
"""A list of hits, with the patterns of its `_source`."""


class Searched(Protocol):
    """What a search runs on: a Store, or ShownStates around one."""

    async def search_for_caller(self, index: Index, body: Json) -> dict[str, Any]:
        """Return OpenSearch's search response."""
        ...


async def search(
    store: Searched,
    index: Index,
    body: Json,
    hidden: Iterable[str],
    visible: Json | None,
    view: View | None = None,
) -> Json:
    """Return the store's response without the fields `hidden`; InvalidRequest for a body that is not allowed.

    `visible` is the query for what the caller may see, None if that is everything; hits, totals and aggregations are
    only of those documents. `view` changes the sources before `_source` is applied to them.
    """
    check_search(body, sees_all=visible is None)
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
    """Return the body that searches only visible documents; scores are still those of its own query."""
    if visible is None:
        return body
    return {**body, "query": {"bool": {"must": [body.get("query", {"match_all": {}})], "filter": [visible]}}}


def _without_source(body: Json) -> dict[str, Any]:
    """Return a body or an aggregation without `_source`, which is applied when hidden fields are removed.

    Also without `stored_fields`: no field is stored, and ML Commons returns the source anyway.
    """
    reduced = {name: value for name, value in body.items() if name not in ("_source", "stored_fields")}
    for name in AGGREGATIONS & reduced.keys():
        reduced[name] = {each: _without_source(aggregation) for each, aggregation in reduced[name].items()}
    if "top_hits" in reduced:
        reduced["top_hits"] = _without_source(reduced["top_hits"])
    return reduced


def _hit_lists(body: Json, response: Json) -> Iterator[Hits]:
    """Yield the lists of hits in a response, those of `top_hits` too."""
    yield response["hits"]["hits"], source_patterns(body.get("_source"))
    yield from _aggregated_hits(aggregations_of(body), response.get("aggregations", {}))


def _aggregated_hits(aggregations: Json, results: Json) -> Iterator[Hits]:
    for name, aggregation in aggregations.items():
        result = results.get(name, {})
        if "top_hits" in aggregation:
            yield result["hits"]["hits"], source_patterns(aggregation["top_hits"].get("_source"))
        for bucket in [result] if _OF_ONE_BUCKET & aggregation.keys() else _buckets(result):
            yield from _aggregated_hits(aggregations_of(aggregation), bucket)


def aggregations_of(body: Json) -> dict[str, Any]:
    """Return the aggregations of a body, or of an aggregation in it."""
    return next((body[name] for name in AGGREGATIONS if name in body), {})


def _buckets(result: Json) -> Iterable[Json]:
    """Return the buckets of a result, which has them in an array or in an object by key, if any."""
    buckets = result.get("buckets", [])
    return buckets.values() if isinstance(buckets, dict) else buckets


def check_search(body: Json, *, sees_all: bool = True) -> None:
    """Raise InvalidRequest, which names it, for a part of a search body that is not allowed.

    `sees_all` is whether the caller may see every document of the index.
    """
    _check_one_name(body)
    for name, value in body.items():
        if name in _OF_THE_WHOLE_INDEX and bool(value):
            _check_sees_all(name, sees_all)
        if name in ("query", "post_filter"):
            _check_query(value)
        elif name in AGGREGATIONS:
            _check_aggregations(value, sees_all)
        elif name == "collapse":
            _check_only(name, _object(name, value), {"field"})
            _check_field(value.get("field"))
        elif name == "rescore":
            _check_rescore(value)
        elif name in ("suggest", "explain", "profile"):
            _check_tree(value)
        elif not _is_of_hits(name, value) and name not in _WITHOUT_FIELDS:
            raise _unsupported(f"[{name}]")


def _is_of_hits(name: str, value: Any) -> bool:
    """Return whether a member selects or orders hits; InvalidRequest if its value is not allowed."""
    if name == "sort":
        _check_sort(value)
    elif name == "_source":
        source_patterns(value)
    elif name == "highlight":
        _check_highlight(_object(name, value))
    elif name in ("fields", "docvalue_fields", "stored_fields"):
        for part in _list(value):
            _check_shown(part.get("field") if isinstance(part, dict) else part)
    else:
        return False
    return True


def _check_highlight(highlight: Json) -> None:
    for part in _list(highlight.get("fields")):
        for field, options in _object("fields", part).items():
            _check_shown(field)
            for name, value in _object(field, options).items():
                if name == "matched_fields":
                    _check_fields(value, name)
                elif name == "highlight_query":
                    _check_query(value)
    if "highlight_query" in highlight:
        _check_query(highlight["highlight_query"])


def _check_rescore(rescore: Any) -> None:
    for part in _list(rescore):
        _check_only("rescore", _object("rescore", part), {"window_size", "query"})
        query = _object("query", part.get("query"))
        _check_only("rescore", query, {"rescore_query", "query_weight", "rescore_query_weight", "score_mode"})
        _check_query(query.get("rescore_query"))


def _check_query(query: Any) -> None:
    for kind, clause in _object("query", query).items():
        if kind in _FIELD_QUERIES:
            _check_field_query(kind, _object(kind, clause))
        elif kind in _WRAPPERS:
            _check_wrapper(kind, _object(kind, clause))
        elif kind in _QUERIES:
            _QUERIES[kind](_object(kind, clause))
        elif kind not in ("match_all", "match_none", "ids"):
            raise _unsupported(f"the query [{kind}]")


def _check_wrapper(kind: str, clause: Json) -> None:
    inner, options = _WRAPPERS[kind]
    _check_only(kind, clause, {*inner, *options, *_OPTIONS})
    for name in inner:
        for query in _list(clause.get(name, [])):
            _check_query(query)


def _check_field_query(kind: str, clause: Json) -> None:
    for field, value in clause.items():
        if field in _OPTIONS:
            continue
        _check_field(field)
        _check_tree(value)
        if kind == "terms" and not isinstance(value, list):  # a terms lookup would read another index
            raise InvalidRequest(f"search: [terms] on [{field}] needs an array of values")


def _check_function_score(clause: Json) -> None:
    """Raise InvalidRequest for a score that a script computes, or from a field that may not be searched."""
    functions = _list(clause.get("functions", []))
    for function in (clause, *functions):
        for name, value in _object("function_score", function).items():
            if name in ("query", "filter"):
                _check_query(value)
            elif name in ("gauss", "linear", "exp"):
                for field in _object(name, value).keys() - {"multi_value_mode"}:
                    _check_field(field)
            elif name in ("field_value_factor", "random_score"):
                _check_tree(value)
            elif name not in ("functions", "weight", "score_mode", "boost_mode", "max_boost", "min_score", *_OPTIONS):
                raise _unsupported(f"[function_score] with [{name}]")


def _check_query_string(clause: Json) -> None:
    """Raise InvalidRequest for a query string that names fields, or is more than words, phrases and operators."""
    _check_only("query_string", clause, {*_QUERY_STRING, *_OPTIONS})
    fields = clause.get("fields", [clause["default_field"]] if "default_field" in clause else None)
    _check_fields(fields, "query_string")
    try:
        parse_query_string(clause.get("query"))
    except InvalidRequest as error:
        raise InvalidRequest(f"search: {error.reason}") from None


_QUERIES: dict[str, Callable[[Json], None]] = {
    "exists": lambda clause: _check_field(clause.get("field")),
    "distance_feature": lambda clause: _check_field(clause.get("field")),
    "query_string": _check_query_string,
    "simple_query_string": lambda clause: _check_fields(clause.get("fields"), "simple_query_string"),
    "multi_match": lambda clause: _check_fields(clause.get("fields"), "multi_match"),
    "combined_fields": lambda clause: _check_fields(clause.get("fields"), "combined_fields"),
    "function_score": _check_function_score,
}


def _check_aggregations(aggregations: Any, sees_all: bool, depth: int = 1) -> None:
    if depth > MAX_AGGREGATION_DEPTH:
        raise InvalidRequest(f"search: aggregations may be nested {MAX_AGGREGATION_DEPTH} deep")
    for name, aggregation in _object("aggs", aggregations).items():
        _check_one_name(_object(name, aggregation))
        for kind, value in aggregation.items():
            if kind in AGGREGATIONS:
                _check_aggregations(value, sees_all, depth + 1)
            elif kind != "meta":
                _check_aggregation(kind, value, sees_all)


def _check_aggregation(kind: str, value: Any, sees_all: bool) -> None:
    if kind in _OF_THE_WHOLE_INDEX:
        _check_sees_all(kind, sees_all)
    if kind == "top_hits":
        _check_only(kind, _object(kind, value), _TOP_HITS)
        for name, part in value.items():
            _is_of_hits(name, part)
    elif kind in _FIELD_AGGREGATIONS:
        _check_field(_object(kind, value).get("field"))
        _check_no_empty_buckets(kind, value, sees_all)
        _check_tree(value)
    elif kind == "filter":
        _check_query(value)
    elif kind in ("filters", "adjacency_matrix"):
        filters = _object(kind, value).get("filters")
        for query in filters.values() if isinstance(filters, dict) else _list(filters):
            _check_query(query)
    elif kind in _OTHER_AGGREGATIONS:
        _check_no_empty_buckets(kind, _object(kind, value), sees_all)
        _check_tree(value)
    else:
        raise _unsupported(f"the aggregation [{kind}]")


def _check_no_empty_buckets(kind: str, aggregation: Json, sees_all: bool) -> None:
    """Raise InvalidRequest for `terms` that would also show values of documents that the query leaves out.

    OpenSearch lists every value in the index for a `min_doc_count` of 0, which it reads out of "0" and 0.4, too.
    """
    minimum = aggregation.get("min_doc_count", 1)
    if kind in ("terms", "multi_terms") and not sees_all and (not isinstance(minimum, int) or minimum < 1):
        raise InvalidRequest(f"search: [{kind}] needs a [min_doc_count] of 1 or more where you do not see everything")


def _check_sees_all(name: str, sees_all: bool) -> None:
    if not sees_all:
        raise InvalidRequest(f"search: [{name}] would tell of documents that you may not see; leave it out")


def _check_sort(sort: Any) -> None:
    for part in _list(sort):
        for field in [part] if isinstance(part, str) else _object("sort", part):
            _check_field(field)
        _check_tree(part)


def _check_one_name(body: Json) -> None:
    if body.keys() >= AGGREGATIONS:
        raise InvalidRequest("search: give [aggs] or [aggregations], not both")


def _check_fields(fields: Any, kind: str) -> None:
    if not isinstance(fields, list) or not fields:
        raise InvalidRequest(f"search: [{kind}] needs its fields, an array of names")
    for field in fields:
        _check_field(field.partition("^")[0] if isinstance(field, str) else field)


def _check_shown(field: Any) -> None:
    """Raise InvalidRequest for a field whose values may not be shown, or that holds such a field."""
    _check_field(field)
    if field in ("connector", "_source"):
        raise InvalidRequest(f"search: the field [{field}] cannot be used here, it holds a credential; name one in it")


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
            raise _unsupported(f"[{kind}] with [{name}]")


def _check_tree(value: Any) -> None:
    """Raise InvalidRequest for a forbidden field, or a member that reads fields by itself, anywhere in a value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in _NEVER:
                raise _unsupported(f"[{name}]")
            if name in _FIELD_NAMES:
                _check_field(inner)
            elif name == "fields":
                _check_fields(inner, name)
            _check_tree(inner)
    elif isinstance(value, list):
        for inner in value:
            _check_tree(inner)


def _unsupported(what: str) -> InvalidRequest:
    return InvalidRequest(f"search: {what} is not supported here")


def _object(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRequest(f"search: [{name}] must be an object")
    return value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def source_patterns(source: Any) -> tuple[str, ...] | None:
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
