"""Wire up one worker's sidecar: open its resources, then build the ASGI application over them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from socket import gethostname

from starlette.routing import Route
from starlette.types import ASGIApp

from opensearch_ml_stream.extensions.doctor.diagnosis.stored_models import StoredModelDiagnoses
from opensearch_ml_stream.extensions.doctor.http.diagnosis_route import diagnosis_routes
from opensearch_ml_stream.extensions.front_door.http.cluster_nodes import ClusterNodes
from opensearch_ml_stream.extensions.front_door.http.cluster_requests import ClusterRequests
from opensearch_ml_stream.extensions.front_door.http.local_models import LocalModels
from opensearch_ml_stream.extensions.front_door.relay.stored_model_kinds import StoredModelKinds
from opensearch_ml_stream.extensions.generate_stream.http.tutorial_routes import generate_stream_routes
from opensearch_ml_stream.extensions.playground.http.playground_routes import PAGE, playground_routes
from opensearch_ml_stream.extensions.playground.service.blueprint_models import BlueprintModels
from opensearch_ml_stream.extensions.playground.service.live_figures import LiveFigures
from opensearch_ml_stream.extensions.playground.service.playground_models import StoredPlaygroundModels
from opensearch_ml_stream.extensions.runtimes.http.custom_handlers import CustomHandlers
from opensearch_ml_stream.extensions.runtimes.service.control import RuntimeControl
from opensearch_ml_stream.extensions.runtimes.service.handler_calls import HandlerCalls
from opensearch_ml_stream.extensions.runtimes.service.runtime_calls import RuntimeCalls
from opensearch_ml_stream.extensions.runtimes.service.runtime_metrics import RuntimeMetrics
from opensearch_ml_stream.extensions.v2.http.documentation.docs_routes import docs_routes
from opensearch_ml_stream.extensions.v2.http.documentation.operations import V2_OPERATIONS
from opensearch_ml_stream.extensions.v2.http.model_endpoints import Server
from opensearch_ml_stream.extensions.v2.http.use_cases import InferenceModels
from opensearch_ml_stream.extensions.v2.service.model_names import ModelNames
from opensearch_ml_stream.extensions.v2.service.stored_inference_models import StoredInferenceModels
from opensearch_ml_stream.plugin.clock import now_millis
from opensearch_ml_stream.plugin.credentials.cipher import Cipher
from opensearch_ml_stream.plugin.limits.budgets.budgets import open_budgets
from opensearch_ml_stream.plugin.limits.in_flight_caps import OpenStreams
from opensearch_ml_stream.plugin.limits.rate_limits import RateLimits
from opensearch_ml_stream.plugin.limits.replica_leases import counting_replicas
from opensearch_ml_stream.plugin.limits.stream_counts import StreamCounts
from opensearch_ml_stream.plugin.metrics import Metrics
from opensearch_ml_stream.plugin.monitoring.answering_node import AnsweringNode
from opensearch_ml_stream.plugin.monitoring.profiles import Profiles
from opensearch_ml_stream.plugin.monitoring.server_stats import ServerStats
from opensearch_ml_stream.plugin.predictions.batch_jobs import BatchJobs
from opensearch_ml_stream.plugin.predictions.compiled_models import CompiledModels
from opensearch_ml_stream.plugin.predictions.painless_runner import PainlessRunner
from opensearch_ml_stream.plugin.predictions.predictor import Predictor
from opensearch_ml_stream.plugin.predictions.provider_call import ProviderCalls
from opensearch_ml_stream.plugin.registry import Registry, build_registry
from opensearch_ml_stream.plugin.registry.deployment_state_store import DeploymentStateStore
from opensearch_ml_stream.plugin.registry.model_deployment import ModelDeployment
from opensearch_ml_stream.plugin.registry.orphans import sweeping_orphans
from opensearch_ml_stream.plugin.registry.visible_documents import VisibleDocuments
from opensearch_ml_stream.plugin.security.choose_gate import open_gate
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.settings.dynamic import DynamicSettings, watching_settings
from opensearch_ml_stream.plugin.statistics.request_statistics import Statistics, open_statistics
from opensearch_ml_stream.plugin.store import Store
from opensearch_ml_stream.plugin.store.open_store import open_store
from opensearch_ml_stream.plugin.upstream.circuit_breaker.breaking_upstream import BreakingUpstream
from opensearch_ml_stream.plugin.upstream.circuit_breaker.shared_breakers import SharedBreakers
from opensearch_ml_stream.plugin.upstream.open_upstream import open_upstream
from opensearch_ml_stream.rest_handlers.application import open_inference, rest_application
from opensearch_ml_stream.rest_handlers.callers import Gate, PassingGate, TenantGate
from opensearch_ml_stream.rest_handlers.http.host_and_origin import BrowserPolicy
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses, ResponseLimits
from opensearch_ml_stream.rest_handlers.resource_endpoint import Entry
from opensearch_ml_stream.rest_handlers.routes.health_and_metrics import operation_routes
from opensearch_ml_stream.rest_handlers.routes.monitoring.profile import profile_routes
from opensearch_ml_stream.rest_handlers.routes.monitoring.stats import stats_routes
from opensearch_ml_stream.rest_handlers.routes.openapi import openapi_routes
from opensearch_ml_stream.rest_handlers.routes.predict_stream import Predictions, PredictStream
from opensearch_ml_stream.rest_handlers.routes.resources import management_routes
from opensearch_ml_stream.rest_handlers.routes.settings import settings_routes


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The ASGI application, its responses in flight, its settings as they are now, and its metrics.

    And what another port shares with it: the use cases of predictions and of V2, the gate, whether the store responds.
    `cluster` has the requests that have gone on to the store's cluster, where they do.
    """

    app: ASGIApp
    in_flight: InFlightResponses
    live: LiveSettings
    metrics: Metrics
    inference_models: InferenceModels
    predictions: Predictions
    gate: Gate
    ping: Callable[[], Awaitable[None]]
    cluster: ClusterRequests | None


@dataclass(frozen=True, slots=True)
class _Core:
    """What the routes of one worker share: its store and its settings, and the predictions of the store's models."""

    settings: Settings
    live: LiveSettings
    store: Store
    metrics: Metrics
    statistics: Statistics
    states: DeploymentStateStore
    runtimes: RuntimeCalls
    models: CompiledModels
    calls: ProviderCalls
    predictor: Predictor
    registry: Registry

    @property
    def visible(self) -> VisibleDocuments:
        """The documents that a caller may see."""
        return VisibleDocuments.of(self.store, self.live)


@asynccontextmanager
async def open_sidecar(settings: Settings, runtime: Path, login_key: bytes | None = None) -> AsyncIterator[Sidecar]:
    """Open one worker's sidecar.

    `runtime` is a folder that all workers of one server share, removed with it; `login_key` is in their memory alone.
    """
    async with AsyncExitStack() as stack:
        core = await _open_core(stack, settings, runtime)
        opening_gate = open_gate(settings, core.store, runtime, now_millis, login_key)
        gate: PassingGate = await stack.enter_async_context(opening_gate)
        if settings.multi_tenancy_enabled:
            gate = TenantGate(gate)
        cluster = None
        if settings.pass_through:  # by name: its TLS is opensearch-py's, which an embedded store does not need
            front_door = import_module("opensearch_ml_stream.extensions.front_door.relay.front_door")
            cluster = ClusterRequests(await stack.enter_async_context(front_door.open_front_door(settings)), gate)
        await stack.enter_async_context(watching_settings(core.store, core.live))
        await stack.enter_async_context(sweeping_orphans(core.store))
        yield _build_sidecar(core, gate, cluster)


async def _open_core(stack: AsyncExitStack, settings: Settings, runtime: Path) -> _Core:
    """Open the store, the upstream, and what counts and limits predictions; all are closed with the stack."""
    live = LiveSettings(settings)
    is_shared = settings.workers > 1
    opening_store = open_store(settings.store, settings.index_prefix, settings.store_timeout_seconds)
    store = await stack.enter_async_context(opening_store)
    upstream = await stack.enter_async_context(open_upstream(live))
    cipher = Cipher(store, settings.master_key_cache_ttl_minutes)
    statistics = stack.enter_context(open_statistics(runtime, is_shared=is_shared))
    states = DeploymentStateStore(store, now_millis)
    control = RuntimeControl(runtime / "runtimes")
    deployment = ModelDeployment(store, cipher, live, now_millis, states, statistics.action, control)
    models = CompiledModels(store, cipher, live, deployment.plan)
    metrics = Metrics()
    breakers = stack.enter_context(closing(SharedBreakers(runtime)))
    breaking = BreakingUpstream(upstream, breakers, live, metrics.circuit_breaker_changed)
    counts = stack.enter_context(closing(StreamCounts(runtime, settings.max_streams, is_shared=is_shared)))
    replicas = await stack.enter_async_context(counting_replicas(store, runtime, now_millis))
    rate_limits = stack.enter_context(closing(RateLimits(runtime, lambda: replicas.count, is_shared=is_shared)))
    opening = open_budgets(runtime, store, metrics.count_cost, now_millis, is_shared=is_shared)
    budgets = await stack.enter_async_context(opening)
    runtimes = await stack.enter_async_context(RuntimeCalls(runtime / "runtimes"))
    metrics.show_also(RuntimeMetrics(runtimes.models.current))
    calls = ProviderCalls(live, breaking, rate_limits, budgets, OpenStreams(counts, live, metrics), runtimes)
    scripts = PainlessRunner(store)
    batch = BatchJobs(models, calls, store, scripts, now_millis)
    registry = build_registry(store, cipher, live, now_millis, deployment, batch)
    predictor = Predictor(models, calls, store, scripts, batch, metrics, statistics)
    return _Core(settings, live, store, metrics, statistics, states, runtimes, models, calls, predictor, registry)


def _build_sidecar(core: _Core, gate: PassingGate, cluster: ClusterRequests | None) -> Sidecar:
    """Build the ASGI application: streams in front, `/v2` behind them, then the router of all else."""
    settings = core.settings
    in_flight = InFlightResponses(
        ResponseLimits(
            settings.max_body_size,
            settings.first_event_wait_seconds,
            settings.heartbeat_seconds,
            settings.max_total_body_size,
            settings.max_streams,
        )
    )
    own_version = version("opensearch-ml-stream")
    names = ModelNames(core.store, core.visible, core.states)
    models = StoredInferenceModels(names, core.models, core.predictor, core.registry.models, core.runtimes.models)
    routes = _routes(core, in_flight, gate, cluster, models)
    handlers = CustomHandlers(HandlerCalls(core.models, core.calls, core.metrics, core.statistics), in_flight, gate)
    rest = rest_application(routes, handlers, cluster)
    kinds = StoredModelKinds(core.store)
    local = None if cluster is None else LocalModels(kinds, cluster, rest, gate, in_flight.bodies)
    server = Server(own_version, core.store.ping)
    v2 = open_inference(models, server, in_flight, gate, local or rest, gzip=settings.v2_gzip)
    relay_local = None if local is None else local.relay
    app = PredictStream(core.predictor, in_flight, gate, v2, _browser_policy(settings), relay_local)
    return Sidecar(app, in_flight, core.live, core.metrics, models, core.predictor, gate, core.store.ping, cluster)


def _routes(
    core: _Core,
    in_flight: InFlightResponses,
    gate: PassingGate,
    cluster: ClusterRequests | None,
    inference_models: InferenceModels,
) -> list[Route]:
    """Return all routes behind those of streams and `/v2`."""
    settings, store, predictor = core.settings, core.store, core.predictor
    statistics, states, visible = core.statistics, core.states, core.visible
    nodes = None if cluster is None else ClusterNodes(cluster)
    entry = Entry(gate, in_flight.bodies, cluster)
    node = AnsweringNode(store, now_millis, f"{gethostname()}:{settings.port}")
    diagnoses = StoredModelDiagnoses(core.models, core.calls, predictor, core.metrics, statistics)
    profiles = Profiles(states, statistics, node, visible, core.runtimes.models.current)
    own_version = version("opensearch-ml-stream")
    routes = [
        *diagnosis_routes(diagnoses, in_flight, gate),
        *management_routes(core.registry, entry),
        *profile_routes(profiles, entry, nodes),
        *stats_routes(ServerStats(store, states, statistics, node, visible), entry, nodes),
        *settings_routes(DynamicSettings(store, core.live, now_millis), Entry(gate, in_flight.bodies)),
        *operation_routes(
            store.ping,
            core.metrics.text,
            own_version,
            gate,
            cluster,
            PAGE if settings.playground else "",
            lambda: (core.metrics.problem, statistics.problem),
        ),
        *docs_routes(inference_models, gate, own_version),
    ]
    live = core.live
    routes += generate_stream_routes(inference_models, lambda: live.current.generate_stream_model, in_flight, gate)
    routes += openapi_routes(routes, V2_OPERATIONS, own_version, gate)
    shown = StoredPlaygroundModels(store, core.registry, BlueprintModels(store, core.registry))
    figures = LiveFigures(statistics, visible, core.metrics.output_tokens)
    routes += playground_routes(shown, figures, in_flight, gate, own_version, is_on=settings.playground)
    return routes


def _browser_policy(settings: Settings) -> BrowserPolicy:
    bound = settings.host.lower().removesuffix(".")
    return BrowserPolicy(frozenset(settings.cors_origins), frozenset({bound, *settings.allowed_hosts}))
