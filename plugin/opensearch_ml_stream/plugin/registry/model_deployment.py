"""Deploy and undeploy models: on request, or automatically before a first prediction.

A remote model has nothing to load: deploying it checks that its connector exists and that its credentials can be
decrypted, and stores the state. Every worker compiles the connector when it first needs it. A model with a protocol of
its own is loaded by that protocol first.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

from opensearch_ml_stream.connectors.documents import read_model
from opensearch_ml_stream.connectors.errors import Conflict, InvalidRequest, MLStreamError, Unavailable
from opensearch_ml_stream.plugin.clock import Clock
from opensearch_ml_stream.plugin.connector_protocol import ConnectorProtocol, ModelProtocol, find_protocol
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.parallel import wait_for_all
from opensearch_ml_stream.plugin.registry.deployment_state_store import DeploymentStateStore, is_deployed
from opensearch_ml_stream.plugin.registry.node import node_id
from opensearch_ml_stream.plugin.registry.stored_documents import Json, connector_of, existing_model
from opensearch_ml_stream.plugin.registry.tasks import record_task
from opensearch_ml_stream.plugin.settings import LiveSettings
from opensearch_ml_stream.plugin.store import Document, Index, Store

CountAction = Callable[[str, str | None], AbstractContextManager[None]]
"""Counts an action (`deploy`) around the block that does it, of a model if there is one."""

Deploy = Callable[[], Awaitable[None]]
"""Deploys a model before its first prediction."""

log = logging.getLogger(__name__)


def uncounted(action: str, model_id: str | None) -> AbstractContextManager[None]:
    """Count nothing: the CountAction where there are no statistics."""
    return nullcontext()


@dataclass(frozen=True, slots=True)
class ModelDeployment:
    """Deploys and undeploys models, on request or automatically; `states` stores the result."""

    store: Store
    cipher: Cipher
    live_settings: LiveSettings
    clock: Clock
    states: DeploymentStateStore
    count: CountAction = uncounted
    protocols: Sequence[ConnectorProtocol] = ()

    async def deploy(self, model_id: str) -> str:
        """Deploy the model, deployed or not; return the id of the (finished) task.

        Raises NotFound without the model or its connector, Internal if a credential cannot be decrypted. A model with
        a protocol is loaded as it is now: UpstreamError if it cannot be.
        """
        started = self.clock()
        with self.count("deploy", model_id):
            document = await existing_model(self.store, model_id)
            check = asyncio.create_task(self._check_callable(document.source))
            node = asyncio.create_task(self.states.prepare())
            await wait_for_all(check, node)
            await self._load(model_id, document.source, is_asked=True)
            return await self._store_deployed(model_id, document.source, node.result(), started)

    async def undeploy(self, model_ids: Iterable[str]) -> Json:
        """Undeploy the models; return for each `undeployed`, or `not_found` if it was not deployed, by node id."""
        stats: dict[str, str] = {}
        for model_id in model_ids:
            document = await self.store.get(Index.MODEL, model_id)
            was_deployed = False
            if document is not None:
                with self.count("undeploy", model_id):
                    await self.unload(model_id, document.source)
                    was_deployed = await self.states.undeploy(model_id, document.source)
            stats[model_id] = "undeployed" if was_deployed else "not_found"
        return {await node_id(self.store, self.clock): {"stats": stats}}

    async def plan(self, model_id: str, document: Document) -> Deploy | None:
        """Return a function that deploys a callable model before its prediction; None if it is deployed.

        InvalidRequest if it is not deployed, and automatic deployment is off for all models or for this one. The node
        id and index are prepared at once, while the prediction reads, so that deploying itself is one round trip.
        """
        if is_deployed(document.source):
            return None
        node = asyncio.create_task(self.states.prepare())
        node.add_done_callback(lambda task: task.cancelled() or task.exception())  # which may be nobody's business
        try:
            is_ready = await self.is_ready(model_id, document)
        except BaseException:
            node.cancel()
            raise
        return None if is_ready else partial(self._deploy_first, model_id, document.source, node)

    async def _deploy_first(self, model_id: str, source: Json, node: asyncio.Task[str]) -> None:
        """Deploy a model before its first prediction.

        A store that cannot be written, as on a full disk, does not stop predictions: the state is then not stored.
        """
        started = self.clock()
        with self.count("deploy", model_id):
            await self._load(model_id, source, is_asked=False)
            try:
                async with asyncio.timeout(self.live_settings.current.store_timeout_seconds):
                    await self._store_deployed(model_id, source, await asyncio.shield(node), started)
            except (Unavailable, Conflict, TimeoutError) as error:
                why = error.reason if isinstance(error, MLStreamError) else "the store does not respond"
                log.warning("Model %s is used without being stored as deployed: %s", model_id, why)

    async def _store_deployed(self, model_id: str, source: Json, node: str, started: int) -> str:
        """Store the state and the task at the same time; return the task's id."""
        fields = {"task_type": "DEPLOY_MODEL", "model_id": model_id, "worker_node": [node], "is_async": True}
        if (tenant_id := source.get("tenant_id")) is not None:
            fields["tenant_id"] = tenant_id
        state = asyncio.create_task(self.states.deploy(model_id, node))
        task = asyncio.create_task(record_task(self.store, self.clock, started, fields))
        await wait_for_all(state, task)
        await self._load(model_id, source, is_asked=False)  # another caller may have undeployed it meanwhile
        return task.result()

    async def is_ready(self, model_id: str, document: Document) -> bool:
        """Whether a model is deployed; InvalidRequest if it is not, and a prediction would not deploy it."""
        source = await self.states.view(model_id, document.source)
        if is_deployed(source):
            return True
        if not self.live_settings.current.model_auto_deploy_enable:
            raise InvalidRequest("Model not ready yet. Please deploy the model first.")
        if (source.get("deploy_setting") or {}).get("is_auto_deploy_enabled") is False:
            raise InvalidRequest(
                f"Auto deployment disabled for this model, please deploy model first Model ID: {model_id}"
            )
        return False

    async def unload(self, model_id: str, source: Json) -> None:
        """Unload the model by its protocol; a remote one has nothing to unload."""
        if (protocol := self._protocol(model_id, source)) is not None:
            await protocol.unload()

    async def _load(self, model_id: str, source: Json, *, is_asked: bool) -> None:
        """Load the model by its protocol, again if that was asked for."""
        if (protocol := self._protocol(model_id, source)) is not None:
            await (protocol.load() if is_asked else protocol.ensure())

    def _protocol(self, model_id: str, source: Json) -> ModelProtocol | None:
        return find_protocol(self.protocols, model_id, read_model(source).connector) if self.protocols else None

    async def _check_callable(self, source: Json) -> None:
        cipher = self.cipher.of(source.get("tenant_id"))
        found = asyncio.create_task(connector_of(self.store, source))
        await wait_for_all(found, asyncio.create_task(cipher.read_ahead()))
        connector, _ = found.result()
        for cipher_text in connector.credential.values():
            await cipher.decrypt(cipher_text)
