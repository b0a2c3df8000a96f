"""All parts of a prediction over a store in memory and a scripted provider."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opensearch_ml_stream.connectors.documents import connector_document
from opensearch_ml_stream.connectors.model_options import NO_OPTIONS, ModelOptions
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.connector_protocol import ConnectorProtocol, ModelAdditions
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.limits.budgets import open_budgets
from opensearch_ml_stream.plugin.limits.rate_limits import RateLimits
from opensearch_ml_stream.plugin.limits.stream_caps import OpenStreams, StreamCounts
from opensearch_ml_stream.plugin.metrics import Metrics
from opensearch_ml_stream.plugin.monitoring.statistics import Statistics, open_statistics
from opensearch_ml_stream.plugin.observation import Observations
from opensearch_ml_stream.plugin.predictions.batch_jobs import BatchJobs
from opensearch_ml_stream.plugin.predictions.model_cache import FRESH_SECONDS, ModelCache
from opensearch_ml_stream.plugin.predictions.painless_runner import PainlessRunner
from opensearch_ml_stream.plugin.predictions.predictor import Predictor
from opensearch_ml_stream.plugin.predictions.provider_call import ProviderCalls
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.store import Document, Index, Store
from opensearch_ml_stream.plugin.store.sqlite_store import SQLiteStore
from tests.predictions.scripted_provider import ScriptedProvider

SECRET = "sk-secret-1234567890"
CHAT_URL = "https://api.openai.com/v1/chat/completions"
EMBEDDING_URL = "https://api.openai.com/v1/embeddings"


def connector_body(url: str = CHAT_URL, **fields: Any) -> dict[str, Any]:
    """A connector that sends `{"input": ...}`; `fields` replace its own, those of `action` its action's."""
    action = {
        "action_type": "predict",
        "method": "POST",
        "url": url,
        "headers": {"Authorization": "Bearer ${credential.key}"},
        "request_body": '{"input": "${parameters.inputs}"}',
        **fields.pop("action", {}),
    }
    body = {"name": "c", "version": 1, "protocol": "http", "credential": {"key": SECRET}, "actions": [action]}
    return {**body, **fields}


class Clock:
    """The time as the cache of models reads it: it stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now

    def pass_freshness(self) -> None:
        self.now += FRESH_SECONDS


async def no_deployment(model_id: str, document: Document) -> None:
    """Plan nothing: every model is deployed."""


@dataclass(frozen=True)
class Setup:
    store: Store
    cipher: Cipher
    live: LiveSettings
    provider: ScriptedProvider
    models: ModelCache
    calls: ProviderCalls
    batch: BatchJobs
    metrics: Metrics
    predictor: Predictor
    statistics: Statistics
    observations: Observations

    async def stored_connector(self, body: Mapping[str, Any]) -> dict[str, Any]:
        document = connector_document(body)
        credential = {name: await self.cipher.encrypt(value) for name, value in document["credential"].items()}
        return {**document, "credential": credential}

    async def add_connector(self, body: Mapping[str, Any], id: str = "c") -> None:
        await self.store.create(Index.CONNECTOR, await self.stored_connector(body), id)

    async def add_model(self, connector: Mapping[str, Any], id: str = "m", **fields: Any) -> None:
        """A model with that inline connector."""
        stored = await self.stored_connector(connector)
        await self.store.create(Index.MODEL, {"name": id, "connector": stored, **fields}, id)

    def counted(self, name: str, **labels: str) -> float | None:
        """The value of a metric, None if it has none with those labels."""
        wanted = "".join(f'{label}="{value}"' for label, value in labels.items())
        for line in self.metrics.text().decode().splitlines():
            sample, _, value = line.rpartition(" ")
            metric, _, shown = sample.partition("{")
            if metric == name and shown.rstrip("}").replace(",", "") == wanted:
                return float(value)
        return None


@asynccontextmanager
async def prediction_setup(
    folder: Path,
    provider: ScriptedProvider | None = None,
    store: SQLiteStore | None = None,
    protocols: Sequence[ConnectorProtocol] = (),
    options: ModelOptions = NO_OPTIONS,
    **settings: Any,
) -> AsyncIterator[Setup]:
    store = store or SQLiteStore(":memory:")
    provider = provider or ScriptedProvider()
    live, cipher, metrics, scripts = (
        LiveSettings(Settings(**settings)),
        Cipher(store),
        Metrics(),
        PainlessRunner(store.run_painless),
    )
    models = ModelCache(store, cipher, live, no_deployment, ModelAdditions(protocols, options))
    try:
        async with open_budgets(folder, store, metrics.count_cost, now_millis, BackgroundTasks()) as budgets:
            counts = StreamCounts(folder, 1)
            streams = OpenStreams(counts, live, metrics, BackgroundTasks())
            calls = ProviderCalls(live, provider, RateLimits(folder), budgets, streams)
            batch = BatchJobs(models, calls, store, scripts, lambda: 1_000)
            with open_statistics(folder) as statistics, closing(counts):
                observations = Observations(metrics, statistics)
                predictor = Predictor(models, calls, store, scripts, batch, observations)
                yield Setup(
                    store, cipher, live, provider, models, calls, batch, metrics, predictor, statistics, observations
                )
    finally:
        await store.close()
