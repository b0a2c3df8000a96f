"""The management use cases over a store in memory, with a clock that counts."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.registry import Registry, build_registry
from opensearch_ml_stream.plugin.registry.deployment_state_store import DeploymentStateStore
from opensearch_ml_stream.plugin.registry.model_deployment import ModelDeployment
from opensearch_ml_stream.plugin.registry.tasks import BatchJobs
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.store import Document, Index, Store
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore

SECRET = "sk-secret-1234567890"
FIRST_TICK = 1_000_000


class StoreBesideMLCommons(SQLiteStore):
    """A store of a cluster on which a real ML Commons runs."""

    async def has_ml_commons(self) -> bool:
        return True


@asynccontextmanager
async def closing(store: SQLiteStore) -> AsyncIterator[Store]:
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
    return str((await registry.connectors.create(connector_body(**fields)))["connector_id"])


async def add_model(registry: Registry, **fields: Any) -> str:
    """A model on a new connector, unless `fields` name another."""
    if "connector_id" not in fields and "connector" not in fields:
        fields["connector_id"] = await add_connector(registry)
    return str((await registry.models.register({"name": "m", "function_name": "remote", **fields}))["model_id"])


async def stored(store: Store, index: Index, id: str) -> Document:
    document = await store.get(index, id)
    assert document is not None
    return document
