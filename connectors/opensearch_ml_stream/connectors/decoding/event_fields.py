"""Fields of a provider's events, whose types nobody guarantees: read here, so that nothing odd gets further.

A wrong type where the answer would suffer is a TypeError, which the decoder counts as a malformed event; where only
a detail would (a token count, a model's name) it is None.
"""

from typing import Any

import orjson

from opensearch_ml_stream.connectors.errors import UpstreamError


def text(value: Any) -> str:
    """A piece of text, "" where there is none."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    raise TypeError("not a text")


def count(value: Any) -> int | None:
    """A number of tokens."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def name(value: Any) -> str | None:
    """A model's name, a tool call's id, a finish reason."""
    return value if isinstance(value, str) and value else None


def mapping(value: Any) -> dict[str, Any]:
    """An object, empty where there is none."""
    return value if isinstance(value, dict) else {}


def arguments(value: Any) -> str:
    """A tool call's arguments as JSON text, whether they came as text or as an object."""
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value).decode()


def remote_error(message: object, status: object = None) -> UpstreamError:
    """The provider said that it failed; `status` counts if it is an HTTP error status."""
    code = status if isinstance(status, int) and 400 <= status < 600 else None
    said = message if isinstance(message, str) else orjson.dumps(message).decode()
    return UpstreamError(f"Error from remote service: {said}", provider_status=code)
