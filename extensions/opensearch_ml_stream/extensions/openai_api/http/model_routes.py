"""`/v1/models`: the models that the caller may see."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from opensearch_ml_stream.extensions.openai_api.extension import MODELS_PATH
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Caller, Gate
from opensearch_ml_stream.rest_handlers.http.responses import json_response

OWNER = "opensearch-ml-stream"


def model_object(id: str, source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object of a stored model, under the name or the id by which it is asked for."""
    created = source.get("created_time")
    return {
        "id": id,
        "object": "model",
        "created": created // 1000 if isinstance(created, int) else 0,
        "owned_by": OWNER,
    }


def model_list(models: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    """Return the list of models with these ids: each by its name, or by its id where several have the name."""
    names = Counter(source.get("name") for _, source in models)
    data = [
        model_object(name if (name := source.get("name")) and names[name] == 1 else model_id, source)
        for model_id, source in models
    ]
    return {"object": "list", "data": data}


ListModels = Callable[[Caller], Awaitable[list[tuple[str, Mapping[str, Any]]]]]
"""Returns ids and stored fields of the models that a caller may see."""

FindModel = Callable[[Caller, str], Awaitable[Mapping[str, Any]]]
"""Returns the stored fields of a model by its name or id. NotFound if there is none that the caller may see."""

_MAY_SEE = (actions.MODEL_SEARCH, actions.MODEL_GET, actions.PREDICT_STREAM, actions.PREDICT)


def model_routes(listed: ListModels, find: FindModel, gate: Gate) -> list[Route]:
    """Return the routes. Callers who may only predict may list models too: clients list them before they call one."""

    async def show_all(request: Request) -> Response:
        """List the models that the caller may see."""
        caller = await gate.admit(request.scope, *_MAY_SEE)
        return json_response(request, model_list(await listed(caller)))

    async def show_one(request: Request) -> Response:
        """Show a model, by its name or id."""
        caller = await gate.admit(request.scope, *_MAY_SEE)
        name: str = request.path_params["name"]
        return json_response(request, model_object(name, await find(caller, name)))

    return [Route(MODELS_PATH, show_all), Route(MODELS_PATH + "/{name:path}", show_one)]
