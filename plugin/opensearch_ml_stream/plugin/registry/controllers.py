"""Controller use cases (create, get, update, delete): limits of how often each user may call a model.

A controller is stored as ML Commons has it, under its model's id. It is in force where the model is called: see
`predictions/model_cache.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import Conflict, Forbidden, InvalidRequest, NotFound
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.registry.deployment_state_store import is_deploying
from opensearch_ml_stream.plugin.registry.document_access import NO_PRIVILEGE, ModelAccess
from opensearch_ml_stream.plugin.registry.model_documents import rate_limiter_document
from opensearch_ml_stream.plugin.registry.stored_documents import Json, existing, merged, object_of, rewrite
from opensearch_ml_stream.plugin.store import Document, Index, Store
from opensearch_ml_stream.rest_handlers.callers import Caller

MAX_USERS = 10_000  # of one controller, as it is read whole

_USER_LIMITS = "user_rate_limiter"
_NO_MODEL = "Failed to find model to create the corresponding model controller with the provided model ID"


@dataclass(frozen=True, slots=True)
class Controllers:
    """The controller use cases, over the store."""

    store: Store
    clock: Clock
    access: ModelAccess

    async def create(self, caller: Caller, model_id: str, body: Json) -> Json:
        """Store the model's controller, replacing an existing one; NotFound without the model."""
        limits = _user_limits(body)
        await self._check_model(caller, model_id)
        written = await self.store.put(Index.CONTROLLER, model_id, {"model_id": model_id, _USER_LIMITS: limits})
        await self._note_in_model(model_id, is_enabled=True)
        return {"model_id": model_id, "status": str(written.response["result"]).upper()}

    async def get(self, caller: Caller, model_id: str) -> Json:
        """Return the model's controller; NotFound without one."""
        missing = NotFound("Failed to find model controller with the provided model ID")
        source = (await existing(self.store, Index.CONTROLLER, model_id, missing)).source
        await self.access.check_id(caller, model_id, _no_privilege(model_id))
        return {"model_id": model_id, _USER_LIMITS: source.get(_USER_LIMITS) or {}}

    async def update(self, caller: Caller, model_id: str, body: Json) -> Json:
        """Change the limits of some users and keep the others; Conflict if the model has no controller."""
        limits = _user_limits(body)
        await self._check_model(caller, model_id)
        missing = Conflict(
            "Model controller haven't been created for the model. Consider calling create model controller api "
            f"instead. Model ID: {model_id}",
            type="status_exception",
        )

        def change(document: Document) -> Json:
            changed = merged(document.source, {_USER_LIMITS: limits})
            _check_number(changed[_USER_LIMITS])
            return changed

        written = await rewrite(self.store, Index.CONTROLLER, model_id, change, missing)
        return {} if written is None else written.response

    async def delete(self, caller: Caller, model_id: str) -> Json:
        """Delete a controller, also that of a model that was deleted; NotFound without one."""
        await existing(self.store, Index.CONTROLLER, model_id, NotFound("Failed to find model controller"))
        await self.access.check_id(caller, model_id, _no_privilege(model_id))
        response = (await self.store.delete(Index.CONTROLLER, model_id)).response
        await self._note_in_model(model_id, is_enabled=False)
        return response

    async def _check_model(self, caller: Caller, model_id: str) -> None:
        source = (await existing(self.store, Index.MODEL, model_id, NotFound(_NO_MODEL))).source
        await self.access.check(caller, source, _no_privilege(model_id))
        function = source.get("algorithm", "REMOTE")
        if function != "REMOTE":
            raise Forbidden(
                f"Creating model controller on this operation on the function category {function} is not supported."
            )
        if is_deploying(source):
            raise Conflict(
                "Creating a model controller during its corresponding model in DEPLOYING state is not allowed, please "
                "either create the model controller after it is deployed or before deploying it. Model ID: " + model_id,
                type="status_exception",
            )

    async def _note_in_model(self, model_id: str, *, is_enabled: bool) -> None:
        """Store in the model whether it has a controller, where ML Commons looks for that."""
        if await self.store.get(Index.MODEL, model_id) is None:
            return

        def change(document: Document) -> Json | None:
            if document.source.get("is_controller_enabled") is is_enabled:
                return None
            return {**document.source, "is_controller_enabled": is_enabled, "last_updated_time": self.clock()}

        await rewrite(self.store, Index.MODEL, model_id, change, NotFound(_NO_MODEL))


def _no_privilege(model_id: str) -> Forbidden:
    return Forbidden(f"{NO_PRIVILEGE} controller, model ID: {model_id}")


def _user_limits(body: Json) -> Mapping[str, Any]:
    """Return the limits by user name as they are stored; a limit without its unit, or the reverse, is allowed."""
    limits = object_of(body, _USER_LIMITS) or {}
    _check_number(limits)
    stored: dict[str, Any] = {}
    for user in limits:
        document = rate_limiter_document(object_of(limits, user), f"{_USER_LIMITS}.{user}")
        if document is None:
            raise InvalidRequest(f"{_USER_LIMITS}.{user} must be an object with limit and unit")
        if document:
            stored[user] = document
    return stored


def _check_number(limits: Mapping[str, Any]) -> None:
    if len(limits) > MAX_USERS:
        raise InvalidRequest(f"{_USER_LIMITS} has more than {MAX_USERS} users")
