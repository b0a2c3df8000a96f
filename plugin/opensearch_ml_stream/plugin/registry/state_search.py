"""Search models by the state that is shown, where the models' documents hold another one.

In a cluster the states of what the sidecar has deployed are stored apart (see DeploymentStateStore). A search that
names `model_state` is changed accordingly before it is sent, so that hits, totals, aggregations, order and pages are
OpenSearch's own work, over the models as they are shown.
"""

from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.registry import state_aggregations, state_order
from opensearch_ml_stream.plugin.registry.deployment_state_store import deployed_ids
from opensearch_ml_stream.plugin.registry.shown_state import FIELD, ShownState
from opensearch_ml_stream.plugin.registry.stored_documents import Json
from opensearch_ml_stream.plugin.store import Index, Store

_AGGREGATIONS = ("aggs", "aggregations")
_MANY_FIELDS = ("multi_match", "query_string", "simple_query_string", "combined_fields")
_TRANSLATED = frozenset({*_AGGREGATIONS, "query", "post_filter", "sort", "search_after", "collapse", "_source"})
_TRANSLATED_AGGREGATIONS = frozenset({*_AGGREGATIONS, "filter", "meta"})
_OF_SEVERAL_QUERIES = ("dis_max", "boosting", "function_score")


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
        state_aggregations.restore(body, response)
        state_order.restore(body, response)
        return response


@dataclass(frozen=True, slots=True)
class _StateSearch:
    store: Store
    state: ShownState

    async def translated(self, body: Json) -> Json:
        """Return the body that finds in the stored documents what `body` asks of the shown ones."""
        body = await self._with_aggregations(body)
        for name in ("query", "post_filter"):
            if name in body:
                body = {**body, name: await self._query(body[name])}
        if body.get("collapse", {}).get("field") == FIELD:
            raise InvalidRequest(f"search: [collapse] on [{FIELD}] is not supported here")
        _check_without_state(body, _TRANSLATED)
        return state_order.translated(body, self.state)

    async def _with_aggregations(self, body: Json) -> Json:
        for name in _AGGREGATIONS:
            if name in body:
                body = {**body, name: {each: await self._aggregation(value) for each, value in body[name].items()}}
        return body

    async def _aggregation(self, aggregation: Json) -> Json:
        if "filter" in aggregation:
            aggregation = {**aggregation, "filter": await self._query(aggregation["filter"])}
        of_one_field = {kind for kind, value in aggregation.items() if isinstance(value, dict) and "field" in value}
        _check_without_state(aggregation, _TRANSLATED_AGGREGATIONS | of_one_field)
        return state_aggregations.translated(await self._with_aggregations(aggregation), self.state)

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
        """Whether the query finds DEPLOYED: the store says so itself, by looking where nothing else is stored."""
        if not self.state.deployed:
            return False
        response = await self.store.search(Index.DEPLOYMENT, {"query": leaf, "size": 1, "_source": False})
        return bool(response["hits"]["hits"])


def _check_without_state(parts: Json, translated: frozenset[str]) -> None:
    """Raise InvalidRequest for a part that names `model_state` and would go by what is stored."""
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
