"""Model group use cases; a group numbers the versions of the models in it."""

from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import Conflict, InvalidRequest, NotFound
from opensearch_ml_stream.plugin.registry.search import search
from opensearch_ml_stream.plugin.registry.stored_documents import (
    Clock,
    Json,
    existing,
    find,
    in_order,
    refuse_access_control,
    rewrite,
    string_of,
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
    """The model group use cases, over the store."""

    store: Store
    clock: Clock

    async def register(self, body: Json) -> Json:
        """Store a new group; InvalidRequest if its name is taken."""
        name = string_of(body, "name")
        if name is None:
            raise InvalidRequest("model group name is null")
        refuse_access_control(body, NO_ACCESS_CONTROL)
        await self._check_free(name)
        return {"model_group_id": await self._create(name, string_of(body, "description")), "status": "CREATED"}

    async def get(self, group_id: str) -> Json:
        """Return the group; NotFound without it."""
        document = await existing(self.store, Index.MODEL_GROUP, group_id, _missing())
        return in_order(document.source, _FIELDS)

    async def update(self, group_id: str, body: Json) -> Json:
        """Change name and description; InvalidRequest if another group has the name."""
        refuse_access_control(body, NO_ACCESS_CONTROL)
        changes = {name: value for name in ("name", "description") if (value := string_of(body, name)) is not None}
        if "name" in changes:
            await self._check_free(changes["name"], group_id)

        def change(document: Document) -> Json:
            return {**document.source, **changes, "last_updated_time": self.clock()}

        await rewrite(self.store, Index.MODEL_GROUP, group_id, change, _missing())
        return {"status": "Updated"}

    async def delete(self, group_id: str) -> Json:
        """Delete the group; Conflict while it has models."""
        await self.get(group_id)
        query = {"term": {"model_group_id": group_id}}
        models = await self.store.search(Index.MODEL, {"query": query, "size": 1})
        if models["hits"]["hits"]:
            raise Conflict("Cannot delete the model group when it has associated model versions")
        return (await self.store.delete(Index.MODEL_GROUP, group_id)).response

    async def search(self, body: Json, *, dashboards: bool = False) -> Json:
        """Search groups; nothing in them is hidden from anybody."""
        return await search(self.store, Index.MODEL_GROUP, body, ())

    async def for_model(self, name: str, description: str | None) -> str:
        """Return the id of the group of that name, created if there is none."""
        groups = await find(self.store, Index.MODEL_GROUP, "name", name)
        return groups[0][0] if groups else await self._create(name, description)

    async def next_version(self, group_id: str, missing: NotFound) -> int:
        """Count the group's latest version up and return it; no two models get the same.

        Raises `missing` if there is no such group.
        """
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
        for group_id, _ in await find(self.store, Index.MODEL_GROUP, "name", name):
            if group_id != own_id:
                raise InvalidRequest(
                    f"The name you provided is already being used by a model group with ID: {group_id}."
                )


def _missing() -> NotFound:
    return NotFound("Failed to find model group")
