"""Models: registered, shown, changed, removed. ModelDeployment them is in `deploying`."""

from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.errors import Conflict, Forbidden, InvalidRequest, NotFound
from opensearch_ml_stream.plugin.credentials.master_key import Cipher
from opensearch_ml_stream.plugin.registry.connector_documents import (
    changed_document,
    encrypted_changes,
    hidden_fields,
    new_document,
    require_predict_action,
)
from opensearch_ml_stream.plugin.registry.deployed_states import is_deployed, is_deploying
from opensearch_ml_stream.plugin.registry.model_deployment import ModelDeployment
from opensearch_ml_stream.plugin.registry.model_documents import check_function, model_view, settable_fields
from opensearch_ml_stream.plugin.registry.model_groups import NO_ACCESS_CONTROL, ModelGroups
from opensearch_ml_stream.plugin.registry.node_id import node_id
from opensearch_ml_stream.plugin.registry.preset_interfaces import preset_interface
from opensearch_ml_stream.plugin.registry.search import search
from opensearch_ml_stream.plugin.registry.stored_documents import (
    Clock,
    Json,
    object_of,
    refuse_access_control,
    rewrite,
    text_of,
    texts_of,
)
from opensearch_ml_stream.plugin.registry.tasks import record_task
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.settings.feature_switches import remote_inference_disabled
from opensearch_ml_stream.plugin.store import Document, Index, Store


@dataclass(frozen=True, slots=True)
class Models:
    store: Store
    cipher: Cipher
    live_settings: LiveSettings
    clock: Clock
    groups: ModelGroups
    deployment: ModelDeployment

    async def register(self, body: Json, *, deploy: bool = False) -> Json:
        """Stores a model and its (finished) task; with `deploy` the model is deployed when the answer goes out."""
        started = self.clock()
        if not self.live_settings.current.remote_inference_enabled:
            raise remote_inference_disabled()
        name = text_of(body, "name")
        if not name:
            raise InvalidRequest("model name is null")
        check_function(body)
        refuse_access_control(body, NO_ACCESS_CONTROL)
        fields = settable_fields(body)
        connection, connector = await self._connection(body)
        if "interface" not in fields and (preset := preset_interface(connector)) is not None:
            fields["interface"] = preset
        group_id = text_of(body, "model_group_id") or await self.groups.for_model(name, fields.get("description"))
        model_id = await self._create(name, group_id, {**fields, **connection})
        node = await node_id(self.store, self.clock)
        task_id = await record_task(self.store, self.clock, "REGISTER_MODEL", model_id, node, started)
        if deploy:
            await self.deployment.deploy(model_id)
        return {"task_id": task_id, "status": "CREATED", "model_id": model_id}

    async def get(self, model_id: str, *, dashboards: bool = False) -> Json:
        document = await self._document(model_id, f"Failed to find model with the provided model id: {model_id}")
        return model_view(await self.deployment.states.view(model_id, document.source), dashboards=dashboards)

    async def update(self, model_id: str, body: Json) -> Json:
        missing = NotFound(f"Failed to find model to update with the provided model id: {model_id}")
        stored = (await self._document(model_id, missing.reason)).source
        algorithm = stored.get("algorithm", "REMOTE")
        if algorithm != "REMOTE":
            raise Forbidden(f"The function category {algorithm} is not supported at this time.")
        if is_deploying(stored):
            raise Conflict("Model is deploying. Please wait for the model to complete deployment. model ID " + model_id)
        changes = settable_fields(body)
        if (name := text_of(body, "name")) is not None:
            changes["name"] = name
        changes |= await self._connector_id_change(stored, body)
        connector = await self._inline_changes(stored, body)
        changes |= await self._group_change(stored, body)
        settings = self.live_settings.current

        def change(document: Document) -> Json:
            changed = {**document.source, **changes, "last_updated_time": self.clock()}
            if limiter := changes.get("rate_limiter"):
                changed["rate_limiter"] = {**(document.source.get("rate_limiter") or {}), **limiter}
            if connector is not None:
                changed["connector"] = changed_document(document.source["connector"], connector, settings)
            return changed

        written = await rewrite(self.store, Index.MODEL, model_id, change, missing)
        return {} if written is None else written.response

    async def delete(self, model_id: str) -> Json:
        document = await self._document(model_id, "Failed to find model")
        source = await self.deployment.states.view(model_id, document.source)
        if is_deployed(source) or is_deploying(source):
            raise InvalidRequest(
                "Model cannot be deleted in deploying or deployed state. Try undeploy model first then delete",
                type="status_exception",
            )
        response = (await self.store.delete(Index.MODEL, model_id)).response
        await self.deployment.states.forget(model_id)
        return response

    async def search(self, body: Json, *, dashboards: bool = False) -> Json:
        hidden = hidden_fields(dashboards=dashboards)
        return await search(self.store, Index.MODEL, body, hidden, self.deployment.states.view_all)

    async def deploy(self, model_id: str, body: Json) -> Json:
        if not self.live_settings.current.remote_inference_enabled:
            raise remote_inference_disabled()
        if texts_of(body, "node_ids"):
            raise InvalidRequest("Don't allow custom deployment plan")
        task_id = await self.deployment.deploy(model_id)
        return {"task_id": task_id, "task_type": "DEPLOY_MODEL", "status": "COMPLETED"}

    async def undeploy(self, model_id: str) -> Json:
        await self._document(model_id, "Failed to find model")
        return await self.deployment.undeploy([model_id])

    async def undeploy_many(self, body: Json) -> Json:
        model_ids = texts_of(body, "model_ids")
        if not model_ids:
            raise InvalidRequest("Must set specific model ids to undeploy")
        return await self.deployment.undeploy(model_ids)

    async def _document(self, model_id: str, missing: str) -> Document:
        document = await self.store.get(Index.MODEL, model_id)
        if document is None:
            raise NotFound(missing)
        return document

    async def _create(self, name: str, group_id: str, fields: Json) -> str:
        unknown = NotFound(f"Failed to find the model group with the provided model group id: {group_id}")
        version = await self.groups.next_version(group_id, unknown)
        now = self.clock()
        document: dict[str, Any] = {
            "name": name,
            "algorithm": "REMOTE",
            "model_version": str(version),
            "model_group_id": group_id,
            "model_state": "REGISTERED",
            "created_time": now,
            "last_updated_time": now,
            "is_hidden": False,
            **fields,
        }
        return (await self.store.create(Index.MODEL, document)).id

    async def _connection(self, body: Json) -> tuple[Json, Json]:
        """What the model's document says of its connector (`connector_id`, or `connector` inline), and the connector.

        Both given: `connector_id` counts, since only one can be called.
        """
        if (connector_id := text_of(body, "connector_id")) is not None:
            return {"connector_id": connector_id}, await self._usable_connector(connector_id)
        inline = object_of(body, "connector")
        if inline is None:
            raise InvalidRequest(
                "You must provide connector content when creating a remote model without connector id!"
            )
        document = await new_document(inline, self.live_settings.current, self.cipher)
        require_predict_action(document)
        return {"connector": document}, document

    async def _usable_connector(self, connector_id: str) -> Json:
        document = await self.store.get(Index.CONNECTOR, connector_id)
        if document is None:
            raise NotFound(f"Failed to find connector:{connector_id}")
        protocol = str(document.source.get("protocol"))
        if protocol.startswith("mcp_"):
            raise InvalidRequest(f"Cannot Create a Model from MCP Connector: {connector_id} has protocol {protocol}")
        return document.source

    async def _connector_id_change(self, stored: Json, body: Json) -> Json:
        connector_id = text_of(body, "connector_id")
        if connector_id is None:
            return {}
        if body.get("connector") is not None:
            raise InvalidRequest("A model has either a connector_id or an inline connector, not both")
        if stored.get("connector_id") is None:
            raise InvalidRequest("This remote does not have a connector_id field, maybe it uses an internal connector.")
        await self._usable_connector(connector_id)
        return {"connector_id": connector_id}

    async def _inline_changes(self, stored: Json, body: Json) -> Json | None:
        inline = object_of(body, "connector")
        if inline is None:
            return None
        if stored.get("connector") is None:
            raise InvalidRequest(
                "Cannot update connector settings for this model. The model was created with a connector_id and does "
                "not have an inline connector."
            )
        return await encrypted_changes(inline, self.cipher)

    async def _group_change(self, stored: Json, body: Json) -> Json:
        group_id = text_of(body, "model_group_id")
        if group_id is None or group_id == stored.get("model_group_id"):
            return {}
        unknown = NotFound(
            "Failed to find the model group with the provided model group id in the update model input, "
            f"MODEL_GROUP_ID: {group_id}"
        )
        version = await self.groups.next_version(group_id, unknown)
        return {"model_group_id": group_id, "model_version": str(version)}
