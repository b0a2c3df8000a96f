"""Headers of V2: request headers that a model may read, and headers of responses.

As in MLServer, request headers go into the request's `parameters.headers`, and responses are CloudEvents
(`mlserver/cloudevents.py`), in KServe's form (`kserve/utils/utils.py`) for requests that are CloudEvents themselves.
"""

import re
from collections.abc import Container, Iterable
from datetime import UTC, datetime
from urllib.parse import quote

from starlette.types import Scope

from opensearch_ml_stream.extensions.v2.protocol.local_responses import LocalResponse
from opensearch_ml_stream.extensions.v2.protocol.messages import InferenceResponse, ResponseShape
from opensearch_ml_stream.rest_handlers.http.host_and_origin import Headers

SERVER_NAME = "opensearch-ml-stream"
EXTENSIONS = ("binary_tensor_data", "generate", "model_repository")  # of the protocol, by Triton's names

# Credentials, and who calls through which proxies: neither the model nor its provider gets these.
_WITHHELD = re.compile(
    rb"auth|cookie|key|token|secret|passw|credential|session|signature|cert|jwt|csrf|xsrf"
    rb"|proxy|forward|via|remote|real-?ip|client-?ip|tenant|roles"
)
# One word after `x-`: headers that control proxies and browsers have several (x-accel-redirect), except for two.
_ECHOED = re.compile(rb"x-(?!sendfile|sourcemap)[a-z0-9]{1,32}")
_ECHOED_VALUE = re.compile(rb"[ -~]{1,256}")
_MAX_ECHOED = 8
# Headers that a runtime may not set, since the server sets them: on connection, body, users and browsers.
_OF_THE_SERVER = re.compile(
    r"(?:content-|access-control-|sec-|proxy-|grpc-|ce-|x-accel-).*|.*-bin|connection|keep-alive|transfer-encoding"
    r"|trailer|te|upgrade|date|server|set-cookie|strict-transport-security|x-content-type-options|x-frame-options"
)
_OF_THE_BODY = ("content-type", "content-disposition", "content-encoding", "content-language")
_OWN_NAME = re.compile(r"[a-z0-9._-]{1,128}")
_OWN_VALUE = re.compile(r"[ -~]{0,4096}")
_MAX_OWN = 64

_MLSERVER_EVENT: Headers = (
    (b"ce-specversion", b"0.3"),
    (b"ce-source", f"io.seldon.serving.deployment.{SERVER_NAME}".encode()),
    (b"ce-type", b"io.seldon.serving.inference.response"),
    (b"ce-inferenceservicename", SERVER_NAME.encode()),
)
_KSERVE_EVENT: Headers = ((b"ce-specversion", b"1.0"), (b"ce-type", b"io.kserve.inference.response"))


def readable_headers(scope: Scope) -> dict[str, str]:
    """Return the request headers that a model may read, their names in lower case; no credentials are among them."""
    return dict(readable_header_list(scope))


def readable_header_list(scope: Scope) -> list[tuple[str, str]]:
    """Return the same headers, with repeated ones."""
    headers = scope["headers"]
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers if not _WITHHELD.search(name)]


def response_headers(scope: Scope, shape: ResponseShape, own: Headers = ()) -> Headers:
    """Return the headers of a response to an inference: a CloudEvent's, and the runtime's `own`.

    Plain custom headers of the request are echoed, unless the runtime sets them itself.
    """
    own_names = {name for name, _ in own}
    echoed: dict[bytes, bytes] = {}
    is_event = False
    for name, value in scope["headers"]:
        if name.startswith(b"x-"):
            if name not in own_names and _is_echoed(name, value):
                echoed[name] = value
        elif name == b"ce-specversion":
            is_event = value.startswith(b"1.")
    model, event_id = _attribute(shape.model_name), _attribute(shape.id)
    event = _kserve_event(model, event_id) if is_event else _mlserver_event(model, event_id)
    return (*event, *list(echoed.items())[:_MAX_ECHOED], *own)


def _is_echoed(name: bytes, value: bytes) -> bool:
    if not _ECHOED.fullmatch(name) or _WITHHELD.search(name):
        return False
    return _ECHOED_VALUE.fullmatch(value) is not None


def own_headers(response: InferenceResponse | LocalResponse) -> Headers:
    """Return the headers that a runtime has written into its response's `parameters.headers`, which MLServer sends."""
    if not isinstance(response, LocalResponse):
        return ()
    return _allowed(response.headers.items())


def handler_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """Return the headers that a custom handler may set, which may describe its body, too."""
    return _allowed(headers, _OF_THE_BODY)


def _allowed(headers: Iterable[tuple[str, str]], names: Container[str] = ()) -> Headers:
    """Return the headers, in lower case, that a runtime may set, and those of these names."""
    return tuple(
        (name.lower().encode(), value.encode())
        for name, value in list(headers)[:_MAX_OWN]
        if (name.lower() in names or _is_own(name.lower())) and _OWN_VALUE.fullmatch(value)
    )


def _is_own(name: str) -> bool:
    return _OWN_NAME.fullmatch(name) is not None and not _OF_THE_SERVER.fullmatch(name)


def _mlserver_event(model: bytes, event_id: bytes) -> Headers:
    return (
        *_MLSERVER_EVENT,
        (b"ce-modelid", model),
        (b"ce-endpoint", model),
        (b"ce-id", event_id),
        (b"ce-requestid", event_id),
    )


def _kserve_event(model: bytes, event_id: bytes) -> Headers:
    time = datetime.now(UTC).isoformat().encode()
    source = b"io.kserve.inference." + model
    return (*_KSERVE_EVENT, (b"ce-source", source), (b"ce-id", event_id), (b"ce-time", time))


def _attribute(value: str) -> bytes:
    """Encode an attribute as the HTTP binding of CloudEvents 1.0 does (section 3.1.3.2)."""
    return quote(value, safe="!#$&'()*+,/:;<=>?@[\\]^`{|}").encode()
