"""Search of the SQLite store: the part of OpenSearch's search body that it supports.

    query    match_all, term, terms, prefix, wildcard, range, match, match_phrase, query_string, ids, exists, nested,
             bool
    aggs     terms, top_hits
    sort     "field", {"field": "desc"}, {"field": {"order": "desc"}}
    from, size, _source (false, patterns, includes and excludes); version, seq_no_primary_term, track_total_hits

Anything else is an InvalidRequest that names it. Hits are in the order they were written in, unless sorted.
"""

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.store import Document, Index
from opensearch_ml_stream.plugin.store.mappings import FIELDS
from opensearch_ml_stream.plugin.store.sqlite.sqlite_aggregations import aggregate
from opensearch_ml_stream.plugin.store.sqlite.sqlite_body import count_of, list_of, options_of, unsupported
from opensearch_ml_stream.plugin.store.sqlite.sqlite_queries import compile_query
from opensearch_ml_stream.plugin.store.sqlite.sqlite_sorting import compile_sort, sort_documents

_KEYS = (
    "query", "aggs", "aggregations", "sort", "from", "size", "_source", "version", "seq_no_primary_term",
    "track_total_hits",
)  # fmt: skip
_MAX_RESULT_WINDOW = 10_000  # OpenSearch's default for index.max_result_window


def search(index: Index, index_name: str, documents: Iterable[Document], body: Mapping[str, Any]) -> dict[str, Any]:
    """Return OpenSearch's response to a search of these documents; `took` is 0."""
    for key in body:
        if key not in _KEYS:
            raise InvalidRequest(unsupported(f"search key [{key}]", _KEYS))
    matches = compile_query(FIELDS[index], body.get("query", {"match_all": {}}))
    every = list(documents)
    matching = [document for document in every if matches(document)]
    response = {
        "took": 0,
        "timed_out": False,
        "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
        "hits": _hits(index, index_name, matching, every, body),
    }

    def top_hits(group: Sequence[Document], options: Mapping[str, Any]) -> dict[str, Any]:
        return _hits(index, index_name, group, every, options)

    aggregations = body.get("aggs", body.get("aggregations"))
    if aggregations is not None:
        response["aggregations"] = aggregate(index, aggregations, matching, top_hits)
    return response


def _hits(
    index: Index,
    index_name: str,
    matching: Sequence[Document],
    every: Sequence[Document],
    body: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the page of the matching documents that the body asks for; `every` document is that of the index."""
    start, size = count_of(body, "from", 0), count_of(body, "size", 10)
    if start + size > _MAX_RESULT_WINDOW:
        raise InvalidRequest(
            f"Result window is too large, from + size must be less than or equal to: [{_MAX_RESULT_WINDOW}]"
        )
    select = _source_filter(body.get("_source", True))
    keys = compile_sort(index, body.get("sort", []), every)
    ordered = list(matching)
    sort_documents(ordered, keys)
    score = None if keys or not ordered else 1.0
    hits = [_hit(document, index_name, score, select) for document in ordered[start : start + size]]
    if keys:
        for hit, document in zip(hits, ordered[start : start + size], strict=True):
            hit["sort"] = [key.value(document) for key in keys]
    return {"total": {"value": len(ordered), "relation": "eq"}, "max_score": score, "hits": hits}


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


def _hit(
    document: Document,
    index_name: str,
    score: float | None,
    select: Callable[[Mapping[str, Any]], Mapping[str, Any] | None],
) -> dict[str, Any]:
    hit: dict[str, Any] = {
        "_index": index_name,
        "_id": document.id,
        "_version": document.version,
        "_seq_no": document.seq_no,
        "_primary_term": document.primary_term,
        "_score": score,
    }
    source = select(document.source)
    return hit if source is None else {**hit, "_source": source}
