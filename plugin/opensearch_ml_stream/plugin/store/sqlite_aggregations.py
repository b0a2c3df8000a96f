"""Aggregations of the embedded store: terms, with terms and top_hits below them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.store import Index
from opensearch_ml_stream.plugin.store.mappings import FIELDS
from opensearch_ml_stream.plugin.store.sqlite_fields import Candidate, Field, Kind, find_field
from opensearch_ml_stream.plugin.store.sqlite_search_body import count_of, object_of, options_of, single, unsupported
from opensearch_ml_stream.plugin.store.sqlite_search_bounds import (
    MAX_AGGREGATION_DEPTH,
    MAX_TOP_HITS,
    Counted,
    SearchWork,
)

TopHits = Callable[[Sequence[Candidate], Mapping[str, Any]], dict[str, Any]]
"""Returns the `hits` of documents, as a search with that body would; see `sqlite_search`."""

_KINDS = ("terms", "top_hits")
_NESTED = ("aggs", "aggregations")
_STEPS_AN_AGGREGATION = 20  # in each bucket
_NAME = re.compile(r"[^\[\]>]+")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def check_aggregations(aggregations: object, counted: Counted, depth: int = 1) -> None:
    """Raise InvalidRequest for more aggregations, or deeper ones, than a search may have."""
    if depth > MAX_AGGREGATION_DEPTH:
        raise InvalidRequest(f"Aggregations may be nested {MAX_AGGREGATION_DEPTH} deep")
    for name, aggregation in object_of(aggregations, "aggs").items():
        counted.add()
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                f"Invalid aggregation name [{name}]. Aggregation names can contain any character except '[', ']', and "
                "'>'",
                type="parsing_exception",
            )
        for nested in _NESTED:
            if nested in object_of(aggregation, name):
                check_aggregations(aggregation[nested], counted, depth + 1)


@dataclass(frozen=True, slots=True)
class Aggregations:
    """The aggregations of one search, which share the count of their buckets."""

    index: Index
    top_hits: TopHits
    work: SearchWork
    buckets: Counted

    def results(self, aggregations: object, candidates: Sequence[Candidate]) -> dict[str, Any]:
        """Return the results by name. InvalidRequest names what is not supported."""
        results: dict[str, Any] = {}
        for name, aggregation in object_of(aggregations, "aggs").items():
            self.work.spend(_STEPS_AN_AGGREGATION)
            below = {key: value for key, value in object_of(aggregation, name).items() if key in _NESTED}
            kind, options = single({key: value for key, value in aggregation.items() if key not in _NESTED}, name)
            nested: Any = next(iter(below.values()), {})
            if kind == "top_hits" and not nested:
                results[name] = {"hits": self._top_hits(name, options, candidates)}
            elif kind == "terms":
                results[name] = self._terms(options, nested, candidates)
            else:
                raise InvalidRequest(unsupported(f"aggregation [{kind}]", _KINDS))
        return results

    def _top_hits(self, name: str, clause: object, candidates: Sequence[Candidate]) -> dict[str, Any]:
        options = {"size": 3, **options_of(clause, "top_hits", ("size", "from", "sort", "_source"))}
        window = count_of(options, "from", 0) + count_of(options, "size", 3)
        if window > MAX_TOP_HITS:
            raise InvalidRequest(
                f"Top hits result window is too large, the top hits aggregator [{name}]'s from + size must be less "
                f"than or equal to: [{MAX_TOP_HITS}] but was [{window}]"
            )
        if window == 0:
            raise InvalidRequest(f"[size] of [top_hits] must be greater than 0. Found [0] in [{name}]")
        return self.top_hits(candidates, options)

    def _terms(self, clause: object, nested: object, candidates: Sequence[Candidate]) -> dict[str, Any]:
        options = options_of(clause, "terms", ("field", "size", "order", "min_doc_count"))
        size, minimum = count_of(options, "size", 10), count_of(options, "min_doc_count", 1)
        if not isinstance(options.get("field"), str):
            raise InvalidRequest("[terms] aggregation needs the name of a [field]")
        if size == 0:
            raise InvalidRequest("[size] of [terms] must be greater than 0. Found [0]")
        field = find_field(FIELDS[self.index], options["field"])
        if field.type in ("flat_object", "binary"):
            raise InvalidRequest(f"Field [{field.name}] of type [{field.type}] cannot be aggregated by")
        by, descending = _order(options.get("order", {"_count": "desc"}))
        ordered = sorted(_groups(field, candidates).items(), key=lambda group: _key_order(group[0]))
        if by == "_count":
            ordered.sort(key=lambda group: len(group[1]), reverse=descending)
        elif descending:
            ordered.reverse()
        ordered = [group for group in ordered if len(group[1]) >= max(minimum, 1)]
        self.buckets.add(len(ordered[:size]))
        buckets = [
            {**_key(field, value), "doc_count": len(members), **self.results(nested, members)}
            for value, members in ordered[:size]
        ]
        others = sum(len(members) for _, members in ordered[size:])
        return {"doc_count_error_upper_bound": 0, "sum_other_doc_count": others, "buckets": buckets}


def _groups(field: Field, candidates: Sequence[Candidate]) -> dict[Any, list[Candidate]]:
    """Return the documents by the values of the field."""
    groups: dict[Any, list[Candidate]] = {}
    for candidate in candidates:
        values = candidate.values(field)
        if field.kind is Kind.TEXT and any(isinstance(value, str) for value in values):
            raise InvalidRequest(
                f"Text fields are not optimised for aggregations: use [{field.name}.keyword] instead of [{field.name}]"
            )
        for value in dict.fromkeys(values):
            groups.setdefault(value, []).append(candidate)
    return groups


def _order(order: object) -> tuple[str, bool]:
    by, direction = single(order, "order")
    if by not in ("_count", "_key") or direction not in ("asc", "desc"):
        raise InvalidRequest(unsupported(f"order [{by}] [{direction}]", ("_count and _key, asc and desc",)))
    return by, direction == "desc"


def _key_order(value: Any) -> tuple[bool, Any]:
    return isinstance(value, str), value


def _key(field: Field, value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"key": int(value), "key_as_string": "true" if value else "false"}
    if field.type == "date" and isinstance(value, int):
        return {"key": value, **_date_key(value)}
    return {"key": value}


def _date_key(milliseconds: int) -> dict[str, str]:
    try:
        date = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return {}
    return {"key_as_string": date.isoformat(timespec="milliseconds").replace("+00:00", "Z")}
