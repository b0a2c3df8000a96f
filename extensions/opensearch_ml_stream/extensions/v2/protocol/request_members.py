"""Read members of a V2 request's JSON. Errors are in pydantic's words, which clients of MLServer expect.

A member that is null is absent: clients write omitted members as null.
"""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidBody

MAX_NAME = 512  # characters of names and ids, which every response repeats

Location = tuple[str | int, ...]
"""The location of a value in a body: the names and indices that lead to it."""


def invalid(where: Location, kind: str, message: str) -> InvalidBody:
    """Return the error for the value at a location of the body, without the value itself."""
    path = ".".join(map(str, where))
    detail = {"type": kind, "loc": ["body", *where], "msg": message}
    return InvalidBody(f"{path}: {message}" if path else message, [detail])


def required(members: Mapping[str, Any], name: str, where: Location) -> Any:
    """Return a member; InvalidBody without it."""
    value = members.get(name)
    if value is None:
        raise invalid((*where, name), "missing", "Field required")
    return value


def as_object(value: Any, where: Location) -> Mapping[str, Any]:
    """Return an object without its members that are null."""
    if not isinstance(value, dict):
        raise invalid(where, "dict_type", "Input should be a valid dictionary")
    return {name: member for name, member in value.items() if member is not None} if None in value.values() else value


def as_list(value: Any, where: Location) -> list[Any]:
    """Return an array."""
    if not isinstance(value, list):
        raise invalid(where, "list_type", "Input should be a valid list")
    return value


def as_name(value: Any, where: Location) -> str:
    """Return a string of at most MAX_NAME characters."""
    if not isinstance(value, str):
        raise invalid(where, "string_type", "Input should be a valid string")
    if len(value) > MAX_NAME:
        raise invalid(where, "string_too_long", f"String should have at most {MAX_NAME} characters")
    return value


def optional_name(members: Mapping[str, Any], name: str, where: Location) -> str:
    """Return a member that is a string, "" without it."""
    value = members.get(name)
    return "" if value is None else as_name(value, (*where, name))


def optional_object(members: Mapping[str, Any], name: str, where: Location) -> Mapping[str, Any]:
    """Return a member that is an object, an empty one without it."""
    value = members.get(name)
    return {} if value is None else as_object(value, (*where, name))
