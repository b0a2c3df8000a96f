"""Connectors: what is kept about a provider, and who may still be using it."""

from collections.abc import Iterable
from dataclasses import dataclass

from opensearch_ml_stream.connectors.errors import Conflict, InvalidRequest, NotFound
from opensearch_ml_stream.plugin.credentials.master_key import Cipher
from opensearch_ml_stream.plugin.registry.connector_documents import (
    changed_document,
    connector_view,
    encrypted_changes,
    hidden_fields,
    new_document,
)
from opensearch_ml_stream.plugin.registry.deployed_states import DeployedStates, is_deployed
from opensearch_ml_stream.plugin.registry.search import search
from opensearch_ml_stream.plugin.registry.stored_documents import (
    Clock,
    Json,
    find,
    flag_of,
    refuse_access_control,
    rewrite,
)
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.settings.feature_switches import remote_inference_disabled
from opensearch_ml_stream.plugin.store import Document, Index, Store

NO_ACCESS_CONTROL = (
    "You cannot specify connector access control parameters because the Security plugin or connector access control "
    "is disabled on your cluster."
)
DRY_RUN_ID = "dryRunConnector"


@dataclass(frozen=True, slots=True)
class Connectors:
    store: Store
    cipher: Cipher
    live_settings: LiveSettings
    clock: Clock
    states: DeployedStates

    async def create(self, body: Json) -> Json:
        """Stores a connector; with `dry_run`, all is checked and nothing stored."""
        settings = self.live_settings.current
        if not settings.remote_inference_enabled:
            raise remote_inference_disabled()
        refuse_access_control(body, NO_ACCESS_CONTROL)
        document = await new_document(body, settings, self.cipher)
        if flag_of(body, "dry_run"):
            return {"connector_id": DRY_RUN_ID}
        now = self.clock()
        document |= {"created_time": now, "last_updated_time": now}
        return {"connector_id": (await self.store.create(Index.CONNECTOR, document)).id}

    async def get(self, connector_id: str, *, dashboards: bool = False) -> Json:
        document = await self.store.get(Index.CONNECTOR, connector_id)
        if document is None:
            raise _missing(connector_id)
        return connector_view(document.source, dashboards=dashboards)

    async def update(self, connector_id: str, body: Json) -> Json:
        """Refused while a deployed model uses the connector, as in ML Commons."""
        settings = self.live_settings.current
        refuse_access_control(body, NO_ACCESS_CONTROL)
        await self.get(connector_id)
        users = await self.states.view_all(dict(await self._users(connector_id)))
        if deployed := [model_id for model_id, source in users.items() if is_deployed(source)]:
            raise InvalidRequest(_still_used(deployed, "undeploy the models first"), type="status_exception")
        changes = await encrypted_changes(body, self.cipher)

        def change(document: Document) -> Json:
            changed = changed_document(document.source, changes, settings)
            return {**changed, "last_updated_time": self.clock()}

        written = await rewrite(self.store, Index.CONNECTOR, connector_id, change, _missing(connector_id))
        return {} if written is None else written.response

    async def delete(self, connector_id: str) -> Json:
        if users := await self._users(connector_id):
            ids = [model_id for model_id, _ in users]
            raise Conflict(_still_used(ids, "delete or update the models first"))
        return (await self.store.delete(Index.CONNECTOR, connector_id)).response

    async def search(self, body: Json, *, dashboards: bool = False) -> Json:
        return await search(self.store, Index.CONNECTOR, body, hidden_fields(dashboards=dashboards))

    async def _users(self, connector_id: str) -> list[tuple[str, Json]]:
        return await find(self.store, Index.MODEL, "connector_id", connector_id)


def _still_used(model_ids: Iterable[str], what_to_do: str) -> str:
    ids = list(model_ids)
    return f"{len(ids)} models are still using this connector, please {what_to_do}: [{', '.join(ids)}]"


def _missing(connector_id: str) -> NotFound:
    return NotFound(f"Failed to find connector with the provided connector id: {connector_id}")
