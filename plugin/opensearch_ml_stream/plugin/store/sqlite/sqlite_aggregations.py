"""Aggregations of the embedded store: terms, with terms and top_hits below them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.store import Document, Index
from opensearch_ml_stream.plugin.store.mappings import FIELDS
from opensearch_ml_stream.plugin.store.sqlite.sqlite_body import count_of, object_of, options_of, single, unsupported
from opensearch_ml_stream.plugin.store.sqlite.sqlite_field_values import Field, Kind, find_field

TopHits = Callable[[Sequence[Document], Mapping[str, Any]], dict[str, Any]]
"""Returns the `hits` of documents, as a search with that body would; see `sqlite_search`."""

MAX_DEPTH = 5
_KINDS = ("terms", "top_hits")
_NESTED = ("aggs", "aggregations")


def aggregate(
    index: Index, aggregations: object, documents: Sequence[Document], top_hits: TopHits, depth: int = 1
) -> dict[str, Any]:
    """Return the results of aggregations by name. InvalidRequest names what is not supported."""
    if depth > MAX_DEPTH:
        raise InvalidRequest(f"Aggregations may be nested {MAX_DEPTH} deep")
    results: dict[str, Any] = {}
    for name, aggregation in object_of(aggregations, "aggs").items():
        below = {key: value for key, value in object_of(aggregation, name).items() if key in _NESTED}
        kind, options = single({key: value for key, value in aggregation.items() if key not in _NESTED}, name)
        nested: Any = next(iter(below.values()), {})
        if kind == "top_hits" and not nested:
            options = options_of(options, "top_hits", ("size", "from", "sort", "_source"))
            results[name] = {"hits": top_hits(documents, {"size": 3, **options})}
        elif kind == "terms":
            results[name] = _terms(index, options, nested, documents, top_hits, depth)
        else:
            raise InvalidRequest(unsupported(f"aggregation [{kind}]", _KINDS))
    return results


def _terms(
    index: Index, clause: object, nested: object, documents: Sequence[Document], top_hits: TopHits, depth: int
) -> dict[str, Any]:
    options = options_of(clause, "terms", ("field", "size", "order", "min_doc_count"))
    size, minimum = count_of(options, "size", 10), count_of(options, "min_doc_count", 1)
    if not isinstance(options.get("field"), str):
        raise InvalidRequest("[terms] aggregation needs the name of a [field]")
    groups = _groups(find_field(FIELDS[index], options["field"]), documents)
    ordered = sorted(groups.items(), key=lambda group: _key_order(group[0]))
    by, descending = _order(options.get("order", {"_count": "desc"}))
    if by == "_count":
        ordered.sort(key=lambda group: len(group[1]), reverse=descending)
    elif descending:
        ordered.reverse()
    ordered = [group for group in ordered if len(group[1]) >= max(minimum, 1)]
    buckets = [
        {**_key(value), "doc_count": len(members), **aggregate(index, nested, members, top_hits, depth + 1)}
        for value, members in ordered[:size]
    ]
    others = sum(len(members) for _, members in ordered[size:])
    return {"doc_count_error_upper_bound": 0, "sum_other_doc_count": others, "buckets": buckets}


def _groups(field: Field, documents: Sequence[Document]) -> dict[Any, list[Document]]:
    """Return the documents by the values of the field."""
    groups: dict[Any, list[Document]] = {}
    for document in documents:
        values = [value for value in field.values(document) if not isinstance(value, Mapping)]
        if field.kind is Kind.TEXT and any(isinstance(value, str) for value in values):
            raise InvalidRequest(
                f"Text fields are not optimised for aggregations: use [{field.name}.keyword] instead of [{field.name}]"
            )
        for value in dict.fromkeys(values):
            groups.setdefault(value, []).append(document)
    return groups


def _order(order: object) -> tuple[str, bool]:
    by, direction = single(order, "order")
    if by not in ("_count", "_key") or direction not in ("asc", "desc"):
        raise InvalidRequest(unsupported(f"order [{by}] [{direction}]", ("_count and _key, asc and desc",)))
    return by, direction == "desc"


def _key_order(value: Any) -> tuple[bool, Any]:
    return isinstance(value, str), value


def _key(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"key": int(value), "key_as_string": "true" if value else "false"}
    return {"key": value}
