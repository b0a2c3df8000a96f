"""Open the core of one worker: its store, settings, limits, statistics and use cases."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from importlib.metadata import version
from pathlib import Path

from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.connector_protocol import ConnectorProtocol, ModelAdditions
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.extension import Core, Extension
from opensearch_ml_stream.plugin.installed_extensions import providers_of
from opensearch_ml_stream.plugin.limits.budgets import open_budgets
from opensearch_ml_stream.plugin.limits.rate_limits import RateLimits
from opensearch_ml_stream.plugin.limits.replica_leases import counting_replicas
from opensearch_ml_stream.plugin.limits.stream_caps import OpenStreams, StreamCounts
from opensearch_ml_stream.plugin.metrics import Metrics
from opensearch_ml_stream.plugin.monitoring.statistics import open_statistics
from opensearch_ml_stream.plugin.observation import Observations
from opensearch_ml_stream.plugin.predictions.batch_jobs import BatchJobs
from opensearch_ml_stream.plugin.predictions.client_conversations import Conversations
from opensearch_ml_stream.plugin.predictions.model_cache import ModelCache
from opensearch_ml_stream.plugin.predictions.painless_runner import PainlessRunner
from opensearch_ml_stream.plugin.predictions.predictor import Predictor
from opensearch_ml_stream.plugin.predictions.provider_call import ProviderCalls
from opensearch_ml_stream.plugin.registry import build_registry
from opensearch_ml_stream.plugin.registry.cleanup import deleting_orphans
from opensearch_ml_stream.plugin.registry.deployment_state_store import DeploymentStateStore
from opensearch_ml_stream.plugin.registry.document_access import VisibleDocuments
from opensearch_ml_stream.plugin.registry.model_deployment import ModelDeployment
from opensearch_ml_stream.plugin.registry.models_by_name import ModelsByName
from opensearch_ml_stream.plugin.security.open_gate import open_gate
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.settings.dynamic import watching_settings
from opensearch_ml_stream.plugin.store.open_store import open_store
from opensearch_ml_stream.plugin.upstream.circuit_breaker import BreakingUpstream, SharedBreakers
from opensearch_ml_stream.plugin.upstream.http1.client import open_upstream
from opensearch_ml_stream.rest_handlers.base_path import Paths
from opensearch_ml_stream.rest_handlers.callers import PassingGate, TenantGate
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses, ResponseLimits


@asynccontextmanager
async def open_core(
    settings: Settings,
    folder: Path,
    login_key: bytes | None,
    paths: Paths,
    additions: ModelAdditions,
    background: BackgroundTasks,
) -> AsyncIterator[Core]:
    """Open the core. All processes of a server share the `folder` and the `login_key`, which is in memory only.

    `paths` and `additions` are those of the enabled extensions, which are opened after the core.
    """
    live = LiveSettings(settings)
    is_shared = settings.workers > 1
    async with AsyncExitStack() as stack:
        opening_store = open_store(settings.store, settings.index_prefix, settings.store_timeout_seconds)
        store = await stack.enter_async_context(opening_store)
        upstream = await stack.enter_async_context(open_upstream(live))
        cipher = Cipher(store, settings.master_key_cache_ttl_minutes)
        statistics = stack.enter_context(open_statistics(folder, is_shared=is_shared))
        states = DeploymentStateStore(store, now_millis)
        deployment = ModelDeployment(store, cipher, live, now_millis, states, statistics.action, additions.protocols)
        models = ModelCache(store, cipher, live, deployment.plan, additions)
        metrics = Metrics()
        breakers = stack.enter_context(closing(SharedBreakers(folder)))
        breaking = BreakingUpstream(upstream, breakers, live, metrics.circuit_breaker_changed)
        counts = stack.enter_context(closing(StreamCounts(folder, settings.workers)))
        replicas = await stack.enter_async_context(counting_replicas(store, folder, now_millis, background))
        rate_limits = stack.enter_context(closing(RateLimits(folder, lambda: replicas.count, is_shared=is_shared)))
        opening = open_budgets(folder, store, metrics.count_cost, now_millis, background, is_shared=is_shared)
        budgets = await stack.enter_async_context(opening)
        calls = ProviderCalls(live, breaking, rate_limits, budgets, OpenStreams(counts, live, metrics, background))
        scripts = PainlessRunner(store.run_painless)
        batch = BatchJobs(models, calls, store, scripts, now_millis)
        observations = Observations(metrics, statistics)
        registry = build_registry(store, cipher, live, now_millis, deployment, batch, additions.options)
        opening_gate = open_gate(settings, store, folder, now_millis, background, login_key)
        gate: PassingGate = await stack.enter_async_context(opening_gate)
        await stack.enter_async_context(watching_settings(store, live, background))
        await stack.enter_async_context(deleting_orphans(store, background))
        visible = VisibleDocuments.of(store, live)
        predictor = Predictor(models, calls, store, scripts, batch, observations)
        yield Core(
            version=version("opensearch-ml-stream"),
            live=live,
            paths=paths,
            clock=now_millis,
            folder=folder,
            store=store,
            gate=TenantGate(gate) if settings.multi_tenancy_enabled else gate,
            in_flight=_in_flight(settings),
            additions=additions,
            models=models,
            calls=calls,
            predictions=predictor,
            conversations=Conversations(ModelsByName(store, visible), models, predictor),
            registry=registry,
            states=states,
            visible=visible,
            observations=observations,
            metrics=metrics,
            statistics=statistics,
            background=background,
        )


def additions_of(
    declared: Sequence[Extension], used: Sequence[Extension], protocols: Sequence[ConnectorProtocol]
) -> ModelAdditions:
    """Return what extensions add to models. Members of `_sidecar` are valid even if their extension is disabled."""
    options = {name: option for extension in declared for name, option in extension.model_options.items()}
    return ModelAdditions(protocols, options, SHIPPED.with_others(providers_of(used)))


def _in_flight(settings: Settings) -> InFlightResponses:
    return InFlightResponses(
        ResponseLimits(
            settings.max_body_size,
            settings.first_event_wait_seconds,
            settings.heartbeat_seconds,
            settings.max_total_body_size,
            settings.max_streams,
        )
    )
