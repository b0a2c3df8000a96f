"""The management use cases over a store in memory, with a clock that counts."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.registry import Registry, build_registry
from opensearch_ml_stream.plugin.registry.deployment_state_store import DeploymentStateStore
from opensearch_ml_stream.plugin.registry.model_deployment import ModelDeployment
from opensearch_ml_stream.plugin.registry.tasks import BatchJobs
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.store import Document, Index, Store
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from opensearch_ml_stream.rest_handlers.callers import ANYONE

SECRET = "sk-secret-1234567890"
FIRST_TICK = 1_000_000
AnyStore = TypeVar("AnyStore", bound=SQLiteStore)


@dataclass
class FakeCluster:
    """A cluster beside a store: what it has, and what it was told. `has_ml_commons` is whether ML Commons listens."""

    has_ml_commons: bool = True
    refusal: MLStreamError | None = None
    changed_settings: dict[str, object] = field(default_factory=dict)
    all_pipelines: dict[str, dict[str, Any]] = field(default_factory=dict)
    agents: list[str] = field(default_factory=list)
    search_refusal: str | None = None
    told: list[tuple[str, str]] = field(default_factory=list)
    when_deployed: Callable[[str], Awaitable[None]] | None = None

    async def settings(self) -> Mapping[str, object]:
        self._check()
        return dict(self.changed_settings)

    async def pipelines(self, kind: str) -> Mapping[str, Mapping[str, Any]]:
        self._check()
        return self.all_pipelines.get(kind, {})

    async def agents_using(self, model_id: str) -> Sequence[str]:
        self._check()
        return self.agents

    async def ml_commons_refusal(self) -> str | None:
        self._check()
        return self.search_refusal

    async def undeploy(self, model_id: str) -> bool:
        return self._tell("undeploy", model_id)

    async def deploy(self, model_id: str) -> bool:
        told = self._tell("deploy", model_id)
        if self.when_deployed is not None:
            await self.when_deployed(model_id)
        return told

    def _tell(self, what: str, model_id: str) -> bool:
        self._check()
        self.told.append((what, model_id))
        return self.has_ml_commons

    def _check(self) -> None:
        if self.refusal is not None:
            raise self.refusal


class StoreInCluster(SQLiteStore):
    """A store of a cluster in which ML Commons may run."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._cluster = FakeCluster()

    @property
    def cluster(self) -> FakeCluster:
        return self._cluster


@asynccontextmanager
async def closing(store: AnyStore) -> AsyncIterator[AnyStore]:
    try:
        yield store
    finally:
        await store.close()


def connector_body(**fields: Any) -> dict[str, Any]:
    action = {"action_type": "predict", "method": "POST", "url": "https://api.openai.com/v1/chat/completions"}
    body = {"name": "c", "version": "1", "protocol": "http", "credential": {"key": SECRET}, "actions": [action]}
    return {**body, **fields}


def registry_on(store: Store, batch: BatchJobs | None = None, **settings: Any) -> Registry:
    """The use cases; each look at the clock is one millisecond later than the one before."""
    ticks = count(FIRST_TICK)

    def clock() -> int:
        return next(ticks)

    cipher, live = Cipher(store), LiveSettings(Settings(**settings))
    deployment = ModelDeployment(store, cipher, live, clock, DeploymentStateStore(store, clock))
    return build_registry(store, cipher, live, clock, deployment, batch)


async def add_connector(registry: Registry, **fields: Any) -> str:
    return str((await registry.connectors.create(ANYONE, connector_body(**fields)))["connector_id"])


async def add_model(registry: Registry, **fields: Any) -> str:
    """A model on a new connector, unless `fields` name another."""
    if "connector_id" not in fields and "connector" not in fields:
        fields["connector_id"] = await add_connector(registry)
    return str((await registry.models.register(ANYONE, {"name": "m", "function_name": "remote", **fields}))["model_id"])


async def stored(store: Store, index: Index, id: str) -> Document:
    document = await store.get(index, id)
    assert document is not None
    return document
