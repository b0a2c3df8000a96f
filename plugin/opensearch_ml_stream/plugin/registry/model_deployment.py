"""ModelDeployment and undeploying models, asked for or by itself before a first prediction.

A remote model needs nothing loaded: deploying proves that its connector is there and that its credentials can be
read, and writes that down. Every worker compiles the connector when it first needs it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from opensearch_ml_stream.connectors.documents import read_connector, read_model
from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound
from opensearch_ml_stream.plugin.credentials.master_key import Cipher
from opensearch_ml_stream.plugin.registry.deployed_states import DeployedStates, is_deployed
from opensearch_ml_stream.plugin.registry.node_id import node_id
from opensearch_ml_stream.plugin.registry.stored_documents import Clock, Json
from opensearch_ml_stream.plugin.registry.tasks import record_task
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.store import Document, Index, Store


@dataclass(frozen=True, slots=True)
class ModelDeployment:
    store: Store
    cipher: Cipher
    live_settings: LiveSettings
    clock: Clock
    states: DeployedStates

    async def deploy(self, model_id: str) -> str:
        """Deploys the model, again if need be; returns the id of the (finished) task."""
        started = self.clock()
        document = await self.store.get(Index.MODEL, model_id)
        if document is None:
            raise NotFound("Failed to find model")
        await self._check_callable(document.source)
        node = await self.states.deploy(model_id)
        return await record_task(self.store, self.clock, "DEPLOY_MODEL", model_id, node, started, is_async=True)

    async def undeploy(self, model_ids: Iterable[str]) -> Json:
        """What became of each model: `undeployed`, or `not_found` if it was not deployed."""
        stats: dict[str, str] = {}
        for model_id in model_ids:
            document = await self.store.get(Index.MODEL, model_id)
            was = document is not None and await self.states.undeploy(model_id, document.source)
            stats[model_id] = "undeployed" if was else "not_found"
        return {await node_id(self.store, self.clock): {"stats": stats}}

    async def ensure(self, model_id: str, document: Document) -> None:
        """Deploys a model that is not deployed; InvalidRequest if that is switched off, for all or for this one."""
        source = await self.states.view(model_id, document.source)
        if is_deployed(source):
            return
        if not self.live_settings.current.model_auto_deploy_enable:
            raise InvalidRequest("Model not ready yet. Please deploy the model first.")
        if (source.get("deploy_setting") or {}).get("is_auto_deploy_enabled") is False:
            raise InvalidRequest(
                f"Auto deployment disabled for this model, please deploy model first Model ID: {model_id}"
            )
        await self.deploy(model_id)

    async def _check_callable(self, source: Json) -> None:
        algorithm = source.get("algorithm", "REMOTE")
        if algorithm != "REMOTE":
            raise InvalidRequest(f"The function category {algorithm} is not supported here, only remote models are")
        model = read_model(source)
        connector = model.connector
        if connector is None:
            document = await self.store.get(Index.CONNECTOR, model.connector_id or "")
            if document is None:
                raise NotFound(f"Failed to find connector:{model.connector_id}")
            connector = read_connector(document.source)
        for text in connector.credential.values():
            await self.cipher.decrypt(text)
