"""Access of callers to stored documents, as a check of one and as a query that finds all they may see.

A model is as accessible as its group, and everyone's without one; a task is as accessible as its model. The query has
the store itself leave out everything else.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest, MLStreamError
from opensearch_ml_stream.plugin.registry.stored_documents import MAX_FOUND, Json, flag_of, string_of, strings_of
from opensearch_ml_stream.plugin.security.access_control import (
    ACCESS_MODES,
    AccessControl,
    AskedAccess,
    connector_access,
    group_access,
    visible_to,
)
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.store import Document, Index, Store, absent
from opensearch_ml_stream.rest_handlers.callers import Caller

MAX_GROUPS = 10_000  # of one caller, as in ML Commons: models of further groups are not found
MAX_MODELS = 10_000  # of one caller: tasks of further models are not found

_WITHOUT_GROUP: Json = {"bool": {"must_not": [{"exists": {"field": "model_group_id"}}]}}
NO_PRIVILEGE = "User doesn't have privilege to perform this operation on this model"

NO_GROUP: Json = {}
NOT_READ: Json = {"access": "not read", "owner": {}}
"""In place of the source of a group: the model has none, and is everyone's; or it was not read, and is nobody's."""


def asked_access(body: Json) -> AskedAccess:
    """Return `access_mode`, `backend_roles` and `add_all_backend_roles` of a body.

    InvalidRequest for a mode that is unknown, or a value of the wrong type.
    """
    mode = string_of(body, "access_mode")
    if mode is not None and mode.lower() not in ACCESS_MODES:
        raise InvalidRequest(f"access_mode must be one of {', '.join(ACCESS_MODES)}")
    roles = strings_of(body, "backend_roles")
    return AskedAccess(
        None if mode is None else mode.lower(),
        None if roles is None else tuple(roles),
        flag_of(body, "add_all_backend_roles"),
    )


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """Checks access to models, by their groups.

    Each check raises `refusal`, by default Forbidden in ML Commons' words, if the caller may not access the model.
    """

    store: Store
    groups: AccessControl

    @classmethod
    def of(cls, store: Store, live_settings: LiveSettings) -> Self:
        """Return the access to a store's models, controlled if the settings say so."""
        return cls(store, group_access(live_settings))

    def concerns(self, caller: Caller) -> bool:
        """Whether there may be a model that the caller may not access."""
        return caller.tenant_id is not None or self.groups.restricts(caller)

    async def check_id(self, caller: Caller, model_id: str | None, refusal: MLStreamError | None = None) -> None:
        """Check a model by its id. A model that does not exist is only accessible to admins."""
        if self.concerns(caller):
            document = None if model_id is None else await self.store.get(Index.MODEL, model_id)
            if document is None:
                raise refusal or Forbidden(NO_PRIVILEGE)
            await self.check(caller, document.source, refusal)

    async def check(self, caller: Caller, model: Json, refusal: MLStreamError | None = None) -> None:
        """Check a model by its source; Forbidden for another tenant's."""
        caller.check_tenant(model)
        if self.groups.restricts(caller):
            _, group = await self.read(model)
            self.check_group(caller, group, refusal)

    def check_group(self, caller: Caller, group: Json | None, refusal: MLStreamError | None = None) -> None:
        """Check a model by its group's source, as `read` returns it."""
        if not self.groups.modes_allow(caller, group):
            raise refusal or Forbidden(NO_PRIVILEGE)

    async def read(self, model: Json) -> tuple[Document | None, Json | None]:
        """Return the group, None if the model has none, and what to check: NO_GROUP then, None if it is missing."""
        group_id = model.get("model_group_id")
        if not group_id:
            return None, NO_GROUP
        group = await self.store.get(Index.MODEL_GROUP, str(group_id))
        return (absent(str(group_id)), None) if group is None else (group, group.source)


@dataclass(frozen=True, slots=True)
class VisibleDocuments:
    """Queries for what a caller may see. Where that is everything, the store is not asked."""

    store: Store
    connectors: AccessControl
    groups: AccessControl

    @classmethod
    def of(cls, store: Store, live_settings: LiveSettings) -> Self:
        """Return what is visible in a store, controlled if the settings say so."""
        return cls(store, connector_access(live_settings), group_access(live_settings))

    def shows_all(self, caller: Caller, index: Index) -> bool:
        """Whether the caller may see every document of the index."""
        return caller.tenant_id is None and not self._restricts(caller, index)

    async def query(self, caller: Caller, index: Index) -> Json | None:
        """Return the query that finds what the caller may see in the index, None if that is everything."""
        filters = _of_tenant(caller)
        if self._restricts(caller, index):
            filters.append(await self._accessible(caller, index))
        return {"bool": {"filter": filters}} if filters else None

    async def models(self, caller: Caller, model_ids: Collection[str]) -> Collection[str]:
        """Return those of the models that the caller may see."""
        visible = await self.query(caller, Index.MODEL) if model_ids else None
        if visible is None:
            return model_ids
        ids, found = list(model_ids), set[str]()
        for start in range(0, len(ids), MAX_FOUND):
            wanted: Json = {"ids": {"values": ids[start : start + MAX_FOUND]}}
            found.update(await self._ids(Index.MODEL, [wanted, visible], MAX_FOUND))
        return found

    def _restricts(self, caller: Caller, index: Index) -> bool:
        control = self.connectors if index is Index.CONNECTOR else self.groups
        return control.restricts(caller)

    async def _accessible(self, caller: Caller, index: Index) -> Json:
        tenant = _of_tenant(caller)
        if index is Index.MODEL:
            groups = await self._ids(Index.MODEL_GROUP, [*tenant, visible_to(caller)], MAX_GROUPS)
            return {"bool": {"should": [{"terms": {"model_group_id": groups}}, _WITHOUT_GROUP]}}
        if index is Index.TASK:
            accessible = await self._accessible(caller, Index.MODEL)
            return {"terms": {"model_id": await self._ids(Index.MODEL, [*tenant, accessible], MAX_MODELS)}}
        return visible_to(caller)

    async def _ids(self, index: Index, filters: list[Json], size: int) -> list[str]:
        body = {"query": {"bool": {"filter": filters}}, "size": size, "_source": False}
        return [hit["_id"] for hit in (await self.store.search(index, body))["hits"]["hits"]]


def _of_tenant(caller: Caller) -> list[Json]:
    return [] if caller.tenant_id is None else [{"term": {"tenant_id": caller.tenant_id}}]
