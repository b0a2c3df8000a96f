"""The application of a model's custom handlers: MLServer's own where MLServer is installed, else a plain one."""

import inspect
from importlib import import_module
from typing import Any, NamedTuple

from opensearch_ml_stream.runtimes.host.failures import FailureLog, type_of
from opensearch_ml_stream.runtimes.host.in_process import Application
from opensearch_ml_stream.runtimes.host.plain_application import Handler, PlainApplication
from opensearch_ml_stream.runtimes.interface.alias import install_mlserver_alias

_MARK = "__custom_handler__"  # what the decorator sets, as MLServer's does


class CustomHandlers(NamedTuple):
    """The application, and the handlers that it serves, as the `ready` event names them."""

    application: Application
    described: list[dict[str, str]]


def custom_handlers(model: Any, log: FailureLog) -> CustomHandlers:
    """Make the application of a model's handlers; the log says of each that cannot be served why it cannot."""
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
    """Make MLServer's application without its own routes and its handling of errors, which are told as others are."""
    responses, routes = import_module("mlserver.rest.responses"), import_module("mlserver.rest.app")
    application: Any = import_module("fastapi").FastAPI(
        docs_url=None, redoc_url=None, openapi_url=None, default_response_class=responses.Response
    )
    application.router.route_class = routes.APIRoute

    def add(handler: Handler) -> None:
        application.add_api_route(handler.path, handler.call, methods=[handler.method])

    return application, add
