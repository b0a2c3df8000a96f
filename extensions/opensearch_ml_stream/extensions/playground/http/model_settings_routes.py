"""`/_ui/models/{id}/settings` and `/_ui/servers`: the editor of a model, and the servers that models may call."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.playground.http.admission import admit, may
from opensearch_ml_stream.extensions.playground.http.model_use_cases import AllowedServers, ModelChange, ModelChanges
from opensearch_ml_stream.extensions.playground.paths import UI_PATH
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation
from opensearch_ml_stream.rest_handlers.http.requests import json_body, read_body
from opensearch_ml_stream.rest_handlers.http.responses import json_response
from opensearch_ml_stream.rest_handlers.resource_endpoint import Entry

_TEXTS = ("name", "description")
_OBJECTS = ("parameters", "credential", "settings")
_OF_CONNECTOR = (actions.CONNECTOR_UPDATE, actions.MODEL_UNDEPLOY, actions.MODEL_DEPLOY)


def model_settings_routes(models: ModelChanges, servers: AllowedServers, entry: Entry) -> list[Route]:
    """Return the routes."""

    async def show(request: Request) -> Response:
        """Return what the editor of a model shows."""
        caller = await admit(request, entry.gate, actions.MODEL_GET)
        shows_connector = await may(request, entry.gate, actions.CONNECTOR_GET)
        shown = await models.shown(caller, request.path_params["id"], shows_connector=shows_connector)
        return json_response(request, shown)

    async def change(request: Request) -> Response:
        """Change a model, its connector's values and its limits."""
        caller = await admit(request, entry.gate, actions.MODEL_UPDATE)
        wanted = _model_change(await _body(request, entry))
        if wanted.of_connector:
            for action in _OF_CONNECTOR:
                await admit(request, entry.gate, action)
        return json_response(request, await models.change(caller, request.path_params["id"], wanted))

    async def allow(request: Request) -> Response:
        """Let connectors call a server."""
        await admit(request, entry.gate, actions.SETTINGS_UPDATE)
        await admit(request, entry.gate, actions.SETTINGS_GET)
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


async def _body(request: Request, entry: Entry) -> dict[str, Any]:
    with BodyReservation(entry.bodies) as reservation:
        data = await read_body(request.scope, request.receive, reservation)
        return jsontext.load_object(json_body(request.scope, data))


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
