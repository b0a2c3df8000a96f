"""Model groups: they number the versions of the models in them."""

from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import Conflict, InvalidRequest, NotFound
from opensearch_ml_stream.plugin.registry.search import search
from opensearch_ml_stream.plugin.registry.stored_documents import (
    Clock,
    Json,
    find,
    in_order,
    refuse_access_control,
    rewrite,
    text_of,
)
from opensearch_ml_stream.plugin.store import Document, Index, Store

NO_ACCESS_CONTROL = (
    "You cannot specify model access control parameters because the Security plugin or model access control is "
    "disabled on your cluster."
)

_FIELDS = (
    "name", "latest_version", "description", "backend_roles", "owner", "access", "model_group_id", "created_time",
    "last_updated_time",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelGroups:
    store: Store
    clock: Clock

    async def register(self, body: Json) -> Json:
        name = text_of(body, "name")
        if name is None:
            raise InvalidRequest("model group name is null")
        refuse_access_control(body, NO_ACCESS_CONTROL)
        await self._check_free(name)
        return {"model_group_id": await self._create(name, text_of(body, "description")), "status": "CREATED"}

    async def get(self, group_id: str) -> Json:
        document = await self.store.get(Index.MODEL_GROUP, group_id)
        if document is None:
            raise NotFound("Failed to find model group")
        return in_order(document.source, _FIELDS)

    async def update(self, group_id: str, body: Json) -> Json:
        refuse_access_control(body, NO_ACCESS_CONTROL)
        changes = {name: text for name in ("name", "description") if (text := text_of(body, name)) is not None}
        if "name" in changes:
            await self._check_free(changes["name"], group_id)

        def change(document: Document) -> Json:
            return {**document.source, **changes, "last_updated_time": self.clock()}

        await rewrite(self.store, Index.MODEL_GROUP, group_id, change, NotFound("Failed to find model group"))
        return {"status": "Updated"}

    async def delete(self, group_id: str) -> Json:
        await self.get(group_id)
        query = {"term": {"model_group_id": group_id}}
        used = await self.store.search(Index.MODEL, {"query": query, "size": 1})
        if used["hits"]["hits"]:
            raise Conflict("Cannot delete the model group when it has associated model versions")
        return (await self.store.delete(Index.MODEL_GROUP, group_id)).response

    async def search(self, body: Json, *, dashboards: bool = False) -> Json:
        return await search(self.store, Index.MODEL_GROUP, body, ())

    async def for_model(self, name: str, description: str | None) -> str:
        """The group of that name, made if there is none."""
        found = await find(self.store, Index.MODEL_GROUP, "name", name)
        return found[0][0] if found else await self._create(name, description)

    async def next_version(self, group_id: str, missing: NotFound) -> int:
        """Counts the group's latest version up; no two models get the same. Raises `missing` without the group."""
        version = 0

        def change(document: Document) -> Json:
            nonlocal version
            version = int(document.source.get("latest_version") or 0) + 1
            return {**document.source, "latest_version": version, "last_updated_time": self.clock()}

        await rewrite(self.store, Index.MODEL_GROUP, group_id, change, missing)
        return version

    async def _create(self, name: str, description: str | None) -> str:
        now = self.clock()
        source: dict[str, Any] = {"name": name, "latest_version": 0}
        if description is not None:
            source["description"] = description
        source |= {"access": "public", "created_time": now, "last_updated_time": now}
        return (await self.store.create(Index.MODEL_GROUP, source)).id

    async def _check_free(self, name: str, own_id: str | None = None) -> None:
        for other, _ in await find(self.store, Index.MODEL_GROUP, "name", name):
            if other != own_id:
                raise InvalidRequest(f"The name you provided is already being used by a model group with ID: {other}.")
