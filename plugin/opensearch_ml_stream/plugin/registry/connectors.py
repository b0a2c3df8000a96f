"""Connector use cases: create, get, update, delete, search."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from opensearch_ml_stream.connectors.errors import Conflict, Forbidden, InvalidRequest, NotFound
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.parallel import wait_for_all
from opensearch_ml_stream.plugin.registry.connector_documents import (
    changed_document,
    connector_view,
    encrypted_changes,
    hidden_fields,
    missing_value_warnings,
    new_document,
    with_warnings,
)
from opensearch_ml_stream.plugin.registry.deployment_state_store import DeploymentStateStore, is_deployed
from opensearch_ml_stream.plugin.registry.document_access import VisibleDocuments, asked_access
from opensearch_ml_stream.plugin.registry.search import search
from opensearch_ml_stream.plugin.registry.stored_documents import (
    Json,
    existing,
    find,
    flag_of,
    rewrite,
)
from opensearch_ml_stream.plugin.security.access_control import AccessControl
from opensearch_ml_stream.plugin.settings import LiveSettings, remote_inference_disabled
from opensearch_ml_stream.plugin.store import Document, Index, Store
from opensearch_ml_stream.rest_handlers.callers import Caller

DRY_RUN_ID = "dryRunConnector"


@dataclass(frozen=True, slots=True)
class Connectors:
    """The connector use cases, over the store; credentials are stored encrypted and never returned."""

    store: Store
    cipher: Cipher
    live_settings: LiveSettings
    clock: Clock
    states: DeploymentStateStore
    access: AccessControl
    visible: VisibleDocuments

    async def create(self, caller: Caller, body: Json) -> Json:
        """Store a new connector; with `dry_run`, everything is checked and nothing stored."""
        settings = self.live_settings.current
        if not settings.remote_inference_enabled:
            raise remote_inference_disabled()
        access = self.access.new_fields(caller, asked_access(body))
        dry_run = flag_of(body, "dry_run")
        if dry_run and set(body) == {"dry_run"}:  # asks whether connectors can be created at all
            return {"connector_id": DRY_RUN_ID}
        document = new_document(body, settings)
        if dry_run:
            return with_warnings({"connector_id": DRY_RUN_ID}, missing_value_warnings(body, document))
        prepared = asyncio.create_task(self.store.prepare(Index.CONFIG, Index.CONNECTOR))
        encrypted = asyncio.create_task(self.cipher.of(caller.tenant_id).encrypt_all(document["credential"]))
        await wait_for_all(prepared, encrypted)
        document["credential"] = encrypted.result()
        now = self.clock()
        document |= {**access, "created_time": now, "last_updated_time": now}
        connector_id = (await self.store.create(Index.CONNECTOR, document)).id
        return with_warnings({"connector_id": connector_id}, missing_value_warnings(body, document))

    async def get(self, caller: Caller, connector_id: str, *, dashboards: bool = False) -> Json:
        """Return the connector without its credentials; NotFound without it."""
        document = await existing(self.store, Index.CONNECTOR, connector_id, _missing(connector_id))
        if not self.access.allows(caller, document.source):
            raise Forbidden("You don't have permission to access this connector")
        return connector_view(document.source, dashboards=dashboards)

    async def update(self, caller: Caller, connector_id: str, body: Json) -> Json:
        """Change the connector; refused while a deployed model uses it, as in ML Commons."""
        settings = self.live_settings.current
        stored = await existing(self.store, Index.CONNECTOR, connector_id, _missing(connector_id))
        self._check_change(caller, connector_id, stored)
        models = await self.states.view_all(dict(await self._models_using(connector_id)))
        if deployed := [model_id for model_id, source in models.items() if is_deployed(source)]:
            raise InvalidRequest(_still_used(deployed, "undeploy the models first"), type="status_exception")
        changes = await encrypted_changes(body, self.cipher.of(caller.tenant_id))
        asked, is_on = asked_access(body), self.access.applies_to(caller)
        changed = stored.source

        def change(document: Document) -> Json:
            nonlocal changed
            self._check_change(caller, connector_id, document)
            access = self.access.changed_fields(caller, document.source, asked) if is_on else {}
            changed = changed_document(document.source, {**changes, **access}, settings)
            return {**changed, "last_updated_time": self.clock()}

        written = await rewrite(self.store, Index.CONNECTOR, connector_id, change, _missing(connector_id))
        return {} if written is None else with_warnings(written.response, missing_value_warnings(body, changed))

    async def delete(self, caller: Caller, connector_id: str) -> Json:
        """Delete the connector; Conflict while a model uses it."""
        document = await self.store.get(Index.CONNECTOR, connector_id)
        if document is not None and not self.access.allows(caller, document.source):
            raise Forbidden("You are not allowed to delete this connector")
        if models := await self._models_using(connector_id):
            ids = [model_id for model_id, _ in models]
            raise Conflict(_still_used(ids, "delete or update the models first"))
        return (await self.store.delete(Index.CONNECTOR, connector_id)).response

    async def search(self, caller: Caller, body: Json, *, dashboards: bool = False) -> Json:
        """Search connectors; credentials are neither searched nor returned."""
        visible = await self.visible.query(caller, Index.CONNECTOR)
        return await search(self.store, Index.CONNECTOR, body, hidden_fields(dashboards=dashboards), visible)

    def _check_change(self, caller: Caller, connector_id: str, document: Document) -> None:
        if not self.access.allows(caller, document.source):
            raise InvalidRequest(f"You don't have permission to update the connector, connector id: {connector_id}")

    async def _models_using(self, connector_id: str) -> list[tuple[str, Json]]:
        return await find(self.store, Index.MODEL, "connector_id", connector_id)


def _still_used(model_ids: Sequence[str], what_to_do: str) -> str:
    return f"{len(model_ids)} models are still using this connector, please {what_to_do}: [{', '.join(model_ids)}]"


def _missing(connector_id: str) -> NotFound:
    return NotFound(f"Failed to find connector with the provided connector id: {connector_id}")
