"""Diagnose a 2xx response that is not the expected stream.

Servers that do not know `stream` send one JSON object; some gateways send their errors like this, under status 200.
"""

from typing import Any

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.provider_errors import error_in, named_error_without_result
from opensearch_ml_stream.connectors.syntax import provider_json

MAX_NON_STREAM_BYTES = 64 * 1024  # of a body without chunks; more of it is not needed

_AWS_JSON = "application/x-amz-json"
_NON_STREAM_TYPES = ("application/json", "text/html", "application/xml", "text/xml")


def non_stream_response(body: bytes, content_type: str) -> UpstreamError | None:
    """Return the provider's own error if the body holds one, else an error that names the content type.

    None if the response may be the stream all the same. `body` is what came before the first chunk, `content_type` the
    response's header. The provider's text is not redacted.
    """
    try:
        value: Any = provider_json.loads(body)
    except ValueError:
        value = None
    error = error_in(value) or named_error_without_result(value)
    if error is not None:
        return error
    media_type = _media_type(content_type)
    if media_type not in _NON_STREAM_TYPES:
        return None
    return UpstreamError(
        f"The provider responded with {media_type} instead of the stream that its connector announces. Check that the "
        "server and the model can stream, and what the connector's `_llm_interface` or `_stream` says about them"
    )


def is_json(content_type: str) -> bool:
    """Return whether a content type is JSON's, so that the body may be one whole response."""
    media_type = _media_type(content_type)
    return media_type == "application/json" or media_type.endswith("+json") or media_type.startswith(_AWS_JSON)


def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()
