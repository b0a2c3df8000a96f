"""A provider that was asked for a stream and answered with something else, under a good status.

Servers that know no `stream` send one JSON object; some gateways send their errors so, with 200.
"""

from typing import Any

import orjson

from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.providers.openai.chat import read_error

MAX_NON_STREAM_BYTES = 64 * 1024  # of a body in which no chunk was found; more of it says no more

_OTHER_KINDS = ("application/json", "text/html", "application/xml", "text/xml")


def non_stream_response(body: bytes, content_type: str) -> UpstreamError | None:
    """The provider's own error if the body is one, else what came instead; None if it may have been the stream.

    `body` is what came before the first chunk, `content_type` the header. The text is the provider's, not redacted.
    """
    error = _error(body)
    if error is not None:
        return error
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in _OTHER_KINDS:
        return None
    return UpstreamError(
        f"The provider answered {kind} instead of the stream that its connector announces. Check that the server and "
        "the model can stream, and what the connector's `_llm_interface` or `_stream` says about them"
    )


def _error(body: bytes) -> UpstreamError | None:
    """Of one JSON object, or of an array with one, as Gemini sends it."""
    try:
        value: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict) or not (value.get("error") or value.get("object") == "error"):
        return None
    return read_error(value)
