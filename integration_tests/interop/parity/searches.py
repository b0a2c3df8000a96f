"""Exchanges about what a search of models may ask for beside a query by field."""

from typing import Any

from integration_tests.interop.parity.exchanges import Exchanges, Step
from integration_tests.interop.parity.inline_models import REGISTER

_ALL: dict[str, Any] = {"match_all": {}}


def _search(query: Any = _ALL, **keys: Any) -> list[Step]:
    own = {"bool": {"must": [query], "filter": [{"term": {"name.keyword": "@name"}}]}}
    return [REGISTER, ("POST /models/_search", {**keys, "query": own})]


def _created(**bounds: Any) -> list[Step]:
    return _search({"range": {"created_time": bounds}})


def _aggregated(aggregation: Any) -> list[Step]:
    return _search(size=0, aggs={"x": aggregation})


EXCHANGES: Exchanges = {
    "search: range now-1d": _created(gte="now-1d"),
    "search: range now+1h": _created(gt="now+1h"),
    "search: range with a format": _created(gte="01/01/2020", format="dd/MM/yyyy"),
    "search: range with null": _created(gte=None),
    "search: range with nonsense": _created(gte="yesterday"),
    "search: range rounded": _created(gte="now/d", lt="now+1d/d"),
    "search: range year": _created(gte="2020"),
    "search: highlight": _search(highlight={"fields": {"name": {}}}),
    "search: fields": _search(fields=["name"]),
    "search: docvalue_fields": _search(docvalue_fields=["created_time"]),
    "search: stored_fields": _search(stored_fields=["name"]),
    "search: explain": _search(explain=True, _source=["name"]),
    "search: suggest": _search(suggest={"x": {"text": "parity", "term": {"field": "name"}}}),
    "search: simple_query_string": _search({"simple_query_string": {"query": "parity", "fields": ["name"]}}),
    "search: query_string without fields": _search({"query_string": {"query": "remote"}}),
    "search: dis_max": _search({"dis_max": {"queries": [_ALL]}}),
    "search: boosting": _search(
        {"boosting": {"positive": _ALL, "negative": {"term": {"x": 1}}, "negative_boost": 0.5}}
    ),
    "search: function_score": _search({"function_score": {"query": _ALL, "weight": 2}}),
    "search: script_fields": _search(script_fields={"x": {"script": "1"}}),
    "search: filters aggregation": _aggregated({"filters": {"filters": {"a": _ALL}}}),
    "search: composite aggregation": _aggregated(
        {"composite": {"sources": [{"n": {"terms": {"field": "name.keyword"}}}]}}
    ),
    "search: track_total_hits false": _search(track_total_hits=False),
    "search: track_total_hits 0": _search(track_total_hits=0),
    "search: size 0": _search(size=0),
    "search: sort _score": _search(sort=["_score"]),
    "search: top_hits": _aggregated({"top_hits": {"size": 1, "_source": ["name"]}}),
}
