"""The ASGI application of `/v2`, in front of the router: streams do not pass the router's middleware.

A model's name may contain slashes, as those of public models do, as they are or as `%2F`.
"""

import re
from collections.abc import Awaitable, Callable
from functools import partial

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.extensions.v2.extension import V2_PATH
from opensearch_ml_stream.extensions.v2.http.inference_endpoints import InferenceEndpoints, ModelPath
from opensearch_ml_stream.extensions.v2.http.model_endpoints import ModelEndpoints
from opensearch_ml_stream.rest_handlers.http.exception_handlers import method_not_allowed
from opensearch_ml_stream.rest_handlers.http.responses import error_response

_MODEL = re.compile(
    f"{V2_PATH}/models/(?!\\.\\.?/)(.+?)(?:/versions/([^/]+))?"
    r"(?:/(ready|infer|generate|infer_stream|generate_stream|docs|docs/dataplane\.json))?/?",
    re.DOTALL,
)
_REPOSITORY = re.compile(f"{V2_PATH}/repository/models/(.+?)/(load|unload)/?", re.DOTALL)

Reply = Callable[[Request], Awaitable[Response]]


class OpenInference:
    """The ASGI application: the paths of the protocol here, every other path to `router`."""

    def __init__(self, inferences: InferenceEndpoints, models: ModelEndpoints, router: ASGIApp) -> None:
        self._inferences = {
            "infer": inferences.infer,
            "generate": inferences.infer,
            "infer_stream": inferences.infer_stream,
            "generate_stream": inferences.infer_stream,
        }
        self._server: dict[str, tuple[str, Reply]] = {
            "": ("GET", models.server_metadata),
            "/health/live": ("GET", models.live),
            "/health/ready": ("GET", models.ready),
            "/repository/index": ("POST", models.index),
        }
        self._of_model = {None: models.metadata, "ready": models.model_ready}
        self._of_repository = {"load": models.load, "unload": models.unload}
        self._router = router

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Handle a request, until its response has ended or its client has disconnected."""
        found = None
        if scope["type"] == "http" and (scope["path"] == V2_PATH or scope["path"].startswith(f"{V2_PATH}/")):
            found = self._find(scope["path"])
        if found is None:  # without a frame of its own, which would be part of every chunk's stack
            return self._router(scope, receive, send)
        return self._handle(*found, scope, receive, send)

    async def _handle(self, method: str, endpoint: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == method or (scope["method"] == "HEAD" and method == "GET"):
            await endpoint(scope, receive, send)
        else:
            await method_not_allowed(Request(scope), [method])(scope, receive, send)

    def _find(self, path: str) -> tuple[str, ASGIApp] | None:
        """Return the method of a path and its endpoint, None for other paths, such as the documentation's."""
        if (match := _MODEL.fullmatch(path)) is not None:
            model, operation = ModelPath(match[1], match[2]), match[3]
            if (infer := self._inferences.get(operation)) is not None:
                return "POST", partial(infer, path=model)
            tell = self._of_model.get(operation)
            return None if tell is None else ("GET", _endpoint(partial(tell, path=model)))
        if (match := _REPOSITORY.fullmatch(path)) is not None:
            return "POST", _endpoint(partial(self._of_repository[match[2]], name=match[1]))
        found = self._server.get(path.removeprefix(V2_PATH).removesuffix("/"))
        return None if found is None else (found[0], _endpoint(found[1]))


def _endpoint(reply: Reply) -> ASGIApp:
    """Return the ASGI endpoint that sends what `reply` returns, or the error that it raises."""

    async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            response = await reply(request)
        except ClientDisconnect:
            return
        except MLStreamError as error:
            response = error_response(request, error)
        await response(scope, receive, send)

    return endpoint
