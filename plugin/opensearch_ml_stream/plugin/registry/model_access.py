"""Access of callers to models: a model is as accessible as its group."""

from dataclasses import dataclass
from typing import Self

from opensearch_ml_stream.connectors.errors import Forbidden, MLStreamError
from opensearch_ml_stream.plugin.registry.stored_documents import Json
from opensearch_ml_stream.plugin.registry.switched_access import group_access
from opensearch_ml_stream.plugin.security.access_control import AccessControl
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.store import Document, Index, Store, absent
from opensearch_ml_stream.rest_handlers.callers import Caller

NO_PRIVILEGE = "User doesn't have privilege to perform this operation on this model"

NO_GROUP: Json = {}
NOT_READ: Json = {"access": "not read", "owner": {}}
"""In place of the source of a group: the model has none, and is everyone's; or it was not read, and is nobody's."""


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
        """Check a model by its id. Of one that is no more nobody knows who may access it: admins may."""
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
