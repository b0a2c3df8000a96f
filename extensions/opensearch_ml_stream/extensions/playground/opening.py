"""Open the playground: its page and what the page asks for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from opensearch_ml_stream.extensions.playground.extension import PlaygroundSettings
from opensearch_ml_stream.extensions.playground.http.playground_routes import (
    PAGE,
    model_settings_routes,
    playground_routes,
)
from opensearch_ml_stream.extensions.playground.service.blueprint_models import BlueprintModels
from opensearch_ml_stream.extensions.playground.service.live_figures import LiveFigures
from opensearch_ml_stream.extensions.playground.service.model_changes import AllowedServers, ModelChanges
from opensearch_ml_stream.extensions.playground.service.playground_models import StoredPlaygroundModels
from opensearch_ml_stream.plugin.extension import Contribution, Core
from opensearch_ml_stream.plugin.settings.dynamic import DynamicSettings
from opensearch_ml_stream.rest_handlers.resource_endpoint import Entry

OPENAI_API = "openai_api"
"""The extension by which the page speaks with models; where it is off, the page says so, and shows models alone."""


@asynccontextmanager
async def open_playground(core: Core) -> AsyncIterator[Contribution]:
    """Contribute the page's routes; where it is switched off, routes that say so."""
    is_on = core.settings.of(PlaygroundSettings).playground
    blueprints = BlueprintModels(core.store, core.registry)
    models = StoredPlaygroundModels(core.store, core.registry, blueprints, core.additions)
    figures = LiveFigures(core.statistics, core.visible, core.metrics.output_tokens)
    converses = core.settings.extensions.get(OPENAI_API) is not False
    routes = playground_routes(
        models, figures, core.in_flight, core.gate, core.version, is_on=is_on, converses=converses
    )
    if is_on:
        changes = ModelChanges(core.store, core.registry, blueprints.blueprints)
        servers = AllowedServers(DynamicSettings(core.store, core.live, core.clock))
        routes += model_settings_routes(changes, servers, Entry(core.gate, core.in_flight.bodies))
    for route in routes:
        route.include_in_schema = False  # only the page asks for them
    yield Contribution(routes=routes, page=PAGE if is_on else "")
