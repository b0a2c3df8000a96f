"""What a request says, whatever route it goes to: its body, and which answer its sender wants to `_predict/stream`."""

from collections.abc import Mapping
from urllib.parse import parse_qs

from starlette.types import Receive, Scope

from opensearch_ml_stream.connectors.errors import BodyTooLarge, InvalidRequest
from opensearch_ml_stream.connectors.inference import NDJSON, SSE, WireFormat

LLM_INTERFACE = "_llm_interface"


class ClientLeft(Exception):
    """The client closed its connection before the whole request had come."""


async def read_body(scope: Scope, receive: Receive, limit: int) -> bytes:
    """The whole body, in however many pieces it comes; BodyTooLarge beyond `limit` bytes, ClientLeft if cut."""
    announced = header(scope, b"content-length")
    if announced.isdigit() and int(announced) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def header(scope: Scope, name: bytes) -> str:
    """The first header of that (lower-case) name, or ""."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return ""


def query(scope: Scope) -> dict[str, str]:
    """The query's parameters, the last of each name; one without a value is ""."""
    text = scope["query_string"].decode("latin-1")
    return {name: values[-1] for name, values in parse_qs(text, keep_blank_values=True).items()} if text else {}


def wire_format(scope: Scope, asked: Mapping[str, str], parameters: Mapping[str, str]) -> WireFormat | None:
    """The format of a streamed answer, or None for one merged object.

    `?format=` beats the rest, then `?stream=false`, then `Accept`, then `_llm_interface` among the parameters
    (clients of ML Commons 3.3+ always send it, and read server-sent events).
    """
    named = asked.get("format")
    if named is not None:
        return _named_format(named)
    if asked.get("stream") == "false":
        return None
    accept = header(scope, b"accept").lower()
    if "text/event-stream" in accept:
        return SSE
    if "application/x-ndjson" in accept:
        return NDJSON
    if accept and all(kind.partition(";")[0].strip() == "application/json" for kind in accept.split(",")):
        return None
    return SSE if LLM_INTERFACE in parameters else NDJSON


def _named_format(name: str) -> WireFormat:
    formats: dict[str, WireFormat] = {"sse": SSE, "json": NDJSON, "ndjson": NDJSON}
    if name not in formats:
        raise InvalidRequest(f"Unknown format [{name}]; use sse or json")
    return formats[name]


def _too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"The request body is larger than {limit} bytes (setting opensearch_ml_stream.max_body_size)",
        type="content_too_long_exception",
    )
