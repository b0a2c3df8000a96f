"""`/_ui/user` and `/_ui/logout`: who uses the page, and how a browser forgets them."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from opensearch_ml_stream.connectors.errors import Unauthorized
from opensearch_ml_stream.extensions.playground.paths import UI_PATH
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.http.host_and_origin import with_security_headers
from opensearch_ml_stream.rest_handlers.http.pages import PageTemplate, page_response
from opensearch_ml_stream.rest_handlers.http.requests import check_query, query
from opensearch_ml_stream.rest_handlers.http.responses import json_response

_LOGGED_OUT = PageTemplate("opensearch_ml_stream.extensions.playground.http", "templates/logged_out.html")


def user_routes(gate: Gate) -> list[Route]:
    """Return the routes."""

    async def show(request: Request) -> Response:
        """Say who calls, by name and roles."""
        caller = await gate.admit(request.scope)
        check_query(request.scope, query(request.scope))
        user = {"name": caller.name, "roles": sorted(caller.roles), "asks_for_login": gate.asks_for_login}
        return json_response(request, user)

    async def log_out(request: Request) -> Response:
        """Let the browser forget the login of `?user=NAME`.

        A browser keeps a name and a password until they are refused, so they are, here alone: it asks for others, which
        lead to the page. Whoever cancels is logged out.
        """
        caller = await gate.admit(request.scope)
        if caller.name != request.query_params.get("user"):
            return with_security_headers(request.scope, Response(status_code=302, headers={"Location": "./"}))
        response = page_response(request.scope, await _LOGGED_OUT.render())
        response.status_code = 401
        response.headers["WWW-Authenticate"] = Unauthorized().challenge
        return response

    return [Route(UI_PATH + "/user", show), Route(UI_PATH + "/logout", log_out)]
