"""Decode the stream of a runtime: whole inference responses in JSON, each followed by a NUL.

The responses are passed on. The ending is in the last of them: `finish_reason` and `usage` in its parameters, if the
model writes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, ResponseRun
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import MAX_EVENT_VALUES, Outcome, has_too_many_values
from opensearch_ml_stream.connectors.decoding.event_fields import mapping
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason, native_finish_reason
from opensearch_ml_stream.connectors.errors import StreamTruncated, UpstreamError
from opensearch_ml_stream.connectors.provider_errors import read_error
from opensearch_ml_stream.connectors.response_usage import read_usage
from opensearch_ml_stream.connectors.stream_spec import Enable
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.runtimes.frames import MAX_PAYLOAD

# Of one response, which may be a tensor: numbers, of 32 bytes of memory each, or 80,000 arrays and objects, as many as
# an event may have.
MAX_VALUES = 6_000_000
CONTAINER = 75

_SEPARATOR = ResponseRun.SEPARATOR
_NOTHING: list[Chunk] = []


class RuntimeDecoder:
    """Decoder of one stream of a runtime, with the contract of `decoding.decoder`.

    A malformed response ends the stream with an error, since the runtime's own process writes them.
    """

    __slots__ = ("_last", "_parts", "_size", "chunk_count", "is_ending", "outcome")

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of a response that has not ended yet
        self._size = 0
        self._last: Mapping[str, Any] = {}
        self.chunk_count = 0
        self.is_ending = False
        self.outcome: Outcome | None = None

    def feed(self, data: bytes) -> Chunks:
        """Return the responses that end within `data`, which may be cut anywhere."""
        if self.outcome is not None:
            return _NOTHING
        end = data.rfind(_SEPARATOR)
        if end < 0:
            self._hold(data)
            return _NOTHING
        whole, rest = data[:end], data[end + 1 :]
        if self._parts:
            whole = b"".join([*self._parts, whole])
            self._parts.clear()
            self._size = 0
        chunks = self._read(whole)
        if rest and self.outcome is None:
            self._hold(rest)
        return chunks

    def close(self) -> Chunks:
        """Set the outcome, once the body has ended."""
        if self.outcome is None:
            cut = StreamTruncated("The runtime's stream ended within a response; the response is incomplete")
            self._end(cut if self._size else _ending(self._last))
        return _NOTHING

    def _hold(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        if self._size > MAX_PAYLOAD:
            self._parts.clear()
            self._end(UpstreamError(f"The runtime sent a response of more than {MAX_PAYLOAD} bytes"))

    def _read(self, data: bytes) -> Chunks:
        """Return the responses in these bytes, up to the first that is an error or malformed."""
        if _SEPARATOR not in data:
            if (outcome := self._look_at(data)) is not None:
                self._end(outcome)
                return _NOTHING
            self.chunk_count += 1
            return ResponseRun(data)
        responses = data.split(_SEPARATOR)
        for place, response in enumerate(responses):
            if (outcome := self._look_at(response)) is not None:
                self._end(outcome)
                self.chunk_count += place
                return ResponseRun(_SEPARATOR.join(responses[:place])) if place else _NOTHING
        self.chunk_count += len(responses)
        return ResponseRun(data)

    def _look_at(self, response: bytes) -> UpstreamError | None:
        """Check and remember a response; return its error, None if it can be passed on."""
        if len(response) > MAX_PAYLOAD:
            return UpstreamError(f"The runtime sent a response of more than {MAX_PAYLOAD} bytes")
        if len(response) > MAX_EVENT_VALUES and has_too_many_values(response, MAX_VALUES, CONTAINER):
            return UpstreamError(
                f"The runtime sent a response of more than {MAX_VALUES} values, of which an array or object counts as "
                f"{CONTAINER}"
            )
        try:
            value: Any = orjson.loads(response)
            if len(response) > 2 * jsontext.MAX_DEPTH:
                _check_depth(response, value)
        except (ValueError, RecursionError):
            return UpstreamError("The runtime sent a response that is not JSON, or is nested too deeply")
        if not isinstance(value, dict):
            return UpstreamError("The runtime sent a response that is not a JSON object")
        if value.get("error"):
            return read_error(value["error"])
        outputs = value.get("outputs")
        if not isinstance(outputs, list) or not all(isinstance(output, dict) for output in outputs):
            return UpstreamError("The runtime sent a response without an array of outputs")
        self._last = value
        return None

    def _end(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.is_ending = True


@dataclass(frozen=True, slots=True)
class RuntimeStream:
    """How runtimes stream: by another method, so the request is not changed."""

    name: str = "runtime"
    enable: Enable = field(default_factory=Enable)

    def decoder(self) -> RuntimeDecoder:
        """Return a new decoder for one stream."""
        return RuntimeDecoder()


RUNTIME_STREAM = RuntimeStream()


def _check_depth(response: bytes, value: Any) -> None:
    if response.count(b"[") + response.count(b"{") > jsontext.MAX_DEPTH:
        jsontext.check_depth(value)


def _ending(last: Mapping[str, Any]) -> Ending:
    """Return the ending in the last response."""
    parameters = mapping(last.get("parameters"))
    native = native_finish_reason(parameters.get("finish_reason"))
    usage = read_usage(parameters) if "usage" in parameters else None
    model = event_fields.name(last.get("model_name"))
    return Ending(finish_reason(native), native, usage if usage and usage.as_dict() else None, model)
