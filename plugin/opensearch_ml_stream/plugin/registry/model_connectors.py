"""The connector of a model: one that is stored, which its caller must be allowed to use, or an inline one."""

from dataclasses import dataclass

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest, MLStreamError
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.registry.connector_documents import (
    encrypted_changes,
    new_document,
    require_predict_action,
)
from opensearch_ml_stream.plugin.registry.stored_documents import Json, existing_connector, id_of, object_of
from opensearch_ml_stream.plugin.security.access_control import AccessControl
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.rest_handlers.callers import Caller


@dataclass(frozen=True, slots=True)
class ModelConnectors:
    """Reads the connector out of the body of a model."""

    store: Store
    cipher: Cipher
    live_settings: LiveSettings
    access: AccessControl

    async def of_new(self, caller: Caller, body: Json) -> tuple[Json, Json]:
        """Return the model's field for its connector (`connector_id` or `connector`), and the connector itself.

        If the body has both, `connector_id` counts, since only one can be called.
        """
        if connector_id := id_of(body, "connector_id"):
            refusal = InvalidRequest(
                f"You don't have permission to use the connector provided, connector id: {connector_id}"
            )
            return {"connector_id": connector_id}, await self._usable(caller, connector_id, refusal)
        inline = object_of(body, "connector")
        if inline is None:
            raise InvalidRequest(
                "You must provide connector content when creating a remote model without connector id!"
            )
        document = new_document(inline, self.live_settings.current, inline=True)
        require_predict_action(document)
        document["credential"] = await self.cipher.of(caller.tenant_id).encrypt_all(document["credential"])
        return {"connector": document}, document

    async def of_stored(self, model: Json) -> Json | None:
        """Return the connector of a stored model, None if it has none or its connector is gone."""
        if not (connector_id := id_of(model, "connector_id")):
            return object_of(model, "connector")
        document = await self.store.get(Index.CONNECTOR, connector_id)
        return None if document is None else document.source

    async def _usable(self, caller: Caller, connector_id: str, refusal: MLStreamError) -> Json:
        source = (await existing_connector(self.store, connector_id)).source
        if not self.access.allows(caller, source):
            raise refusal
        protocol = str(source.get("protocol"))
        if protocol.startswith("mcp_"):
            raise InvalidRequest(f"Cannot Create a Model from MCP Connector: {connector_id} has protocol {protocol}")
        return source

    async def changed_id(self, caller: Caller, stored: Json, body: Json) -> Json:
        """Return the change of a stored model's `connector_id`, empty if the body has none."""
        connector_id = id_of(body, "connector_id")
        if connector_id is None:
            return {}
        if body.get("connector") is not None:
            raise InvalidRequest(
                "Model cannot have both stand-alone connector and internal connector. Please check your update input "
                "body.",
                type="status_exception",
            )
        if stored.get("connector_id") is None:
            raise InvalidRequest(
                "This remote does not have a connector_id field, maybe it uses an internal connector.",
                type="status_exception",
            )
        refusal = Forbidden(f"You don't have permission to update the connector, connector id: {connector_id}")
        await self._usable(caller, connector_id, refusal)
        return {"connector_id": connector_id}

    async def inline_changes(self, stored: Json, body: Json) -> Json | None:
        """Return the `encrypted_changes` of a stored model's inline connector, None if the body has none."""
        inline = object_of(body, "connector")
        if inline is None:
            return None
        if stored.get("connector") is None:
            raise InvalidRequest(
                "Cannot update connector settings for this model. The model was created with a connector_id and does "
                "not have an inline connector.",
                type="status_exception",
            )
        return await encrypted_changes(inline, self.cipher.of(stored.get("tenant_id")))
