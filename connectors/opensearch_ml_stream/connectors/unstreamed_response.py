"""Responses to a stream request that are not the expected stream, under a good status.

Servers that do not know `stream`, gateways and caches send one JSON object. A whole response was paid for, so it is
delivered as a stream of one chunk: it is written as the events in which its provider would have streamed it, and these
are decoded as any stream is. Anything else is diagnosed: some gateways send their errors like this, too.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.conversation.answer import as_one
from opensearch_ml_stream.connectors.decoding.contract import EventReader, Finishing, Outcome
from opensearch_ml_stream.connectors.decoding.finish_reasons import after_calls, after_refusal
from opensearch_ml_stream.connectors.errors import StreamTruncated, UpstreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.known_providers import SHIPPED, KnownProviders
from opensearch_ml_stream.connectors.provider import JSONObject
from opensearch_ml_stream.connectors.provider_errors import error_in, named_error_without_result
from opensearch_ml_stream.connectors.providers.detected_dialect import DetectedDialect
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


def read_whole_response(body: bytes, known: KnownProviders = SHIPPED) -> tuple[Chunk, Ending] | None:
    """Return the one chunk and the ending of a whole response, None if it is not one of a known shape."""
    try:
        value: Any = provider_json.loads(body)
    except ValueError:
        return None
    value = value[0] if isinstance(value, list) and len(value) == 1 else value
    return decode_whole_response(value, known) if isinstance(value, dict) else None


def decode_whole_response(
    value: JSONObject, known: KnownProviders = SHIPPED, *, may_be_empty: bool = False
) -> tuple[Chunk, Ending] | None:
    """Return what `read_whole_response` does, of a response that was parsed.

    One that says nothing is none, unless it `may_be_empty`, as where reasoning has taken all of the tokens allowed.
    """
    try:
        for whole, reader in known.whole_responses:
            if whole.is_of(value):
                return _decode(whole.to_events(value), reader(), may_be_empty=may_be_empty)
        return _decode([value], DetectedDialect())
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None


def _decode(
    events: Iterable[JSONObject], reader: EventReader, *, may_be_empty: bool = False
) -> tuple[Chunk, Ending] | None:
    """Decode the events of a response. Raises as `EventReader.read` for an event of another shape."""
    chunks: list[Chunk] = []
    outcome: Outcome | Finishing | None = None
    for event in events:
        outcome = reader.read(Event.of(event), chunks)
    if outcome is None or isinstance(outcome, Finishing):
        outcome = reader.end_of_input()
    may_be_empty = may_be_empty and not isinstance(outcome, StreamTruncated)  # without a reason, it is no answer
    if isinstance(outcome, StreamTruncated):  # some leave the finish reason out; a JSON object cannot be cut off
        outcome = Ending()
    if not (chunks or may_be_empty) or not isinstance(outcome, Ending):
        return None
    answer = as_one(chunks)
    reason = after_calls(outcome.finish_reason) if answer.tool_calls else outcome.finish_reason
    return answer, replace(outcome, finish_reason=after_refusal(reason) if answer.refusal else reason)
