"""Read parts of a search body for the embedded store; errors name what is malformed or not supported."""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest

_NAMED = 5  # of names that are too many


def single(value: object, what: str) -> tuple[str, Any]:
    """Return the only name in an object, and its value."""
    members = object_of(value, what)
    if len(members) != 1:
        names = f": {', '.join(list(members)[:_NAMED])}" if members else ""
        raise InvalidRequest(f"[{what}] must name exactly one thing, not {len(members)}{names}")
    return next(iter(members.items()))


def options_of(value: object, what: str, supported: tuple[str, ...]) -> Mapping[str, Any]:
    """Return an object that has none but the supported members."""
    members = object_of(value, what)
    for name in members:
        if name not in supported:
            raise InvalidRequest(unsupported(f"[{name}] in [{what}]", supported))
    return members


def object_of(value: object, what: str) -> Mapping[str, Any]:
    """Return a value that must be an object."""
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"[{what}] must be an object")
    return value


def list_of(value: object) -> list[Any]:
    """Return an array as it is, any other value as the only one of an array."""
    return value if isinstance(value, list) else [value]


def count_of(body: Mapping[str, Any], name: str, default: int) -> int:
    """Return a member that must be an integer of at least 0, the default if it is absent."""
    value = body.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidRequest(f"[{name}] must be an integer of at least 0")
    return value


def flag_of(body: Mapping[str, Any], name: str) -> bool:
    """Return a member that must be true or false, also in a string; false if it is absent."""
    value = str(body.get(name, False)).lower()
    if value not in ("true", "false"):
        raise InvalidRequest(f"Failed to parse value [{body[name]}] as only [true] or [false] are allowed.")
    return value == "true"


def unsupported(what: str, supported: tuple[str, ...]) -> str:
    """Return the reason of an error for something that the embedded store does not know."""
    return f"{what} is not supported by the embedded store; it knows {', '.join(supported)}"
