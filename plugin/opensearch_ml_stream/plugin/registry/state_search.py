"""Search models by the state that is shown, where their documents hold another one.

In a cluster the states of models that the sidecar has deployed are stored apart (see DeploymentStateStore). A search
that names `model_state` is rewritten before it is sent, so that OpenSearch itself computes hits, totals, aggregations,
order and pages for the models as they are shown.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.registry.deployment_state_store import DEPLOYED, deployed_ids
from opensearch_ml_stream.plugin.registry.search import AGGREGATIONS, aggregations_of
from opensearch_ml_stream.plugin.registry.stored_documents import Json
from opensearch_ml_stream.plugin.store import Index, Store

FIELD = "model_state"
STATES = (
    DEPLOYED, "DEPLOYING", "DEPLOY_FAILED", "LOADED", "LOADING", "LOAD_FAILED", "PARTIALLY_DEPLOYED",
    "PARTIALLY_LOADED", "REGISTERED", "REGISTERING", "TRAINED", "UNDEPLOYED", "UNLOADED", "UPLOADED", "UPLOADING",
)  # fmt: skip
"""All states that ML Commons has, in their order."""

MAX_QUERIES = 100  # by the shown state, in one search; an aggregation or a sort is one for each state
MAX_IDS = 200_000  # in all of them
_MANY_FIELDS = ("multi_match", "query_string", "simple_query_string", "combined_fields")
_TRANSLATED = frozenset({*AGGREGATIONS, "query", "post_filter", "sort", "search_after", "collapse", "_source"})
_TRANSLATED_AGGREGATIONS = frozenset({*AGGREGATIONS, "filter", "meta"})
_OF_SEVERAL_QUERIES = ("dis_max", "boosting", "function_score")
_DEFAULT_SIZE = 10
_EVERY_MODEL_HAS_ONE = ("value_count", "missing")
_WITH_SCORES = ("min_score", "track_scores")


@dataclass(slots=True)
class ShownState:
    """Makes queries by the shown state. `deployed` are the ids of the models that the sidecar has deployed."""

    deployed: list[str]
    _queries: int = field(default=0, init=False)

    def elsewhere(self, stored: Json) -> dict[str, Any]:
        """Return the query for what `stored` finds among the models that are shown with their stored state.

        InvalidRequest if one search has too many such queries.
        """
        self._queries += 1
        if self._queries > MAX_QUERIES or self._queries * len(self.deployed) > MAX_IDS:
            raise InvalidRequest(f"search: [{FIELD}] is named too often in one search")
        return {"bool": {"must": [stored], "must_not": [self._here()]}}

    def or_here(self, query: Json) -> dict[str, Any]:
        """Return the query that also finds every model that the sidecar has deployed."""
        return {"bool": {"should": [query, self._here()], "minimum_should_match": 1}}

    def is_state(self, state: str) -> dict[str, Any]:
        """Return the query for the models that are shown with this state."""
        query = self.elsewhere({"term": {FIELD: state}})
        return self.or_here(query) if state == DEPLOYED else query

    def _here(self) -> Json:
        return {"ids": {"values": self.deployed}}


@dataclass(frozen=True, slots=True)
class ShownStates:
    """A store whose models are searched by the states that are shown."""

    store: Store

    async def search_for_caller(self, index: Index, body: Json) -> dict[str, Any]:
        """Return the response to a body that `check_search` has passed."""
        if self.store.cluster is None or FIELD not in jsontext.dumps(body):
            return await self.store.search_for_caller(index, body)
        search = _StateSearch(self.store, ShownState(await deployed_ids(self.store)))
        response = await self.store.search_for_caller(index, await search.translated(body))
        restore_aggregations(body, response)
        restore_sort(body, response)
        return response


@dataclass(frozen=True, slots=True)
class _StateSearch:
    store: Store
    state: ShownState

    async def translated(self, body: Json) -> Json:
        """Return the body that finds in the stored documents what `body` searches in the shown ones."""
        body = await self._with_aggregations(body)
        for name in ("query", "post_filter"):
            if name in body:
                body = {**body, name: await self._query(body[name])}
        if body.get("collapse", {}).get("field") == FIELD:
            raise InvalidRequest(f"search: [collapse] on [{FIELD}] is not supported here")
        _check_without_state(body, _TRANSLATED)
        return translate_sort(body, self.state)

    async def _with_aggregations(self, body: Json) -> Json:
        for name in AGGREGATIONS:
            if name in body:
                body = {**body, name: {each: await self._aggregation(value) for each, value in body[name].items()}}
        return body

    async def _aggregation(self, aggregation: Json) -> Json:
        if "filter" in aggregation:
            aggregation = {**aggregation, "filter": await self._query(aggregation["filter"])}
        of_one_field = {kind for kind, value in aggregation.items() if isinstance(value, dict) and "field" in value}
        _check_without_state(aggregation, _TRANSLATED_AGGREGATIONS | of_one_field)
        return translate_aggregation(await self._with_aggregations(aggregation), self.state)

    async def _query(self, query: Json) -> Json:
        translated: dict[str, Any] = {}
        for kind, clause in query.items():
            if kind == "bool":
                translated[kind] = {name: await self._queries(part) for name, part in clause.items()}
            elif kind in ("constant_score", "nested"):
                inner = "filter" if kind == "constant_score" else "query"
                translated[kind] = {**clause, inner: await self._query(clause[inner])}
            elif kind in _OF_SEVERAL_QUERIES:
                _check_without_state(query, frozenset())
                translated[kind] = clause
            elif kind != "exists" and _asks_for_state(kind, clause):
                elsewhere = self.state.elsewhere({kind: clause})
                return self.state.or_here(elsewhere) if await self._finds_deployed({kind: clause}) else elsewhere
            else:
                translated[kind] = clause
        return translated

    async def _queries(self, part: Any) -> Any:
        """Return the clauses of a bool translated, its options as they are."""
        if isinstance(part, list):
            return [await self._query(query) for query in part]
        return await self._query(part) if isinstance(part, dict) else part

    async def _finds_deployed(self, leaf: Json) -> bool:
        """Whether the query finds DEPLOYED, by a search of the index in which every state is DEPLOYED."""
        if not self.state.deployed:
            return False
        response = await self.store.search(Index.DEPLOYMENT, {"query": leaf, "size": 1, "_source": False})
        return bool(response["hits"]["hits"])


def _check_without_state(parts: Json, translated: frozenset[str]) -> None:
    """Raise InvalidRequest for a part that names `model_state` and would use the stored state."""
    for name, part in parts.items():
        if name not in translated and FIELD in jsontext.dumps(part):
            raise InvalidRequest(f"search: [{name}] over [{FIELD}] is not supported here")


def _asks_for_state(kind: str, clause: Json) -> bool:
    """Whether a query is for `model_state`; InvalidRequest if it is for other fields too."""
    if kind not in _MANY_FIELDS:
        return FIELD in clause
    fields = clause.get("fields", [clause.get("default_field")])
    names = {str(field).partition("^")[0] for field in fields}
    if FIELD in names and len(names) > 1:
        raise InvalidRequest(f"search: [{kind}] over [{FIELD}] and other fields is not supported here")
    return FIELD in names


def translate_aggregation(aggregation: Json, state: ShownState) -> Json:
    """Return one aggregation, its inner ones already translated; InvalidRequest for a kind that is not supported."""
    for kind, value in aggregation.items():
        if not isinstance(value, Mapping) or value.get("field") != FIELD or kind in _EVERY_MODEL_HAS_ONE:
            continue
        if kind != "terms" or not value.keys() <= {"field", "size"}:
            raise InvalidRequest(f"search: over [{FIELD}] only [terms] with [field] and [size] is supported here")
        filters = {"filters": {name: state.is_state(name) for name in STATES}}
        return {**{name: inner for name, inner in aggregation.items() if name != kind}, "filters": filters}
    return aggregation


def restore_aggregations(body: Json, response: Json) -> None:
    """Give the results of translated aggregations the form that the body asked for."""
    _restore_results(aggregations_of(body), response.get("aggregations", {}))


def _restore_results(aggregations: Json, results: Json) -> None:
    for name, aggregation in aggregations.items():
        result = results.get(name)
        if not isinstance(result, dict):
            continue
        terms = aggregation.get("terms")
        if isinstance(terms, Mapping) and terms.get("field") == FIELD:
            result |= _as_terms(result["buckets"], terms.get("size", _DEFAULT_SIZE))
        buckets = result.get("buckets", [result])
        for bucket in buckets.values() if isinstance(buckets, dict) else buckets:
            _restore_results(aggregations_of(aggregation), bucket)


def _as_terms(by_state: Mapping[str, Any], size: int) -> dict[str, Any]:
    """Return `terms`' result: the buckets that hold models, the largest first."""
    held: list[dict[str, Any]] = [
        {"key": state, **bucket} for state, bucket in by_state.items() if bucket["doc_count"] > 0
    ]
    held.sort(key=lambda bucket: (-bucket["doc_count"], bucket["key"]))
    others = sum(bucket["doc_count"] for bucket in held[size:])
    return {"doc_count_error_upper_bound": 0, "sum_other_doc_count": others, "buckets": held[:size]}


def translate_sort(body: Json, state: ShownState) -> Json:
    """Return the body with `model_state` in its sort as a score; InvalidRequest if it wants scores for another use."""
    parts = _parts(body)
    names = [name for name, _ in parts]
    if FIELD not in names:
        return body
    if "_score" in names or names.count(FIELD) > 1 or any(name in body for name in _WITH_SCORES):
        raise InvalidRequest(f"search: sort by [{FIELD}] once, and without scores")
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


def restore_sort(body: Json, response: Json) -> None:
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
