"""Request parsing for both of the demo provider's APIs: a JSON body, and the user's last message in it."""

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.requests import Request


class Refused(Exception):
    """An invalid request, for a response with status 400; `parameter` names the wrong field, if it is known."""

    def __init__(self, reason: str, parameter: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.parameter = parameter


async def read_object(request: Request) -> dict[str, Any]:
    """Return the request's body, a JSON object; Refused if it is not one."""
    try:
        body = orjson.loads(await request.body())
    except orjson.JSONDecodeError:
        raise Refused("We could not parse the JSON body of your request.") from None
    if not isinstance(body, dict):
        raise Refused("The body of your request is not a JSON object.")
    return body


def object_of(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a field that must be an object, empty if it is absent or null; Refused if it is another value."""
    value = body.get(name)
    if value is not None and not isinstance(value, dict):
        raise Refused(f"{name}: Input should be an object", name)
    return value or {}


def token_limit(body: Mapping[str, Any], *names: str) -> int | None:
    """Return the first of the fields that is there; Refused if it is no integer of at least 1."""
    for name in names:
        limit = body.get(name)
        if limit is None:
            continue
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise Refused(f"{name}: Input should be an integer of at least 1", name)
        return limit
    return None


def last_question(body: Mapping[str, Any]) -> str:
    """Return the text of the user's last message, whose content is a string or a list of parts.

    Empty if no message is the user's; Refused if the messages are missing or malformed.
    """
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused("messages: a list of at least one message is required", "messages")
    for message in reversed(messages):
        if not isinstance(message, dict) or "content" not in message:
            raise Refused("messages: each needs a role and a content", "messages")
        if message.get("role") == "user":
            return _text(message["content"])
    return ""


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise Refused("messages: content must be a string or a list of parts", "messages")
    return " ".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
