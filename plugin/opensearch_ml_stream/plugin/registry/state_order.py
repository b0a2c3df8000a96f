"""Sort by the shown state: each state is a score, and `model_state` in a sort is asked as `_score`."""

from collections.abc import Iterator
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.registry.shown_state import FIELD, STATES, ShownState
from opensearch_ml_stream.plugin.registry.stored_documents import Json

_WITH_SCORES = ("min_score", "track_scores")


def translated(body: Json, state: ShownState) -> Json:
    """Return the body with `model_state` in its sort as a score; InvalidRequest if it wants scores for another use."""
    parts = _parts(body)
    names = [name for name, _ in parts]
    if FIELD not in names:
        return body
    if "_score" in names or names.count(FIELD) > 1 or any(name in body for name in _WITH_SCORES):
        raise InvalidRequest(f"search: a sort by [{FIELD}], once, goes without scores")
    place, descending = _place(parts)
    ranks = [{"constant_score": {"filter": state.is_state(name), "boost": rank}} for rank, name in _ranked(descending)]
    query = {"bool": {"filter": [body.get("query", {"match_all": {}})], "should": ranks, "minimum_should_match": 0}}
    sort = [{"_score": {"order": "desc"}} if name == FIELD else part for name, part in parts]
    changed: dict[str, Any] = {**body, "query": query, "sort": sort}
    if "search_after" in body:
        after = list(body["search_after"])
        after[place] = {name: rank for rank, name in _ranked(descending)}.get(after[place], 0)
        changed["search_after"] = after
    return changed


def restore(body: Json, response: Json) -> None:
    """Write the states into the hits' sort values, and take out the scores that nobody asked for."""
    parts = _parts(body)
    if all(name != FIELD for name, _ in parts):
        return
    place, descending = _place(parts)
    names = dict(_ranked(descending))
    response["hits"]["max_score"] = None
    for hit in response["hits"]["hits"]:
        hit["_score"] = None
        hit["sort"][place] = names.get(round(hit["sort"][place]))


def _ranked(descending: bool) -> Iterator[tuple[int, str]]:
    """Yield score and state: the state that comes first has the highest, what has no state has 0 and comes last."""
    ordered = sorted(STATES, reverse=descending)
    return ((len(ordered) - at, name) for at, name in enumerate(ordered))


def _parts(body: Json) -> list[tuple[str, Any]]:
    """Return the parts of the sort, one for each field, with its name."""
    sort = body.get("sort", [])
    parts = sort if isinstance(sort, list) else [sort]
    named = [{part: {}} if isinstance(part, str) else part for part in parts]
    return [(name, {name: order}) for part in named for name, order in part.items()]


def _place(parts: list[tuple[str, Any]]) -> tuple[int, bool]:
    """Return where in the sort `model_state` stands, and whether it descends."""
    place = [name for name, _ in parts].index(FIELD)
    order = parts[place][1][FIELD]
    return place, (order.get("order") if isinstance(order, dict) else order) == "desc"
