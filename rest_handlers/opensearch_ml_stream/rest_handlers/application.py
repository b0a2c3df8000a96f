"""The ASGI applications behind the stream route: `/v2`, and a Starlette router for everything else."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from opensearch_ml_stream.extensions.front_door.http.cluster_requests import ClusterRequests
from opensearch_ml_stream.extensions.runtimes.http.custom_handlers import CustomHandlers
from opensearch_ml_stream.extensions.v2.http.inference_endpoints import InferenceEndpoints
from opensearch_ml_stream.extensions.v2.http.model_endpoints import ModelEndpoints, Server
from opensearch_ml_stream.extensions.v2.http.open_inference import OpenInference
from opensearch_ml_stream.extensions.v2.http.use_cases import InferenceModels
from opensearch_ml_stream.rest_handlers.base_path import may_have_route
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.http.exception_handlers import exception_handlers
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses


def rest_application(
    routes: Sequence[BaseRoute], handlers: CustomHandlers | None = None, cluster: ClusterRequests | None = None
) -> Starlette:
    """Return the application of all routes but those of streams and of `/v2`; errors have OpenSearch's shape.

    A path that no route has may be that of a custom handler, else it is the cluster's where requests go on to it.
    ValueError for a route where none may be (`may_have_route`).
    """
    if stray := [route.path for route in routes if isinstance(route, Route) and not may_have_route(route.path)]:
        raise ValueError(f"Requests for {stray[0]} would go on to the cluster; see base_path.may_have_route")
    if cluster is not None:
        routes = [*routes, Route("/", cluster)]  # for methods that no route has there
    application = Starlette(routes=routes, exception_handlers=exception_handlers())
    application.router.redirect_slashes = False  # clients of OpenSearch follow no redirects
    default: ASGIApp = application.router.not_found
    if cluster is not None:
        default = cluster.before(default)
    if handlers is not None:
        default = handlers.before(default)
    application.router.default = default
    if cluster is not None:
        application.router.routes.insert(0, _PathsOfOthers(default))
    return application


class _PathsOfOthers(BaseRoute):
    """The route of all paths that no other route can have, before a hundred of those are tried in vain."""

    def __init__(self, endpoint: ASGIApp) -> None:
        self._endpoint = endpoint

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match by the beginning of the path."""
        is_of_others = scope["type"] == "http" and not may_have_route(scope["path"])
        return Match.FULL if is_of_others else Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request."""
        await self._endpoint(scope, receive, send)


def open_inference(
    models: InferenceModels, server: Server, in_flight: InFlightResponses, gate: Gate, router: ASGIApp, *, gzip: bool
) -> OpenInference:
    """Return `/v2` in front of `router`; `gzip` is whether it compresses responses for clients that take it."""
    return OpenInference(
        InferenceEndpoints(models, in_flight, gate, gzip),
        ModelEndpoints(models, server, gate, in_flight.bodies, gzip),
        router,
    )
