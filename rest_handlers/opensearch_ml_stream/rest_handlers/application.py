"""The ASGI applications behind the stream route: `/v2`, and a Starlette router for everything else."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.http.exception_handlers import exception_handlers
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses
from opensearch_ml_stream.rest_handlers.v2.custom_handlers import CustomHandlers
from opensearch_ml_stream.rest_handlers.v2.inference_endpoints import InferenceEndpoints
from opensearch_ml_stream.rest_handlers.v2.model_endpoints import ModelEndpoints, Server
from opensearch_ml_stream.rest_handlers.v2.open_inference import OpenInference
from opensearch_ml_stream.rest_handlers.v2.use_cases import InferenceModels


def rest_application(routes: Sequence[BaseRoute], handlers: CustomHandlers | None = None) -> Starlette:
    """Return the application of all routes but those of streams and of `/v2`; errors have OpenSearch's shape.

    A path that no route has may be that of a custom handler.
    """
    application = Starlette(routes=routes, exception_handlers=exception_handlers())
    application.router.redirect_slashes = False  # clients of OpenSearch follow no redirects
    if handlers is not None:
        application.router.default = handlers.before(application.router.not_found)
    return application


def open_inference(
    models: InferenceModels, server: Server, in_flight: InFlightResponses, gate: Gate, router: ASGIApp, *, gzip: bool
) -> OpenInference:
    """Return `/v2` in front of `router`; `gzip` is whether it compresses responses for clients that take it."""
    return OpenInference(
        InferenceEndpoints(models, in_flight, gate, gzip),
        ModelEndpoints(models, server, gate, in_flight.bodies, gzip),
        router,
    )
