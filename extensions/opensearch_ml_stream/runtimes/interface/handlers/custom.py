"""Custom handlers: methods of a model that are routes of their own."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from opensearch_ml_stream.runtimes.interface.types.base import BaseModel

_ATTRIBUTE = "__custom_handler__"
Method = TypeVar("Method", bound=Callable[..., Any])


class CustomHandler(BaseModel):
    """The route of a method."""

    rest_path: str
    rest_method: str = "POST"


def custom_handler(rest_path: str, rest_method: str = "POST") -> Callable[[Method], Method]:
    """Make a method of a model a route."""

    def mark(method: Method) -> Method:
        register_custom_handler(CustomHandler(rest_path=rest_path, rest_method=rest_method), method)
        return method

    return mark


def register_custom_handler(handler: CustomHandler, method: Callable[..., Any]) -> None:
    """Note the route of a method."""
    setattr(method, _ATTRIBUTE, handler)


def get_custom_handlers(model: Any) -> list[tuple[CustomHandler, Callable[..., Any]]]:
    """List a model's routes, each with its method."""
    members = (member for _, member in inspect.getmembers(model))
    return [(getattr(member, _ATTRIBUTE), member) for member in members if hasattr(member, _ATTRIBUTE)]
