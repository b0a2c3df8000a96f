"""Wire up one worker's sidecar: open the core, then its extensions, and build the ASGI application over both."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any

from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.plugin.background_tasks import BackgroundTasks
from opensearch_ml_stream.plugin.connector_protocol import ConnectorProtocol
from opensearch_ml_stream.plugin.core import additions_of, open_core
from opensearch_ml_stream.plugin.extension import Contribution, Core, Extension, OtherServer, load
from opensearch_ml_stream.plugin.installed_extensions import declared_extensions, enabled, paths_of
from opensearch_ml_stream.plugin.metrics import BackgroundFailures, Metrics
from opensearch_ml_stream.plugin.monitoring.profiles import Profiles
from opensearch_ml_stream.plugin.monitoring.server_stats import ServerStats
from opensearch_ml_stream.plugin.registry.node import ServerNode
from opensearch_ml_stream.plugin.settings import LiveSettings, Settings
from opensearch_ml_stream.plugin.settings.dynamic import DynamicSettings
from opensearch_ml_stream.rest_handlers.application import rest_application
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.http.host_and_origin import BrowserPolicy
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses
from opensearch_ml_stream.rest_handlers.resource_endpoint import Entry
from opensearch_ml_stream.rest_handlers.routes.health_and_metrics import operation_routes
from opensearch_ml_stream.rest_handlers.routes.monitoring import profile_routes, stats_routes
from opensearch_ml_stream.rest_handlers.routes.openapi import openapi_routes
from opensearch_ml_stream.rest_handlers.routes.predict_stream import PredictStream
from opensearch_ml_stream.rest_handlers.routes.resources import management_routes
from opensearch_ml_stream.rest_handlers.routes.settings import settings_routes

if TYPE_CHECKING:  # grpcio may not be installed
    from opensearch_ml_stream.plugin.grpc_port.calls import GrpcService


log = logging.getLogger("opensearch_ml_stream")


@dataclass(frozen=True, slots=True)
class Sidecar:
    """One worker's sidecar: the ASGI application, and what the server needs beside it.

    `gate` checks the callers of the gRPC port, too, `ping` raises Unavailable if the store does not respond, `services`
    make the gRPC services of extensions. `drains` wait for what extensions have in flight, for a number of seconds.
    """

    app: ASGIApp
    in_flight: InFlightResponses
    live: LiveSettings
    metrics: Metrics
    background: BackgroundTasks
    gate: Gate
    ping: Callable[[], Awaitable[None]]
    services: Sequence[Callable[[], "GrpcService"]]
    drains: Sequence[Callable[[float], Coroutine[Any, Any, None]]]


@asynccontextmanager
async def open_sidecar(
    settings: Settings,
    folder: Path,
    login_key: bytes | None = None,
    extensions: Sequence[Extension] | None = None,
    background: BackgroundTasks | None = None,
) -> AsyncIterator[Sidecar]:
    """Open one worker's sidecar with the extensions that are enabled.

    All processes of a server share the `folder`, which is removed at its end, and the `login_key`, which is in memory
    only. `background` runs the worker's background tasks and counts the failures of those of all processes.
    """
    declared = declared_extensions(settings) if extensions is None else extensions
    used = enabled(declared, settings)
    async with AsyncExitStack() as stack:
        protocols: list[ConnectorProtocol] = []
        additions = additions_of(declared, used, protocols)
        opening = open_core(settings, folder, login_key, paths_of(used), additions, background or BackgroundTasks())
        core = await stack.enter_async_context(opening)
        contributions: list[Contribution] = []
        for extension in used:
            if extension.open:
                contribution = await _open(extension, core, stack)
                core = replace(core, faces={**core.faces, **contribution.faces})
                contributions.append(contribution)
                protocols += contribution.protocols
        services = [partial(_service, reference, core) for extension in used for reference in extension.services]
        yield _compose(core, contributions, services)


async def _open(extension: Extension, core: Core, stack: AsyncExitStack) -> Contribution:
    try:
        contribution: Contribution = await stack.enter_async_context(load(extension.open)(core))
    except Exception:
        log.error("the extension %s cannot be opened", extension.name)  # the error that follows need not name it
        raise
    return contribution


def _service(reference: str, core: Core) -> "GrpcService":
    """Make a service of the gRPC port. Its code is loaded here, since grpcio may not be installed."""
    service: GrpcService = load(reference)(core)
    return service


def _compose(
    core: Core, contributions: Sequence[Contribution], services: Sequence[Callable[[], "GrpcService"]]
) -> Sidecar:
    """Build the application: predictions first, then handlers of extensions, then the router, then more handlers."""
    core.metrics.add_collector(BackgroundFailures(core.background.failures.counts))
    for contribution in contributions:
        for collector in contribution.collectors:
            core.metrics.add_collector(collector)
        core.observations.observers.extend(contribution.observers)
    others = [each.other_server for each in contributions if each.other_server is not None]
    if len(others) > 1:
        raise InvalidRequest("Two extensions forward requests to another server: disable one of them")
    other = others[0] if others else None
    handlers = sorted((each for one in contributions for each in one.handlers), key=lambda handler: handler.order)
    behind = [handler.wrap for handler in handlers if handler.order >= 0]
    app: ASGIApp = rest_application(_routes(core, contributions, other), core.paths, behind, other)
    for handler in reversed(handlers):
        app = handler.wrap(app) if handler.order < 0 else app
    takes = None if other is None else other.takes
    policy = _browser_policy(core.settings)
    app = PredictStream(core.predictions, core.in_flight, core.gate, app, policy, takes, core.paths)
    drains = [each.drain for each in contributions if each.drain is not None]
    return Sidecar(
        app, core.in_flight, core.live, core.metrics, core.background, core.gate, core.store.ping, services, drains
    )


def _routes(core: Core, contributions: Sequence[Contribution], other: OtherServer | None) -> list[BaseRoute]:
    """Return all routes but those of predictions."""
    entry = Entry(core.gate, core.in_flight.bodies, other)
    options = {name: option.kind for name, option in core.registry.models.options.items()}
    routes: list[BaseRoute] = [
        *management_routes(core.registry, entry, options),
        *_monitoring_routes(core, contributions, entry, other),
        *settings_routes(DynamicSettings(core.store, core.live, core.clock), Entry(core.gate, core.in_flight.bodies)),
    ]
    for contribution in contributions:
        routes += contribution.routes
    operations = {path: of_path for each in contributions for path, of_path in each.operations.items()}
    return [*routes, *openapi_routes(routes, operations, core.version, core.gate)]


def _monitoring_routes(
    core: Core, contributions: Sequence[Contribution], entry: Entry, other: OtherServer | None
) -> list[BaseRoute]:
    node = ServerNode(core.store, core.clock, f"{gethostname()}:{core.settings.port}")

    def further() -> dict[str, Any]:
        profiles: dict[str, Any] = {}
        for model_id, profile in (one for each in contributions for one in each.profiles().items()):
            profiles[model_id] = {**profiles.get(model_id, {}), **profile}
        return profiles

    def problems() -> list[str | None]:
        return [core.metrics.problem, core.statistics.problem, *core.background.failures.problems()]

    profiles = Profiles(core.states, core.statistics, node, core.visible, further)
    stats = ServerStats(core.store, core.states, core.statistics, node, core.visible)
    page = next((each.page for each in contributions if each.page), "")
    return [
        *profile_routes(profiles, entry, other),
        *stats_routes(stats, entry, other),
        *operation_routes(core.store.ping, core.metrics.text, core.version, core.gate, other, page, problems),
    ]


def _browser_policy(settings: Settings) -> BrowserPolicy:
    bound = settings.host.lower().removesuffix(".")
    return BrowserPolicy(frozenset(settings.cors_origins), frozenset({bound, *settings.allowed_hosts}))
