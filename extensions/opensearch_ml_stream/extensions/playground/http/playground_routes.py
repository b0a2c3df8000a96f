"""`/_ui/`: the page, its files, and what its script asks for, each for those who may do the same over the API."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import InvalidRequest, NotFound
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.playground.http.admission import admit, may
from opensearch_ml_stream.extensions.playground.http.live_statistics import LiveStatistics, LiveStatisticsEndpoint
from opensearch_ml_stream.extensions.playground.http.page_files import PageFile, read_page, read_static_files
from opensearch_ml_stream.extensions.playground.http.playground_use_cases import NewModel, PlaygroundModels
from opensearch_ml_stream.extensions.playground.http.user_routes import user_routes
from opensearch_ml_stream.extensions.playground.paths import UI_PATH
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.host_and_origin import with_security_headers
from opensearch_ml_stream.rest_handlers.http.requests import json_body, read_body
from opensearch_ml_stream.rest_handlers.http.response_lifecycle import InFlightResponses
from opensearch_ml_stream.rest_handlers.http.responses import json_response
from opensearch_ml_stream.rest_handlers.resource_endpoint import Entry

PAGE = UI_PATH.removeprefix("/") + "/"  # relative to `/`, so that a proxy may serve all of this below a prefix
_OF_NEW_MODEL = frozenset({"model_name", "credential", "parameters"})


def playground_routes(
    models: PlaygroundModels,
    statistics: LiveStatistics,
    in_flight: InFlightResponses,
    gate: Gate,
    version: str,
    *,
    is_on: bool,
    converses: bool = True,
) -> list[Route]:
    """Return the routes of the page, of its files, and of what it asks for; where it is off, routes that say so.

    `converses` is whether there is OpenAI's API, by which the page speaks with models.
    """
    if not is_on:
        off = _SwitchedOff()
        return [Route(UI_PATH, off), Route(UI_PATH + "/{path:path}", off)]
    return [
        *_page_routes(gate, version, converses=converses),
        *user_routes(gate),
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


def _model_routes(models: PlaygroundModels, gate: Gate) -> list[Route]:
    async def list_all(request: Request) -> Response:
        """List the models that the caller may see."""
        caller = await admit(request, gate, actions.MODEL_SEARCH)
        shows_settings = await may(request, gate, actions.MODEL_GET)
        return json_response(request, {"models": await models.listed(caller, shows_settings=shows_settings)})

    async def show(request: Request) -> Response:
        """Return what a form for a call of a model asks."""
        caller = await admit(request, gate, actions.MODEL_GET)
        shows_connector = await may(request, gate, actions.CONNECTOR_GET)
        form = await models.form(caller, request.path_params["id"], shows_connector=shows_connector)
        return json_response(request, form)

    async def delete(request: Request) -> Response:
        """Undeploy and delete a model, and its connector if nothing else needs that."""
        await admit(request, gate, actions.MODEL_UNDEPLOY)
        caller = await admit(request, gate, actions.MODEL_DELETE)
        with_connector = await may(request, gate, actions.CONNECTOR_DELETE)
        return json_response(
            request, await models.delete(caller, request.path_params["id"], with_connector=with_connector)
        )

    return [
        Route(UI_PATH + "/models", list_all),
        Route(UI_PATH + "/models/{id}", show),
        Route(UI_PATH + "/models/{id}", delete, methods=["DELETE"]),
    ]


def _blueprint_routes(models: PlaygroundModels, entry: Entry) -> list[Route]:
    async def list_all(request: Request) -> Response:
        """List the blueprints, with the credentials and parameters that each takes."""
        await admit(request, entry.gate, actions.CONNECTOR_CREATE)
        return json_response(request, {"blueprints": models.blueprints()})

    async def create(request: Request) -> Response:
        """Make a connector and a deployed model from a blueprint."""
        await admit(request, entry.gate, actions.MODEL_REGISTER)
        caller = await admit(request, entry.gate, actions.CONNECTOR_CREATE)
        with BodyReservation(entry.bodies) as reservation:
            data = await read_body(request.scope, request.receive, reservation)
            new = _new_model(json_body(request.scope, data))
        return json_response(request, await models.create(caller, request.path_params["name"], new))

    return [
        Route(UI_PATH + "/blueprints", list_all),
        Route(UI_PATH + "/blueprints/{name}", create, methods=["POST"]),
    ]


def _new_model(data: bytes) -> NewModel:
    """Read the body of a request for a new model; InvalidRequest names what is wrong with it."""
    body = jsontext.load_object(data, written_numbers=True)
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
