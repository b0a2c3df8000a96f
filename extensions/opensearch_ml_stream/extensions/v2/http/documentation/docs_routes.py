"""`/v2/docs` and `/v2/models/{model_name}/docs`: pages for people, OpenAPI documents for programs.

A page shows one of the documents as plain HTML without scripts, which loads nothing. Swagger UI would need a megabyte
of third-party scripts and inline styles on the port that takes credentials; the documents can be opened in one
elsewhere.
"""

import base64
import hashlib
import json
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import resources
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from opensearch_ml_stream.extensions.v2.extension import V2_PATH
from opensearch_ml_stream.extensions.v2.http.documentation.dataplane import (
    DescribedModel,
    Document,
    Metadata,
    model_document,
    server_document,
)
from opensearch_ml_stream.extensions.v2.http.use_cases import InferenceModels
from opensearch_ml_stream.rest_handlers import actions
from opensearch_ml_stream.rest_handlers.callers import Gate
from opensearch_ml_stream.rest_handlers.http.pages import PageTemplate, page_response
from opensearch_ml_stream.rest_handlers.http.responses import json_response
from opensearch_ml_stream.rest_handlers.operation_description import Schema

_PACKAGE = "opensearch_ml_stream.extensions.v2.http.documentation"
_METHODS = ("get", "post")
_JSON = "application/json"

Type = list[tuple[str, str]]
"""The description of a type: pieces of text, each with the name of the schema that it links to, or ""."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The context of a page: the server's address, the document's, and whether requests need a login."""

    server_url: str
    document_link: str
    asks_for_login: bool


def page_renderer() -> tuple[Callable[[Document, Metadata | None, Surroundings], Awaitable[str]], str]:
    """Return the function that renders a page of a document, and the CSP directive that allows the page's style.

    The metadata are those of the document's model, None for the document of the server.
    """
    style = resources.files(_PACKAGE).joinpath("page.css").read_text("utf-8")
    template = PageTemplate(_PACKAGE, "page.html")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()

    async def render(document: Document, metadata: Metadata | None, surroundings: Surroundings) -> str:
        return await template.render(
            info=document["info"],
            style=Markup(style),
            metadata=metadata,
            groups=_groups(document, surroundings),
            schemas=[_schema(name, schema) for name, schema in document["components"]["schemas"].items()],
            document_link=surroundings.document_link,
            asks_for_login=surroundings.asks_for_login,
        )

    return render, f"style-src 'sha256-{digest}'"


def _groups(document: Document, surroundings: Surroundings) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, item in document["paths"].items():
        for method in (name for name in _METHODS if name in item):
            operation = item[method]
            body = operation.get("requestBody", {}).get("content", {}).get(_JSON, {})
            command = _command(method, path, operation, surroundings)
            groups.setdefault(operation["tags"][0], []).append(
                {
                    "method": method,
                    "path": path,
                    "summary": operation["summary"],
                    "description": operation.get("description", ""),
                    "body": _type(body["schema"]) if body else [],
                    "response": _response_type(operation["responses"]["200"]),
                    "error": _response_type(operation["responses"]["default"]),
                    "command": command,
                    "is_open": bool(body and command),
                }
            )
    return groups


def _command(method: str, path: str, operation: dict[str, Any], surroundings: Surroundings) -> str:
    """Return a shell command that sends the operation's example, "" for a path with placeholders."""
    if "{" in path:
        return ""
    is_stream = "text/event-stream" in operation["responses"]["200"].get("content", {})
    login = ' -u "$LOGIN"' if surroundings.asks_for_login else ""
    call = f"curl{' -N' if is_stream else ''}{login} {shlex.quote(surroundings.server_url + path)}"
    if method == "get":
        return call
    if "requestBody" not in operation:
        return f"{call} -X POST"
    body = json.dumps(operation["requestBody"]["content"][_JSON].get("example", {}), ensure_ascii=False)
    return f"{call} -H 'Content-Type: application/json' -d {shlex.quote(body)}"


def _response_type(response: dict[str, Any]) -> Type:
    for content_type, content in response.get("content", {}).items():
        return _type(content["schema"]) if content_type == _JSON else [(content_type, "")]
    return [("no body", "")]


def _schema(name: str, schema: Schema) -> dict[str, Any]:
    required = schema.get("required", ())
    return {
        "name": name,
        "description": schema.get("description", ""),
        "type": _type(schema),
        "fields": [
            {
                "name": field,
                "is_required": field in required,
                "type": _type(value),
                "description": value.get("description", ""),
            }
            for field, value in schema.get("properties", {}).items()
        ],
    }


def _type(schema: Schema) -> Type:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return [(name, name)]
    if "anyOf" in schema:
        alternatives = [_type(alternative) for alternative in schema["anyOf"]]
        return [part for parts in alternatives for part in ((" or ", ""), *parts)][1:]
    if "enum" in schema:
        return [("one of " + ", ".join(schema["enum"]), "")]
    if schema.get("type") == "array" and "items" in schema:
        return [("list of ", ""), *_type(schema["items"])]
    if schema.get("properties"):
        return [("object with " + ", ".join(schema["properties"]), "")]
    return [(str(schema.get("type", "any")), "")]


_MODEL = V2_PATH + "/models/{model_name:path}"  # with slashes, as names of public models have


def docs_routes(models: InferenceModels, gate: Gate, version: str) -> list[Route]:
    """Return the routes of all pages and documents; `version` is the server's.

    Whoever may call the server may see its own, whoever may see a model that of the model.
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
