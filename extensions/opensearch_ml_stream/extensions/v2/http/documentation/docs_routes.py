"""`/v2/docs` and `/v2/models/{model_name}/docs`: pages for people, OpenAPI documents for programs."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from opensearch_ml_stream.extensions.v2.http.documentation.dataplane import (
    DescribedModel,
    Document,
    model_document,
    server_document,
)
from opensearch_ml_stream.extensions.v2.http.documentation.docs_page import Surroundings, page_renderer
from opensearch_ml_stream.extensions.v2.http.documentation.example_requests import Metadata
from opensearch_ml_stream.extensions.v2.http.use_cases import InferenceModels
from opensearch_ml_stream.extensions.v2.paths import V2_PATH
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.http.pages import page_response
from opensearch_ml_stream.rest_handlers.http.responses import json_response

_MODEL = V2_PATH + "/models/{model_name:path}"  # with slashes, as names of public models have


def docs_routes(models: InferenceModels, gate: Gate, version: str) -> list[Route]:
    """Return the routes of all pages and documents; `version` is the server's.

    Those of the server are for whoever may call it, those of a model for whoever may see the model.
    """
    render, style = page_renderer()
    of_server = server_document(version)

    async def described(request: Request) -> DescribedModel:
        caller = await gate.admit(request.scope, actions.MODEL_GET)
        name, number = request.path_params["model_name"], request.path_params.get("model_version")
        return DescribedModel(name, number, await models.metadata(caller, name, number))

    async def page(request: Request, document: Document, metadata: Metadata | None) -> Response:
        surroundings = Surroundings(
            server_url=str(request.base_url).rstrip("/"),
            document_link="dataplane.json" if request.url.path.endswith("/") else "docs/dataplane.json",
            asks_for_login=gate.asks_for_login,
        )
        return page_response(request.scope, await render(document, metadata, surroundings), [style])

    async def show_server(request: Request) -> Response:
        """Show a page about the V2 protocol."""
        await gate.admit(request.scope)
        return await page(request, of_server, None)

    async def describe_server(request: Request) -> Response:
        """Describe the V2 protocol as OpenAPI 3.1."""
        await gate.admit(request.scope)
        return json_response(request, of_server)

    async def show_model(request: Request) -> Response:
        """Show a page about the V2 protocol of a model."""
        model = await described(request)
        return await page(request, model_document(model, version), model.metadata)

    async def describe_model(request: Request) -> Response:
        """Describe the V2 protocol of a model as OpenAPI 3.1."""
        return json_response(request, model_document(await described(request), version))

    routes = []
    for base, show, describe in (
        (V2_PATH, show_server, describe_server),
        (_MODEL + "/versions/{model_version}", show_model, describe_model),
        (_MODEL, show_model, describe_model),
    ):
        routes += [
            Route(base + "/docs", show),
            Route(base + "/docs/", show),
            Route(base + "/docs/dataplane.json", describe),
        ]
    return routes
