"""What goes to a custom handler and comes back, as messages of frames."""

from typing import Any

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.extensions.runtimes.http.custom_handlers import HandlerRequest, HandlerResponse
from opensearch_ml_stream.runtimes.frames import MalformedFrame, pack_message, unpack_message

MAX_HEAD_BYTES = 64 * 1024  # of a response; its body has a limit of its own
_WITHOUT_BODY = (204, 304)


def request_message(request: HandlerRequest) -> bytes:
    """Return the message of a request."""
    head = {"method": request.method, "path": request.path, "query": request.query, "headers": request.headers}
    return pack_message(head, request.body)


def read_response(model: str, message: bytes) -> HandlerResponse:
    """Read the message of a response; UpstreamError for what is none."""
    try:
        head, body = unpack_message(message)
        status: Any = head["status"]
        headers = [(str(name), str(value)) for name, value in head["headers"]]
        if not isinstance(status, int) or not 200 <= status <= 599:
            raise ValueError("no status of a response")
    except (MalformedFrame, LookupError, TypeError, ValueError) as error:
        raise UpstreamError(f"A custom handler of model {model} responded with what is no response: {error}") from None
    return HandlerResponse(status, headers, b"" if status in _WITHOUT_BODY else body)
