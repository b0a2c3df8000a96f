"""The router: a Starlette application of all routes but those of predictions, which stand before it."""

from collections.abc import Callable, Sequence

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from opensearch_ml_stream.rest_handlers.base_path import Paths
from opensearch_ml_stream.rest_handlers.http.exception_handlers import exception_handlers

Wrap = Callable[[ASGIApp], ASGIApp]
"""Returns an application around the next one."""


def rest_application(
    routes: Sequence[BaseRoute],
    paths: Paths = Paths(),  # noqa: B008 - a frozen value
    behind: Sequence[Wrap] = (),
    other_server: ASGIApp | None = None,
) -> Starlette:
    """Return the application; errors have OpenSearch's shape.

    What no route has goes through the applications `behind` the router, the first one first, then to the `other_server`
    where requests go on to one. ValueError for a route where none may be (`Paths.may_have_route`).
    """
    if stray := [route.path for route in routes if isinstance(route, Route) and not paths.may_have_route(route.path)]:
        raise ValueError(f"Requests for {stray[0]} would go on to another server; an extension declares its paths")
    if other_server is not None:
        routes = [*routes, Route("/", other_server)]  # for methods that no route has there
    application = Starlette(routes=routes, exception_handlers=exception_handlers())
    application.router.redirect_slashes = False  # clients of OpenSearch follow no redirects
    default: ASGIApp = application.router.not_found
    if other_server is not None:
        default = _passing_on(other_server, paths, default)
    for wrap in reversed(behind):
        default = wrap(default)
    application.router.default = default
    if other_server is not None:
        application.router.routes.insert(0, _PathsOfOthers(default, paths))
    return application


def _passing_on(other_server: ASGIApp, paths: Paths, not_found: ASGIApp) -> ASGIApp:
    """Return the endpoint of all paths that nothing here has; `not_found` is for those that are never passed on."""

    async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
        is_passed = scope["type"] == "http" and paths.is_of_other_server(scope["path"])
        await (other_server if is_passed else not_found)(scope, receive, send)

    return endpoint


class _PathsOfOthers(BaseRoute):
    """The first route: matches paths that no other route can have, so that the others need not be tried."""

    def __init__(self, endpoint: ASGIApp, paths: Paths) -> None:
        self._endpoint = endpoint
        self._paths = paths

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match by the beginning of the path."""
        is_of_others = scope["type"] == "http" and not self._paths.may_have_route(scope["path"])
        return Match.FULL if is_of_others else Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request."""
        await self._endpoint(scope, receive, send)
