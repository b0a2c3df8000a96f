"""Model group use cases; a group numbers the versions of the models in it."""

import base64
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from opensearch_ml_stream.connectors.errors import Conflict, Forbidden, InvalidRequest, MLStreamError, NotFound
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.registry.document_access import VisibleDocuments, asked_access
from opensearch_ml_stream.plugin.registry.search import search
from opensearch_ml_stream.plugin.registry.stored_documents import (
    Json,
    existing,
    find,
    in_order,
    name_of,
    rewrite,
    string_of,
)
from opensearch_ml_stream.plugin.security.access_control import PUBLIC, AccessControl, AskedAccess
from opensearch_ml_stream.plugin.store import Document, Index, Store
from opensearch_ml_stream.rest_handlers.callers import Caller

_FIELDS = (
    "name", "latest_version", "description", "backend_roles", "owner", "access", "model_group_id", "created_time",
    "last_updated_time",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelGroups:
    """The model group use cases, over the store."""

    store: Store
    clock: Clock
    access: AccessControl
    visible: VisibleDocuments

    async def register(self, caller: Caller, body: Json) -> Json:
        """Store a new group; InvalidRequest if its name is taken."""
        name = name_of(body, "model group")
        access = self.access.new_fields(caller, asked_access(body))
        await self._check_free(caller, name)
        group_id, created = await self._create(name, string_of(body, "description"), access)
        if not created:
            raise _name_taken(group_id)
        return {"model_group_id": group_id, "status": "CREATED"}

    async def get(self, caller: Caller, group_id: str) -> Json:
        """Return the group; NotFound without it."""
        document = await existing(self.store, Index.MODEL_GROUP, group_id, _missing(group_id))
        if not self.access.allows(caller, document.source):
            raise Forbidden("User doesn't have privilege to perform this operation on this model group")
        return in_order(document.source, _FIELDS)

    async def update(self, caller: Caller, group_id: str, body: Json) -> Json:
        """Change name, description and who may access it; InvalidRequest if another group has the name."""
        asked = asked_access(body)
        self.access.check_applies(caller, asked)
        changes = {} if body.get("name") is None else {"name": name_of(body, "model group")}
        if (description := string_of(body, "description")) is not None:
            changes["description"] = description
        if "name" in changes:
            await self._check_free(caller, changes["name"], group_id)

        def change(document: Document) -> Json:
            if not self.access.allows(caller, document.source):
                raise InvalidRequest("You don't have permissions to perform this operation on this model group.")
            access = self.access.changed_fields(caller, document.source, asked)
            return {**document.source, **changes, **access, "last_updated_time": self.clock()}

        await rewrite(self.store, Index.MODEL_GROUP, group_id, change, _missing(group_id))
        return {"status": "Updated"}

    async def delete(self, caller: Caller, group_id: str) -> Json:
        """Delete the group; Conflict while it has models. Of an unknown group the result is "not_found"."""
        document = await self.store.get(Index.MODEL_GROUP, group_id)
        if document is not None and not self.access.allows(caller, document.source):
            raise Forbidden("User doesn't have privilege to delete this model group")
        query = {"term": {"model_group_id": group_id}}
        models = await self.store.search(Index.MODEL, {"query": query, "size": 1})
        if models["hits"]["hits"]:
            raise Conflict("Cannot delete the model group when it has associated model versions")
        return (await self.store.delete(Index.MODEL_GROUP, group_id)).response

    async def search(self, caller: Caller, body: Json, *, dashboards: bool = False) -> Json:
        """Search groups; nothing in them is hidden from anybody."""
        return await search(
            self.store, Index.MODEL_GROUP, body, (), await self.visible.query(caller, Index.MODEL_GROUP)
        )

    async def for_model(self, caller: Caller, name: str, description: str | None, asked: AskedAccess) -> str:
        """Return the id of the group of that name, created with the requested access if there is none.

        InvalidRequest if the caller may not access the existing group.
        """
        access = self.access.new_fields(caller, asked)
        groups = await find(self.store, Index.MODEL_GROUP, "name", name, caller.tenant_id)
        group_id, created = (groups[0][0], False) if groups else await self._create(name, description, access)
        if not created:
            refusal = InvalidRequest(
                f"The name {{{name}}} you provided is unavailable because it is used by another model group with id "
                f"{{{group_id}}} to which you do not have access. Please provide a different name."
            )
            await self.check_joinable(caller, group_id, asked, refusal)
        return group_id

    async def check_joinable(
        self, caller: Caller, group_id: str, asked: AskedAccess, refusal: MLStreamError | None = None
    ) -> None:
        """Raise `refusal` if the group exists and the caller may not add models to it.

        InvalidRequest if the request has access fields: the group has its own.
        """
        if caller.tenant_id is not None or self.access.restricts(caller):
            group = await self.store.get(Index.MODEL_GROUP, group_id)
            if group is not None and not self.access.allows(caller, group.source):
                raise refusal or InvalidRequest("You don't have permissions to perform this operation on this model.")
        if not asked.is_empty and self.access.applies_to(caller):
            raise InvalidRequest(
                f"The model joins the group {group_id}, which has its own access mode and roles. To change them: "
                f"PUT /_plugins/_ml/model_groups/{group_id}"
            )

    async def next_version(self, group_id: str, missing: NotFound) -> int:
        """Increment the group's latest version and return it; no two models get the same.

        Raises `missing` if there is no such group.
        """
        version = 0

        def change(document: Document) -> Json:
            nonlocal version
            version = int(document.source.get("latest_version") or 0) + 1
            return {**document.source, "latest_version": version, "last_updated_time": self.clock()}

        await rewrite(self.store, Index.MODEL_GROUP, group_id, change, missing)
        return version

    async def _create(self, name: str, description: str | None, access: Json) -> tuple[str, bool]:
        """Return the id of the group of that name, and whether it was created here.

        The id is derived from the name, so that only one of several concurrent writers, in whatever replica, creates
        the group. If the group of that id was renamed, the next id derived from the name is tried.
        """
        now = self.clock()
        source: dict[str, Any] = {"name": name, "latest_version": 0}
        if description is not None:
            source["description"] = description
        source |= {"access": PUBLIC, **access, "created_time": now, "last_updated_time": now}
        number = 0
        while True:
            group_id = _id_for(name, number, access.get("tenant_id"))
            try:
                await self.store.create(Index.MODEL_GROUP, source, group_id)
            except Conflict:
                holder = await self.store.get(Index.MODEL_GROUP, group_id)
                if holder is None:  # deleted meanwhile
                    continue
                if holder.source.get("name") == name:
                    return group_id, False
                number += 1
            else:
                return group_id, True

    async def _check_free(self, caller: Caller, name: str, own_id: str | None = None) -> None:
        for group_id, _ in await find(self.store, Index.MODEL_GROUP, "name", name, caller.tenant_id):
            if own_id is None:
                raise _name_taken(group_id)
            if group_id != own_id:
                raise InvalidRequest(
                    f"The name you provided is already being used by another model with ID: {group_id}. Please provide "
                    "a different name"
                )


def _id_for(name: str, number: int, tenant_id: str | None) -> str:
    """Return an id in the form of OpenSearch's own: 20 characters of URL-safe base64."""
    key = f"{number} {name}" if tenant_id is None else f"{number}\0{tenant_id}\0{name}"
    digest = sha256(key.encode("utf-8", "surrogatepass")).digest()
    return base64.urlsafe_b64encode(digest[:15]).decode("ascii")


def _name_taken(group_id: str) -> InvalidRequest:
    return InvalidRequest(f"The name you provided is already being used by a model group with ID: {group_id}.")


def _missing(group_id: str) -> NotFound:
    return NotFound(f"Failed to find model group with the provided model group id: {group_id}")
