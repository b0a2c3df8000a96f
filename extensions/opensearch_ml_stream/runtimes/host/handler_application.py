"""The application of a model's custom handlers: MLServer's own where MLServer is installed, else a plain one.

The plain one calls a function in the commonest of FastAPI's ways, with the same responses. A handler's arguments may be
parameters of its path, those of the query, the request itself (Starlette's), and one that is the body's JSON: a
dictionary, a list, or a record, such as an InferenceRequest.
"""

import asyncio
import inspect
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

from opensearch_ml_stream.runtimes.host.asgi_requests import Application, Receive, Scope, Send, receiving
from opensearch_ml_stream.runtimes.host.failures import FailureLog, type_of
from opensearch_ml_stream.runtimes.interface import json_bytes
from opensearch_ml_stream.runtimes.interface.alias import INSTALL, install_mlserver_alias
from opensearch_ml_stream.runtimes.interface.types.base import BaseModel
from opensearch_ml_stream.runtimes.interface.wire import MalformedRequest, explanation
from opensearch_ml_stream.runtimes.path_templates import parameter_names, pattern_of

_TRUE, _FALSE = ("1", "true", "on", "t", "yes", "y"), ("0", "false", "off", "f", "no", "n")
_REQUIRED = inspect.Parameter.empty
_MARK = "__custom_handler__"  # what the decorator sets, as MLServer's does


class Handler(NamedTuple):
    """A method of the model, and the route that it is."""

    method: str
    path: str
    call: Callable[..., Any]


class CustomHandlers(NamedTuple):
    """The application, and its handlers in the form of the `ready` event."""

    application: Application
    described: list[dict[str, str]]


def custom_handlers(model: Any, log: FailureLog) -> CustomHandlers:
    """Make the application of a model's handlers; log why a handler cannot be served."""
    found = find_handlers(model)
    application, add = _fastapi() if found and not install_mlserver_alias() else _plain()
    described: list[dict[str, str]] = []
    for handler in found:
        try:
            if not handler.path.startswith("/"):
                raise ValueError("its path does not begin with a slash")
            add(handler)
        except Exception as error:  # noqa: BLE001 - FastAPI makes models of the types that a handler names
            log.say(f"the custom handler {handler.method} {handler.path} is not served: {type_of(error)}: {error}")
        else:
            described.append({"method": handler.method, "path": handler.path})
    return CustomHandlers(application, described)


def find_handlers(model: Any) -> list[Handler]:
    """List the methods of a model that are decorated, in the order of their names, as MLServer does.

    No property of the model is read for it: one may raise, or load something.
    """
    handlers: list[Handler] = []
    for name in dir(model):
        if isinstance(inspect.getattr_static(model, name, None), property):
            continue
        member = getattr(model, name, None)
        mark = getattr(member, _MARK, None) if callable(member) else None
        path, method = getattr(mark, "rest_path", None), getattr(mark, "rest_method", None)
        if callable(member) and isinstance(path, str) and isinstance(method, str):
            handlers.append(Handler(method.upper(), path, member))
    return handlers


def _plain() -> tuple[Application, Any]:
    application = PlainApplication()
    return application, application.add


def _fastapi() -> tuple[Application, Any]:
    """Make MLServer's application without its own routes and error handlers: errors are reported as for predictions."""
    responses, routes = import_module("mlserver.rest.responses"), import_module("mlserver.rest.app")
    application: Any = import_module("fastapi").FastAPI(
        docs_url=None, redoc_url=None, openapi_url=None, default_response_class=responses.Response
    )
    application.router.route_class = routes.APIRoute

    def add(handler: Handler) -> None:
        application.add_api_route(handler.path, handler.call, methods=[handler.method])

    return application, add


class Request(NamedTuple):
    """A request that a handler's arguments are read from."""

    scope: Scope
    body: bytes
    path: Mapping[str, str]
    query: Mapping[str, str]


Read = Callable[[Request], Any]


class _Route(NamedTuple):
    handler: Handler
    pattern: re.Pattern[str]
    arguments: Mapping[str, Read]


class PlainApplication:
    """The ASGI application of handlers: of two that fit a request, the one that was added first."""

    def __init__(self) -> None:
        self._routes: list[_Route] = []

    def add(self, handler: Handler) -> None:
        """Serve a handler; TypeError for arguments that need FastAPI, re.error for an invalid path."""
        self._routes.append(_Route(handler, pattern_of(handler.path), _arguments(handler)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request. MalformedRequest if the handler's arguments cannot be read from it."""
        fitting = [(route, match) for route in self._routes if (match := route.pattern.fullmatch(scope["path"]))]
        for route, match in fitting:
            if route.handler.method == scope["method"]:
                query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
                body = (await receive())["body"]
                await _run(route, Request(scope, body, match.groupdict(), query), send)
                return
        status, detail = (405, "Method Not Allowed") if fitting else (404, "Not Found")
        await _send(send, status, {"detail": detail})


async def _run(route: _Route, request: Request, send: Send) -> None:
    arguments = {name: read(request) for name, read in route.arguments.items()}
    call = route.handler.call
    try:
        if inspect.iscoroutinefunction(call):
            response = await call(**arguments)
        else:
            response = await asyncio.to_thread(call, **arguments)
    except Exception as error:
        if not _is_starlettes(type(error), "HTTPException"):
            raise
        refusal: Any = error
        await _send(send, refusal.status_code, {"detail": refusal.detail}, refusal.headers or {})
        return
    if _is_starlettes(type(response), "Response"):
        await response(request.scope, receiving(b""), send)
    else:
        await _send(send, 200, response)


async def _send(send: Send, status: int, content: Any, headers: Mapping[str, str] | None = None) -> None:
    body = json_bytes.dumps(content, _as_json)
    named = {"content-type": "application/json", **(headers or {}), "content-length": str(len(body))}
    encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in named.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


def _as_json(value: Any) -> Any:
    """Return a value for JSON; of a record all fields, also empty ones, as FastAPI does."""
    if isinstance(value, BaseModel) or hasattr(value, "model_dump"):
        return value.model_dump(exclude_unset=False, exclude_none=False)
    return json_bytes.plain(value)


def _arguments(handler: Handler) -> dict[str, Read]:
    """Return a reader for each argument of a handler; TypeError for an argument that needs FastAPI."""
    hints = get_type_hints(handler.call)
    in_path = parameter_names(handler.path)
    arguments: dict[str, Read] = {}
    bodies = 0
    for name, parameter in inspect.signature(handler.call).parameters.items():
        kind = _without_none(hints.get(name, Any))
        if _is_starlettes(kind, "Request"):
            arguments[name] = _reads_request(kind)
        elif kind is Any or kind in (str, int, float, bool):
            arguments[name] = _reads_text(name, kind, parameter.default, of_path=name in in_path)
        else:
            bodies += 1
            arguments[name] = _reads_body(name, kind, parameter.default)
    if bodies > 1:
        raise TypeError(f"several of its arguments are of the body, which needs MLServer itself: {INSTALL}")
    return arguments


def _without_none(kind: Any) -> Any:
    """Return X of `X | None`, and any other type as it is."""
    some = [one for one in get_args(kind) if one is not type(None)]
    return some[0] if type(None) in get_args(kind) and len(some) == 1 else kind


def _is_starlettes(kind: Any, name: str) -> bool:
    """Whether a type is Starlette's of that name, or derived from it; Starlette may be here where FastAPI is not."""
    bases = kind.__mro__ if isinstance(kind, type) else ()
    return any(base.__name__ == name and base.__module__.startswith("starlette.") for base in bases)


def _reads_request(kind: Any) -> Read:
    return lambda request: kind(request.scope, receiving(request.body))


def _reads_text(name: str, kind: Any, default: Any, *, of_path: bool) -> Read:
    convert = _boolean if kind is bool else (lambda text: text) if kind is Any else kind

    def read(request: Request) -> Any:
        text = (request.path if of_path else request.query).get(name)
        place = f"{'path' if of_path else 'query'}.{name}"
        if text is None:
            return _given(default, place)
        try:
            return convert(text)
        except ValueError:
            raise MalformedRequest(f"{place}: Input should be a valid {kind.__name__}") from None

    return read


def _boolean(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError


def _reads_body(name: str, kind: Any, default: Any) -> Read:
    plain = get_origin(kind) or kind
    validate = getattr(kind, "model_validate", None)
    if validate is None and plain not in (dict, list):
        raise TypeError(f"its argument {name} is of {kind}, which needs MLServer itself: {INSTALL}")

    def read(request: Request) -> Any:
        if not request.body:
            return _given(default, "body")
        content_type = next((value for key, value in request.scope["headers"] if key == b"content-type"), None)
        if content_type is not None and not _is_json(content_type.decode("latin-1")):
            raise MalformedRequest("body: The content type should be application/json")
        try:
            value = json_bytes.loads(request.body)
            if validate is not None:
                return validate(value)
        except ValueError as error:
            raise MalformedRequest(f"body: {explanation(error)}") from error
        if not isinstance(value, plain):
            raise MalformedRequest(f"body: Input should be a valid {'dictionary' if plain is dict else 'list'}")
        return value

    return read


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def _given(default: Any, place: str) -> Any:
    if default is _REQUIRED:
        raise MalformedRequest(f"{place}: Field required")
    return default
