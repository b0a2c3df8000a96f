"""The sidecar put together: every resource in one `async with`, then one ASGI application over them."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from opensearch_ml_stream.plugin.credentials.external import resolve_credential
from opensearch_ml_stream.plugin.credentials.master_key import Cipher
from opensearch_ml_stream.plugin.metrics import Metrics
from opensearch_ml_stream.plugin.predictions.batch_jobs import BatchJobs
from opensearch_ml_stream.plugin.predictions.model_calls import ModelCalls
from opensearch_ml_stream.plugin.predictions.painless_runs import PainlessRunner
from opensearch_ml_stream.plugin.predictions.predictor import Predictor
from opensearch_ml_stream.plugin.predictions.rate_limits import RateLimits
from opensearch_ml_stream.plugin.predictions.ready_models import ReadyModels
from opensearch_ml_stream.plugin.registry import open_registry
from opensearch_ml_stream.plugin.registry.deployed_states import DeployedStates
from opensearch_ml_stream.plugin.registry.model_deployment import ModelDeployment
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.settings.dynamic import DynamicSettings, watch_settings
from opensearch_ml_stream.plugin.store.open_store import open_store
from opensearch_ml_stream.plugin.upstream.open_upstream import open_upstream
from opensearch_ml_stream.rest_handlers.http.exception_handlers import exception_handlers, method_not_allowed
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses, ResponseLimits
from opensearch_ml_stream.rest_handlers.routes.management import management_routes
from opensearch_ml_stream.rest_handlers.routes.operations import operation_routes
from opensearch_ml_stream.rest_handlers.routes.predict import predict_routes
from opensearch_ml_stream.rest_handlers.routes.predict_stream import PredictStream
from opensearch_ml_stream.rest_handlers.routes.settings import settings_routes

_STREAM_PATH = re.compile(r"/_plugins/_ml/models/([^/]+)/_predict/stream/?")


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The ASGI application, and the answers it has under way."""

    app: ASGIApp
    answers: InFlightResponses


@asynccontextmanager
async def open_sidecar(settings: Settings, runtime: Path) -> AsyncIterator[Sidecar]:
    """One worker's sidecar. `runtime` is a folder that all workers of one server share, and that goes with it."""
    async with AsyncExitStack() as stack:
        live = LiveSettings(settings)
        store = await stack.enter_async_context(open_store(settings.store, settings.index_prefix))
        upstream = await stack.enter_async_context(open_upstream(live))
        cipher = Cipher(store, settings.master_key_cache_ttl_minutes)
        scripts = PainlessRunner(store)
        metrics = Metrics()
        deploying = ModelDeployment(store, cipher, live, _now_millis, DeployedStates(store, _now_millis))

        def resolve(credential: Mapping[str, str]) -> Mapping[str, str]:
            return resolve_credential(credential, live.current.external_credentials_enabled)

        deployments = ReadyModels(store, cipher, resolve, deploying.ensure)
        calls = ModelCalls(live, deployments, upstream, RateLimits(runtime))
        batch = BatchJobs(calls, store, scripts, _now_millis)
        registry = open_registry(store, cipher, live, _now_millis, batch)
        predictor = Predictor(calls, store, scripts, batch, metrics)
        answers = InFlightResponses(lambda: _limits(live.current))
        routes = [
            *predict_routes(predictor, answers),
            *management_routes(registry),
            *settings_routes(DynamicSettings(store, live, _now_millis), lambda: live.current.max_body_size),
            *operation_routes(store.ping, metrics.text, version("opensearch-ml-stream")),
        ]
        await stack.enter_async_context(_background(watch_settings(store, live)))
        rest = Starlette(routes=routes, exception_handlers=exception_handlers())
        rest.router.redirect_slashes = False  # clients of OpenSearch follow no redirects
        yield Sidecar(with_stream_route(PredictStream(predictor, answers), rest), answers)


def with_stream_route(predict_stream: PredictStream, rest: ASGIApp) -> ASGIApp:
    """`rest`, with the hot path taken out of it: no middleware stands between a stream and its client."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        model_id = _streamed_model(scope["path"]) if scope["type"] == "http" else None
        if model_id is None:
            await rest(scope, receive, send)
        elif scope["method"] == "POST":
            await predict_stream(scope, receive, send, model_id)
        else:
            await method_not_allowed(Request(scope), ["POST"])(scope, receive, send)

    return app


def _streamed_model(path: str) -> str | None:
    found = _STREAM_PATH.fullmatch(path)
    return None if found is None else found[1]


def _limits(settings: Settings) -> ResponseLimits:
    return ResponseLimits(settings.max_body_size, settings.first_event_wait_seconds, settings.heartbeat_seconds)


def _now_millis() -> int:
    return time.time_ns() // 1_000_000


@asynccontextmanager
async def _background(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Runs `work` beside the block and ends it with the block."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
