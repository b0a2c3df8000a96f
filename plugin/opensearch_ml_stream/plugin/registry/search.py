"""Search of stored documents: keep it to what the caller may see, and remove hidden fields from the hits.

The stored documents hold credentials (as cipher text). `_source` is applied here, after the hidden fields are removed,
not in the store; what else a body may contain is in `search_check.py`.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from opensearch_ml_stream.connectors.syntax.filter_path import FieldFilter, pattern_work
from opensearch_ml_stream.plugin.registry.search_check import AGGREGATIONS, check_search, source_patterns
from opensearch_ml_stream.plugin.registry.stored_documents import Json
from opensearch_ml_stream.plugin.store import Index

View = Callable[[Mapping[str, Json]], Awaitable[Mapping[str, Json]]]
"""Returns the sources to show for the stored ones, both by id."""


class Searched(Protocol):
    """What a search runs in: a Store, or one that shows other values than it stores."""

    async def search_for_caller(self, index: Index, body: Json) -> dict[str, Any]:
        """Return OpenSearch's search response."""
        ...


_OF_ONE_BUCKET = frozenset({"filter", "missing", "global"})  # the result itself is their bucket


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
    """Return the body that searches the visible documents alone; scores stay those of its own query."""
    if visible is None:
        return body
    return {**body, "query": {"bool": {"must": [body.get("query", {"match_all": {}})], "filter": [visible]}}}


def _without_source(body: Json) -> dict[str, Any]:
    """Return a body or an aggregation without `_source`: it is applied when hidden fields are removed.

    Without `stored_fields` either: no field is stored, and as in ML Commons the source comes all the same.
    """
    reduced = {name: value for name, value in body.items() if name not in ("_source", "stored_fields")}
    for name in AGGREGATIONS & reduced.keys():
        reduced[name] = {each: _without_source(aggregation) for each, aggregation in reduced[name].items()}
    if "top_hits" in reduced:
        reduced["top_hits"] = _without_source(reduced["top_hits"])
    return reduced


Hits = tuple[list[dict[str, Any]], tuple[str, ...] | None]
"""A list of hits, with the patterns of its `_source`."""


def _hit_lists(body: Json, response: Json) -> Iterator[Hits]:
    """Yield the lists of hits in a response, those of `top_hits` too."""
    yield response["hits"]["hits"], source_patterns(body.get("_source"))
    yield from _aggregated_hits(_aggregations(body), response.get("aggregations", {}))


def _aggregated_hits(aggregations: Json, results: Json) -> Iterator[Hits]:
    for name, aggregation in aggregations.items():
        result = results.get(name, {})
        if "top_hits" in aggregation:
            yield result["hits"]["hits"], source_patterns(aggregation["top_hits"].get("_source"))
        for bucket in [result] if _OF_ONE_BUCKET & aggregation.keys() else _buckets(result):
            yield from _aggregated_hits(_aggregations(aggregation), bucket)


def _aggregations(body: Json) -> dict[str, Any]:
    return next((body[name] for name in AGGREGATIONS if name in body), {})


def _buckets(result: Json) -> Iterable[Json]:
    """Return the buckets of a result, which has them in an array or in an object by key, if any."""
    buckets = result.get("buckets", [])
    return buckets.values() if isinstance(buckets, dict) else buckets
