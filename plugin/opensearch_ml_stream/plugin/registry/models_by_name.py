"""Find a model by id or name among those that the caller may see, as clients of OpenAI's or Anthropic's API name it."""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound
from opensearch_ml_stream.plugin.refreshing_cache import RefreshingCache
from opensearch_ml_stream.plugin.registry.document_access import VisibleDocuments
from opensearch_ml_stream.plugin.registry.stored_documents import IS_REMOTE, Json
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import Caller

FRESH_SECONDS = 1.0
MAX_HELD = 10_000
MAX_OF_ONE_NAME = 10  # that an error lists
MAX_LISTED = 1_000
_MAX_BYTES = 512  # of an id, OpenSearch's limit, and of a name


class ModelsByName:
    """Finds models and keeps the result for FRESH_SECONDS; an id always means the model with that id."""

    def __init__(self, store: Store, visible: VisibleDocuments) -> None:
        self._store = store
        self._visible = visible
        self._found = RefreshingCache[tuple[str, Caller | None], str](FRESH_SECONDS, float("inf"), MAX_HELD)

    async def model_id(self, caller: Caller, name: str) -> str:
        """Return the id of a model. NotFound if there is none, InvalidRequest with the ids if several have the name."""
        key = (name, None if self._visible.shows_all(caller, Index.MODEL) else caller)
        return self._found.fresh(key) or await self._found.get(key, lambda: self._look_up(caller, name))

    async def listed(self, caller: Caller) -> list[tuple[str, Mapping[str, Any]]]:
        """Return ids and stored fields of the remote models that the caller may see, the newest first."""
        return await self._search(caller, [], MAX_LISTED)

    async def _look_up(self, caller: Caller, name: str) -> str:
        if not _may_be_name(name):
            raise _not_found(name)
        if await self._search(caller, [{"ids": {"values": [name]}}], 1):
            return name
        found = await self._search(caller, [{"term": {"name.keyword": name}}], MAX_OF_ONE_NAME)
        if not found:
            raise _not_found(name)
        if len(found) > 1:
            ids = ", ".join(model_id for model_id, _ in found)
            raise InvalidRequest(f"Several models have the name [{name}]; use the id of one as the model: {ids}")
        return found[0][0]

    async def _search(self, caller: Caller, filters: list[Json], size: int) -> list[tuple[str, Mapping[str, Any]]]:
        visible = await self._visible.query(caller, Index.MODEL)
        query: Json = {"bool": {"filter": [IS_REMOTE, *filters, *([] if visible is None else [visible])]}}
        fields = ["name", "created_time", "description"]
        body = {"query": query, "size": size, "sort": [{"created_time": "desc"}], "_source": fields}
        return [(hit["_id"], hit["_source"]) for hit in (await self._store.search(Index.MODEL, body))["hits"]["hits"]]


def _may_be_name(name: str) -> bool:
    try:
        return 0 < len(name.encode()) <= _MAX_BYTES
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can name
        return False


def _not_found(name: str) -> NotFound:
    shown = name if len(name) <= 100 else f"{name[:100]}..."
    return NotFound(f"There is no model with the id or name [{shown}] that you may use; GET /v1/models lists them")
