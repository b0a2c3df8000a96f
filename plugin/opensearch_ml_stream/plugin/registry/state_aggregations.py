"""Aggregate by the shown state: a `terms` over `model_state` is asked as `filters`, one for each state."""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.registry.shown_state import FIELD, STATES, ShownState
from opensearch_ml_stream.plugin.registry.stored_documents import Json

_DEFAULT_SIZE = 10
_EVERY_MODEL_HAS_ONE = ("value_count", "missing")


def translated(aggregation: Json, state: ShownState) -> Json:
    """Return one aggregation (its inner ones are translated already); InvalidRequest for a kind that cannot be."""
    for kind, value in aggregation.items():
        if not isinstance(value, Mapping) or value.get("field") != FIELD or kind in _EVERY_MODEL_HAS_ONE:
            continue
        if kind != "terms" or not value.keys() <= {"field", "size"}:
            raise InvalidRequest(f"search: over [{FIELD}] only [terms] with [field] and [size] is supported here")
        filters = {"filters": {name: state.is_state(name) for name in STATES}}
        return {**{name: inner for name, inner in aggregation.items() if name != kind}, "filters": filters}
    return aggregation


def restore(body: Json, response: Json) -> None:
    """Give the results of translated aggregations the form that the body asked for."""
    _restore(_inner(body), response.get("aggregations", {}))


def _restore(aggregations: Json, results: Json) -> None:
    for name, aggregation in aggregations.items():
        result = results.get(name)
        if not isinstance(result, dict):
            continue
        terms = aggregation.get("terms")
        if isinstance(terms, Mapping) and terms.get("field") == FIELD:
            result |= _as_terms(result["buckets"], terms.get("size", _DEFAULT_SIZE))
        buckets = result.get("buckets", [result])
        for bucket in buckets.values() if isinstance(buckets, dict) else buckets:
            _restore(_inner(aggregation), bucket)


def _inner(body: Json) -> Json:
    inner: Json = next((body[name] for name in ("aggs", "aggregations") if name in body), {})
    return inner


def _as_terms(by_state: Mapping[str, Any], size: int) -> dict[str, Any]:
    """Return `terms`' result: the buckets that hold models, the largest first."""
    held: list[dict[str, Any]] = [
        {"key": state, **bucket} for state, bucket in by_state.items() if bucket["doc_count"] > 0
    ]
    held.sort(key=lambda bucket: (-bucket["doc_count"], bucket["key"]))
    others = sum(bucket["doc_count"] for bucket in held[size:])
    return {"doc_count_error_upper_bound": 0, "sum_other_doc_count": others, "buckets": held[:size]}
