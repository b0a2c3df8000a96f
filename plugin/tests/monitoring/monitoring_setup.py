"""The management use cases, the statistics and what is made of both, over a store in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.metrics import Metrics
from opensearch_ml_stream.plugin.monitoring.profiles import Profiles
from opensearch_ml_stream.plugin.monitoring.server_stats import ServerStats
from opensearch_ml_stream.plugin.monitoring.statistics import open_statistics
from opensearch_ml_stream.plugin.observation import Observations
from opensearch_ml_stream.plugin.registry import Registry, build_registry
from opensearch_ml_stream.plugin.registry.deployment_state_store import DeploymentStateStore
from opensearch_ml_stream.plugin.registry.document_access import VisibleDocuments
from opensearch_ml_stream.plugin.registry.model_deployment import ModelDeployment
from opensearch_ml_stream.plugin.registry.node import ServerNode, node_id
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.store import Store
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE
from tests.registry.registry_setup import add_model, closing

NOW = 1_000_000
SERVER = "host:9510"


@dataclass(frozen=True)
class Monitored:
    store: Store
    registry: Registry
    observations: Observations
    profiles: Profiles
    stats: ServerStats

    async def deployed_model(self) -> str:
        """The id of a new model that is deployed."""
        model_id = await add_model(self.registry)
        await self.registry.models.deploy(ANYONE, model_id, {})
        return model_id

    def predict(self, model_id: str, outcome: MLStreamError | None = None) -> None:
        """Count one prediction of the model, a good one by default."""
        with self.observations.whole(ANYONE) as observed:
            observed.set_model(model_id)
            observed.outcome = outcome

    async def node_profile(self, **body: Any) -> Any:
        """What the one node says to a profile's request."""
        response = dict(await self.profiles.get(ANYONE, body, view="node"))
        node = await node_id(self.store, lambda: NOW)
        assert response["nodes"].keys() == {node}
        return response["nodes"][node]

    async def node_stats(self, *names: str, **body: Any) -> Any:
        """What the one node says to a stats request, by names or by a body."""
        response = await (self.stats.selected(ANYONE, body) if body else self.stats.named(ANYONE, names, []))
        [of_node] = response["nodes"].values()
        return of_node


@asynccontextmanager
async def monitored(folder: Path, store: SQLiteStore | None = None, **settings: Any) -> AsyncIterator[Monitored]:
    async with closing(store or SQLiteStore(":memory:")) as opened:
        with open_statistics(folder) as statistics:
            states = DeploymentStateStore(opened, lambda: NOW)
            cipher, live = Cipher(opened), LiveSettings(Settings(**settings))
            deployment = ModelDeployment(opened, cipher, live, lambda: NOW, states, statistics.action)
            registry = build_registry(opened, cipher, live, lambda: NOW, deployment)
            node = ServerNode(opened, lambda: NOW, SERVER)
            visible = VisibleDocuments.of(opened, live)
            profiles = Profiles(states, statistics, node, visible)
            stats = ServerStats(opened, states, statistics, node, visible)
            yield Monitored(opened, registry, Observations(Metrics(), statistics), profiles, stats)
