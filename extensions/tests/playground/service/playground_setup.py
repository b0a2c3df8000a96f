"""The use cases of the playground over a store in memory, with two blueprints."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.client.blueprints import Blueprint
from opensearch_ml_stream.extensions.playground.service.blueprint_models import BlueprintModels, NewModel
from opensearch_ml_stream.extensions.playground.service.playground_models import StoredPlaygroundModels
from opensearch_ml_stream.plugin.connector_protocol import ModelAdditions
from opensearch_ml_stream.plugin.registry import Registry
from opensearch_ml_stream.plugin.store import Index, Store
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from tests.registry.registry_setup import closing, connector_body, registry_on

KEY = "sk-of-the-playground"
BODY = '{"model": "${parameters.model}", "messages": ${parameters.messages}}'
ACTION = {
    "action_type": "predict",
    "method": "POST",
    "url": "https://api.openai.com/v1/chat/completions",
    "headers": {"Authorization": "Bearer ${credential.key}"},
    "request_body": BODY,
}
CHAT = Blueprint(
    name="chat",
    description="A chat",
    connector=connector_body(
        actions=[ACTION], credential={"key": "<key>"}, parameters={"model": "m-1", "region": "<region>"}
    ),
    credential={"key": "API key"},
    parameters={"model": "Name of the model", "region": "Where it is", "temperature": "Variety"},
    model={"name": "Chat", "description": "Chats"},
)
NEW = NewModel("Mine", {"key": KEY}, {"region": "eu"})


@dataclass(frozen=True)
class Playground:
    store: Store
    registry: Registry
    models: StoredPlaygroundModels

    async def count(self, index: Index) -> int:
        response = await self.store.search(index, {"query": {"match_all": {}}, "size": 0, "track_total_hits": True})
        return int(response["hits"]["total"]["value"])

    async def counts(self) -> tuple[int, int, int]:
        """How many connectors, models and groups there are."""
        connectors, models, groups = Index.CONNECTOR, Index.MODEL, Index.MODEL_GROUP
        return await self.count(connectors), await self.count(models), await self.count(groups)


@asynccontextmanager
async def playground_on(store: SQLiteStore, **settings: Any) -> AsyncIterator[Playground]:
    async with closing(store):
        registry = registry_on(store, **settings)
        made = BlueprintModels(store, registry, {"chat": CHAT})
        yield Playground(store, registry, StoredPlaygroundModels(store, registry, made, ModelAdditions()))
