"""`/_ui/`: the page, its files, and what its script asks for, each for those who may do the same over the API."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import Forbidden, InvalidRequest, NotFound, Unauthorized
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.playground.extension import UI_PATH
from opensearch_ml_stream.extensions.playground.http.live_statistics import LiveStatisticsEndpoint
from opensearch_ml_stream.extensions.playground.http.page_files import PageFile, read_page, read_static_files
from opensearch_ml_stream.extensions.playground.service.blueprint_models import NewModel
from opensearch_ml_stream.extensions.playground.service.live_figures import LiveFigures
from opensearch_ml_stream.extensions.playground.service.model_changes import AllowedServers, ModelChange, ModelChanges
from opensearch_ml_stream.extensions.playground.service.playground_models import StoredPlaygroundModels
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.host_and_origin import with_security_headers
from opensearch_ml_stream.rest_handlers.http.pages import PageTemplate, page_response
from opensearch_ml_stream.rest_handlers.http.requests import check_query, json_body, query, read_body
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses
from opensearch_ml_stream.rest_handlers.http.responses import json_response
from opensearch_ml_stream.rest_handlers.resource_endpoint import Entry, check_ids

PAGE = UI_PATH.removeprefix("/") + "/"  # relative to `/`, so that a proxy may serve all of this below a prefix
_OF_NEW_MODEL = frozenset({"model_name", "credential", "parameters"})
_TEXTS = ("name", "description")
_OBJECTS = ("parameters", "credential", "settings")
_OF_CONNECTOR = (actions.CONNECTOR_UPDATE, actions.MODEL_UNDEPLOY, actions.MODEL_DEPLOY)
_LOGGED_OUT = PageTemplate("opensearch_ml_stream.extensions.playground.http", "templates/logged_out.html")


def playground_routes(
    models: StoredPlaygroundModels,
    statistics: LiveFigures,
    in_flight: InFlightResponses,
    gate: Gate,
    version: str,
    *,
    is_on: bool,
    converses: bool = True,
) -> list[Route]:
    """Return the routes of the page, of its files, and of what it asks for; where it is off, routes that say so.

    `converses` is whether OpenAI's API is on, through which the page talks to models.
    """
    if not is_on:
        off = _SwitchedOff()
        return [Route(UI_PATH, off), Route(UI_PATH + "/{path:path}", off)]
    return [
        *_page_routes(gate, version, converses=converses),
        *_user_routes(gate),
        *_model_routes(models, gate),
        *_blueprint_routes(models, Entry(gate, in_flight.bodies)),
        Route(UI_PATH + "/statistics", LiveStatisticsEndpoint(statistics, gate, in_flight.stopping)),
    ]


class _SwitchedOff:
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raise NotFound("There is no playground here: the setting opensearch_ml_stream.playground is false")


def _page_routes(gate: Gate, version: str, *, converses: bool) -> list[Route]:
    files = read_static_files()
    pages: dict[bool, PageFile] = {}  # by whether callers log in, once it has been asked for

    async def show(request: Request) -> Response:
        """Show the playground, for those who may see models or call them."""
        await gate.admit(request.scope, actions.MODEL_SEARCH, actions.PREDICT, actions.PREDICT_STREAM)
        asks = gate.asks_for_login
        if asks not in pages:
            pages[asks] = await read_page(version, asks_for_login=asks, converses=converses)
        return pages[asks].respond(request)

    async def show_file(request: Request) -> Response:
        """Return a file of the page."""
        await gate.admit(request.scope)
        file = files.get(request.path_params["file"])
        if file is None:
            raise NotFound(f"There is no such file; the page is {UI_PATH}/")
        return file.respond(request)

    async def redirect(request: Request) -> Response:
        """Send a browser to the page, whose links are relative to the slash at its end."""
        await gate.admit(request.scope)
        return with_security_headers(request.scope, Response(status_code=302, headers={"Location": PAGE}))

    return [Route(UI_PATH, redirect), Route(UI_PATH + "/", show), Route(UI_PATH + "/static/{file}", show_file)]


def _model_routes(models: StoredPlaygroundModels, gate: Gate) -> list[Route]:
    async def list_all(request: Request) -> Response:
        """List the models that the caller may see."""
        caller = await _admit(request, gate, actions.MODEL_SEARCH)
        shows_settings = await _may(request, gate, actions.MODEL_GET)
        return json_response(request, {"models": await models.listed(caller, shows_settings=shows_settings)})

    async def show(request: Request) -> Response:
        """Return the form for a call of a model."""
        caller = await _admit(request, gate, actions.MODEL_GET)
        shows_connector = await _may(request, gate, actions.CONNECTOR_GET)
        form = await models.form(caller, request.path_params["id"], shows_connector=shows_connector)
        return json_response(request, form)

    async def delete(request: Request) -> Response:
        """Undeploy and delete a model, and its connector if nothing else needs that."""
        await _admit(request, gate, actions.MODEL_UNDEPLOY)
        caller = await _admit(request, gate, actions.MODEL_DELETE)
        with_connector = await _may(request, gate, actions.CONNECTOR_DELETE)
        return json_response(
            request, await models.delete(caller, request.path_params["id"], with_connector=with_connector)
        )

    return [
        Route(UI_PATH + "/models", list_all),
        Route(UI_PATH + "/models/{id}", show),
        Route(UI_PATH + "/models/{id}", delete, methods=["DELETE"]),
    ]


def _blueprint_routes(models: StoredPlaygroundModels, entry: Entry) -> list[Route]:
    async def list_all(request: Request) -> Response:
        """List the blueprints, with the credentials and parameters that each takes."""
        await _admit(request, entry.gate, actions.CONNECTOR_CREATE)
        return json_response(request, {"blueprints": models.blueprints()})

    async def create(request: Request) -> Response:
        """Make a connector and a deployed model from a blueprint."""
        await _admit(request, entry.gate, actions.MODEL_REGISTER)
        caller = await _admit(request, entry.gate, actions.CONNECTOR_CREATE)
        new = _new_model(await _body(request, entry, written_numbers=True))
        return json_response(request, await models.create(caller, request.path_params["name"], new))

    return [
        Route(UI_PATH + "/blueprints", list_all),
        Route(UI_PATH + "/blueprints/{name}", create, methods=["POST"]),
    ]


def _new_model(body: dict[str, Any]) -> NewModel:
    """Read the body of a request for a new model; InvalidRequest names what is wrong with it."""
    if unknown := sorted(body.keys() - _OF_NEW_MODEL):
        raise InvalidRequest(f"Unknown member [{unknown[0]}]; a new model has {', '.join(sorted(_OF_NEW_MODEL))}")
    name = body.get("model_name")
    if name is not None and not (isinstance(name, str) and name.strip()):
        raise InvalidRequest("model_name must be a string that is not blank")
    credential = _object(body, "credential")
    if wrong := [key for key, value in credential.items() if not isinstance(value, str)]:
        raise InvalidRequest(f"credential [{wrong[0]}] must be a string")
    return NewModel(name, credential, _object(body, "parameters"))


def _object(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = body.get(name) or {}
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{name} must be an object")
    return value


def _user_routes(gate: Gate) -> list[Route]:
    async def show(request: Request) -> Response:
        """Say who calls, by name and roles."""
        caller = await gate.admit(request.scope)
        check_query(request.scope, query(request.scope))
        user = {"name": caller.name, "roles": sorted(caller.roles), "asks_for_login": gate.asks_for_login}
        return json_response(request, user)

    async def log_out(request: Request) -> Response:
        """Let the browser forget the login of `?user=NAME`.

        A browser keeps a name and a password until they are refused, so this route refuses them: the browser asks for
        others, with which it gets the page. A user who cancels is logged out.
        """
        caller = await gate.admit(request.scope)
        if caller.name != request.query_params.get("user"):
            return with_security_headers(request.scope, Response(status_code=302, headers={"Location": "./"}))
        response = page_response(request.scope, await _LOGGED_OUT.render())
        response.status_code = 401
        response.headers["WWW-Authenticate"] = Unauthorized().challenge
        return response

    return [Route(UI_PATH + "/user", show), Route(UI_PATH + "/logout", log_out)]


def model_settings_routes(models: ModelChanges, servers: AllowedServers, entry: Entry) -> list[Route]:
    """Return the routes of a model's editor, `/_ui/models/{id}/settings`, and `/_ui/servers`, which models may call."""

    async def show(request: Request) -> Response:
        """Return what the editor of a model shows."""
        caller = await _admit(request, entry.gate, actions.MODEL_GET)
        shows_connector = await _may(request, entry.gate, actions.CONNECTOR_GET)
        shown = await models.shown(caller, request.path_params["id"], shows_connector=shows_connector)
        return json_response(request, shown)

    async def change(request: Request) -> Response:
        """Change a model, its connector's values and its limits."""
        caller = await _admit(request, entry.gate, actions.MODEL_UPDATE)
        wanted = _model_change(await _body(request, entry))
        if wanted.of_connector:
            for action in _OF_CONNECTOR:
                await _admit(request, entry.gate, action)
        return json_response(request, await models.change(caller, request.path_params["id"], wanted))

    async def allow(request: Request) -> Response:
        """Let connectors call a server."""
        await _admit(request, entry.gate, actions.SETTINGS_UPDATE)
        await _admit(request, entry.gate, actions.SETTINGS_GET)
        body = await _body(request, entry)
        if body.keys() != {"url"} or not isinstance(body["url"], str) or "://" not in body["url"]:
            raise InvalidRequest("The body is one [url] with its scheme, such as http://10.0.0.5:8000")
        return json_response(request, await servers.allow(body["url"]))

    settings = UI_PATH + "/models/{id}/settings"
    return [
        Route(settings, show),
        Route(settings, change, methods=["PUT"]),
        Route(UI_PATH + "/servers", allow, methods=["POST"]),
    ]


def _model_change(body: dict[str, Any]) -> ModelChange:
    """Read the body of a change; InvalidRequest names what is wrong with it."""
    if unknown := sorted(body.keys() - {*_TEXTS, *_OBJECTS}):
        raise InvalidRequest(f"Unknown member [{unknown[0]}]; a change has {', '.join((*_TEXTS, *_OBJECTS))}")
    for name, value in body.items():
        if name in _TEXTS and not isinstance(value, str):
            raise InvalidRequest(f"{name} must be a string")
        if name in _OBJECTS and not isinstance(value, dict):
            raise InvalidRequest(f"{name} must be an object")
    if not body.get("name", "-").strip():
        raise InvalidRequest("name must be a string that is not blank")
    if wrong := [key for key, value in body.get("credential", {}).items() if not isinstance(value, str)]:
        raise InvalidRequest(f"credential [{wrong[0]}] must be a string")
    return ModelChange(**body)


async def _body(request: Request, entry: Entry, *, written_numbers: bool = False) -> dict[str, Any]:
    with BodyReservation(entry.bodies) as reservation:
        data = await read_body(request.scope, request.receive, reservation)
        return jsontext.load_object(json_body(request.scope, data), written_numbers=written_numbers)


async def _admit(request: Request, gate: Gate, action: str) -> Caller:
    """Admit the caller to an action and return who it is; InvalidRequest for a malformed query or id."""
    caller = await gate.admit(request.scope, action)
    check_query(request.scope, query(request.scope))
    check_ids(request.path_params)
    return caller


async def _may(request: Request, gate: Gate, action: str) -> bool:
    """Return whether the caller may do the action."""
    try:
        await gate.admit(request.scope, action)
    except Forbidden:
        return False
    return True
