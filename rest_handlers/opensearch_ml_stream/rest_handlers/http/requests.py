"""Reading of requests: body, headers, query parameters, and the format in which a stream is wanted."""

import re
import zlib
from collections.abc import Mapping, Set
from difflib import get_close_matches
from urllib.parse import parse_qs

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope

from opensearch_ml_stream.connectors.errors import BodyTooLarge, InvalidRequest, NotAcceptable
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.syntax.filter_path import check_patterns
from opensearch_ml_stream.connectors.wire_format import NDJSON, SSE, WireFormat
from opensearch_ml_stream.rest_handlers.http import yaml_text
from opensearch_ml_stream.rest_handlers.http.body_memory import BodyReservation

_JSON_TYPES = ("application/json", "application/x-ndjson")
LLM_INTERFACE = "_llm_interface"
FORMATS: Mapping[str, WireFormat] = {"sse": SSE, "json": NDJSON, "ndjson": NDJSON}
_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_GZIP = 16 + zlib.MAX_WBITS  # zlib's way to say gzip
# What a body may become: to decompress it takes some 1 ms for each MiB, and all that walks JSON 10.
_DECOMPRESSED_FREELY = 16 * 1024 * 1024  # bytes, however few were sent
_PARSED_FREELY = 4 * 1024 * 1024  # of JSON that the event loop's thread parses: 50 ms
_DECOMPRESSED_RATIO = 10
_DECOMPRESSED_STEP = 256 * 1024  # bytes, so that a small body cannot take much memory before it is counted

COMMON_FLAGS = frozenset({"pretty", "human", "error_trace"})
_COMMON_PARAMETERS = COMMON_FLAGS | {"filter_path", "format", "source", "source_content_type"}


async def read_body(scope: Scope, receive: Receive, reservation: BodyReservation, *, is_of_parts: bool = True) -> bytes:
    """Return the whole body, in however many pieces it comes, and decompressed if it is gzip.

    Its size is reserved as it arrives; the caller releases the reservation when the body is let go.
    BodyTooLarge beyond the limit of one body, before or after decompression; Throttled beyond that of all together;
    ClientDisconnect if the client disconnects before the end; InvalidRequest if the body cannot be decompressed, or
    becomes too much for what was sent: in bytes, and in parts if it `is_of_parts`, JSON that this thread parses.
    """
    body = await _read_pieces(scope, receive, reservation)
    return decoded(body, content_coding(scope), reservation, is_of_parts=is_of_parts) if body else body


def content_coding(scope: Scope) -> str:
    """Return the coding of the body, "" for none."""
    coding = header(scope, b"content-encoding").strip().lower()
    return "" if coding == "identity" else coding


def whole_body(body: bytes, coding: str, reservation: BodyReservation) -> bytes:
    """Return a body that has come whole, and is reserved, as `read_body` does one that comes in pieces."""
    if len(body) > reservation.max_body_size:
        raise too_large(reservation.max_body_size)
    return decoded(body, coding, reservation) if body else body


def decoded(body: bytes, coding: str, reservation: BodyReservation, *, is_of_parts: bool = True) -> bytes:
    """Return a body without its coding; errors as of `read_body`."""
    if not coding:
        return body
    if coding != "gzip":
        raise InvalidRequest(f"Content-Encoding [{coding}] is not supported; use gzip, or send the body as it is")
    plain = _decompressed(body, reservation, _PARSED_FREELY if is_of_parts else _DECOMPRESSED_FREELY)
    if is_of_parts:
        jsontext.check_compressed(plain, len(body))
    return plain


async def _read_pieces(scope: Scope, receive: Receive, reservation: BodyReservation) -> bytes:
    limit = reservation.max_body_size
    content_length = header(scope, b"content-length")
    if content_length.isascii() and content_length.isdigit() and int(content_length) > limit:
        raise too_large(limit)
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part: bytes = message.get("body", b"")
        if len(body) + len(part) > limit:
            raise too_large(limit)
        reservation.add(len(part))
        more_body = message.get("more_body", False)
        if not body and not more_body:
            return part
        body += part
        if not more_body:
            return bytes(body)


def _decompressed(body: bytes, reservation: BodyReservation, freely: int) -> bytes:
    decompressor = zlib.decompressobj(_GZIP)
    parts: list[bytes] = []
    limit = min(reservation.max_body_size, max(freely, _DECOMPRESSED_RATIO * len(body)))
    left = limit
    compressed = body
    try:
        while part := decompressor.decompress(compressed, min(left + 1, _DECOMPRESSED_STEP)):
            left -= len(part)
            if left < 0 and limit == reservation.max_body_size:
                raise too_large(limit)
            if left < 0:
                raise BodyTooLarge(
                    f"A compressed body of {len(body)} bytes may become {limit}; send it without Content-Encoding",
                    type="content_too_long_exception",
                )
            reservation.add(len(part))
            parts.append(part)
            compressed = decompressor.unconsumed_tail
    except zlib.error:
        raise InvalidRequest("The request body is not gzip, as its Content-Encoding says it is") from None
    if not decompressor.eof or decompressor.unused_data:
        raise InvalidRequest("The request body is not one whole gzip stream; is it cut off?")
    return b"".join(parts)


def json_body(scope: Scope, body: bytes) -> bytes:
    """Return a body as JSON. NotAcceptable if its content type is neither JSON nor YAML, as in OpenSearch.

    This also keeps web pages out: what a browser sends to a foreign server without a CORS preflight is never JSON or
    YAML by its content type.
    """
    content_type = header(scope, b"content-type")
    if is_json(content_type):
        return body
    if not is_yaml(content_type):
        raise NotAcceptable(f"Content-Type header [{content_type}] is not supported")
    return yaml_text.to_json(body) if body else body


def is_json(content_type: str) -> bool:
    """Whether a content type is JSON: `application/json`, `application/x-ndjson`, `application/...+json` (RFC 6839)."""
    kind = _media_type(content_type)
    return kind in _JSON_TYPES or (kind.startswith("application/") and kind.endswith("+json"))


def is_yaml(content_type: str) -> bool:
    """Whether a content type is YAML."""
    return _media_type(content_type) == yaml_text.CONTENT_TYPE


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


def read_flag(value: str) -> bool:
    """Return True for `true` and for no value, False for `false`; InvalidRequest for anything else."""
    if value not in ("", "true", "false"):
        raise InvalidRequest(f"Failed to parse value [{value}] as only [true] or [false] are allowed.")
    return value != "false"


def check_query(scope: Scope, query_parameters: Mapping[str, str], accepted: Set[str] = frozenset()) -> None:
    """Raise InvalidRequest for a parameter that is neither one of all routes nor `accepted`, and for a bad value."""
    unknown = [name for name in query_parameters if name not in _COMMON_PARAMETERS and name not in accepted]
    if unknown:
        label = "parameter" if len(unknown) == 1 else "parameters"
        names = ", ".join(f"[{name}]{_nearest(name, _COMMON_PARAMETERS | accepted)}" for name in sorted(unknown))
        raise InvalidRequest(f"request [{scope['path']}] contains unrecognized {label}: {names}")
    for name in COMMON_FLAGS & query_parameters.keys():
        read_flag(query_parameters[name])
    if "format" not in accepted and query_parameters.get("format", "json") not in ("json", "yaml"):
        raise InvalidRequest(f"Unknown format [{query_parameters['format']}]; use json or yaml")
    if patterns := query_parameters.get("filter_path"):
        check_patterns(patterns.split(","))


def _nearest(name: str, known: Set[str]) -> str:
    nearest = get_close_matches(name, known, 1)
    return f" -> did you mean [{nearest[0]}]?" if nearest else ""


def header(scope: Scope, name: bytes) -> str:
    """Return the first header of that (lower-case) name, or ""."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return ""


def foreign_id(scope: Scope) -> str:
    """Return the `X-Request-Id` that a client or proxy sent, if it is short and plain; else ""."""
    return next(
        (plain for name, value in scope["headers"] if name == b"x-request-id" and (plain := plain_id(value))), ""
    )


def plain_id(value: bytes) -> str:
    """Return the value of an `X-Request-Id` if it is short and plain; else ""."""
    return value.decode() if _ID.fullmatch(value) else ""


def query(scope: Scope) -> dict[str, str]:
    """Return the query's parameters, the last of each name; one without a value is ""."""
    text = scope["query_string"].decode("latin-1")
    return {name: values[-1] for name, values in parse_qs(text, keep_blank_values=True).items()} if text else {}


def wire_format(
    scope: Scope, query_parameters: Mapping[str, str], model_parameters: Mapping[str, str]
) -> WireFormat | None:
    """Return the format of a streamed response, or None for one merged object.

    `?format=` comes before `?stream=false`, that before `Accept`, and that before `_llm_interface` among the
    parameters of the model (clients of ML Commons 3.3+ always send it, and read server-sent events).
    """
    format_name = query_parameters.get("format")
    if format_name is not None:
        return _named_format(format_name)
    if query_parameters.get("stream") == "false":
        return None
    accept = header(scope, b"accept").lower()
    if "text/event-stream" in accept:
        return SSE
    if "application/x-ndjson" in accept:
        return NDJSON
    if accept and all(kind.partition(";")[0].strip() == "application/json" for kind in accept.split(",")):
        return None
    return SSE if LLM_INTERFACE in model_parameters else NDJSON


def _named_format(name: str) -> WireFormat:
    if name not in FORMATS:
        raise InvalidRequest(f"Unknown format [{name}]; use sse or json")
    return FORMATS[name]


def too_large(limit: int) -> BodyTooLarge:
    """Return the refusal of a body that is larger than the limit of one."""
    return BodyTooLarge(
        f"The request body is larger than {limit} bytes (setting opensearch_ml_stream.max_body_size)",
        type="content_too_long_exception",
    )
