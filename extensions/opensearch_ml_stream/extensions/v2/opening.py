"""Open V2: `/v2` in front of the router, its documentation pages behind it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from opensearch_ml_stream.extensions.v2.extension import V2Settings
from opensearch_ml_stream.extensions.v2.http.application import OpenInference
from opensearch_ml_stream.extensions.v2.http.documentation.docs_routes import docs_routes
from opensearch_ml_stream.extensions.v2.http.documentation.operations import V2_OPERATIONS
from opensearch_ml_stream.extensions.v2.http.inference_endpoints import InferenceEndpoints
from opensearch_ml_stream.extensions.v2.http.model_endpoints import ModelEndpoints, Server
from opensearch_ml_stream.extensions.v2.http.use_cases import InferenceModels
from opensearch_ml_stream.extensions.v2.service.model_names import ModelNames
from opensearch_ml_stream.extensions.v2.service.stored_inference_models import StoredInferenceModels
from opensearch_ml_stream.plugin.extension import BEFORE_THE_ROUTER, Contribution, Core, Handler


@asynccontextmanager
async def open_v2(core: Core) -> AsyncIterator[Contribution]:
    """Contribute the routes, and the use cases for other extensions."""
    names = ModelNames(core.store, core.visible, core.states, core.additions.protocols)
    models = StoredInferenceModels(names, core.models, core.predictions, core.registry.models, core.additions.protocols)
    gzip = core.settings.of(V2Settings).gzip
    inferences = InferenceEndpoints(models, core.in_flight, core.gate, gzip)
    server = Server(core.version, core.store.ping)
    endpoints = ModelEndpoints(models, server, core.gate, core.in_flight.bodies, gzip)

    def before(router: ASGIApp) -> ASGIApp:
        return OpenInference(inferences, endpoints, router)

    yield Contribution(
        routes=docs_routes(models, core.gate, core.version),
        operations=V2_OPERATIONS,
        handlers=(Handler(BEFORE_THE_ROUTER, before),),
        faces={InferenceModels: models},
    )
