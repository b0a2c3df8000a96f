"""Wire formats of streams: encode chunks, endings and errors. Those of `_predict/stream` are NDJSON and SSE.

NDJSON (RFC opensearch-project/ml-commons#3630): one JSON object per line, text under `response`, with `status_code`.
SSE (ML Commons 3.3+): `data: {...}` and a blank line, text under `content`, with `is_last`.
The keys are in the order in which ML Commons writes them.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, ChunkParts, Chunks, Ending, TextRun
from opensearch_ml_stream.connectors.errors import MLStreamError


class WireFormat(ABC):
    """One wire format, or that of one stream. Every method returns the bytes of whole objects.

    It is at least one byte, but of an ending of which there is nothing to say.
    """

    content_type: str

    def prepare(self) -> None:  # noqa: B027 - most have nothing to make ready
        """Make ready what the stream begins with, as far as that is known before the provider has answered.

        A stream is the same without it: it is called while nothing else can be done for a stream but to wait.
        """

    @property
    @abstractmethod
    def heartbeat(self) -> bytes:
        """What is sent while the provider is silent."""

    @abstractmethod
    def chunks(self, chunks: Chunks) -> bytes:
        """Encode all chunks of one upstream read."""

    def last(self, chunks: Chunks, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode the chunks, if any, that came with the ending of a complete stream, and the ending; see `ending`."""
        return (self.chunks(chunks) if chunks else b"") + self.ending(ending, extra)

    @abstractmethod
    def ending(self, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode the terminal object of a complete stream, with the fields of `extra` in it."""

    @abstractmethod
    def error(self, error: MLStreamError) -> bytes:
        """Encode the terminal object of a failed stream."""


class ChunkFormat(WireFormat):
    """A wire format with an object for each chunk.

    `text_prefix` and `text_suffix` are the bytes around the JSON string of a chunk of text alone, as nearly all are.
    """

    _heartbeat: ClassVar[bytes]

    def __init__(self, text_prefix: bytes, text_suffix: bytes) -> None:
        self._set_text_frame(text_prefix, text_suffix)

    def _set_text_frame(self, text_prefix: bytes, text_suffix: bytes) -> None:
        """Set the bytes around text, for a format in which they change in the middle of a stream."""
        self._text_prefix = text_prefix
        self._text_suffix = text_suffix
        self._opening = text_prefix + b'"'
        self._closing = b'"' + text_suffix
        self._between = self._closing + self._opening

    @property
    def heartbeat(self) -> bytes:
        """What is sent while the provider is silent, always the same."""
        return self._heartbeat

    def chunks(self, chunks: Chunks) -> bytes:
        """Encode all chunks of one upstream read."""
        if isinstance(chunks, TextRun):
            return chunks.wrap_each(self._opening, self._between, self._closing)
        if isinstance(chunks, ChunkParts):
            return b"".join([self.chunks(part) for part in chunks])
        if not isinstance(chunks, list):
            chunks = chunks.to_chunks()
        return b"".join([self._chunk(chunk) for chunk in chunks])

    @abstractmethod
    def _mixed_chunk(self, chunk: Chunk) -> bytes:
        """Encode a chunk that is not of text alone."""

    def _chunk(self, chunk: Chunk) -> bytes:
        if chunk != (chunk[0], "", (), (), "", "", None):  # more than a text
            return self._mixed_chunk(chunk)
        return self._text_prefix + orjson.dumps(chunk[0]) + self._text_suffix


class _PredictFormat(ChunkFormat):
    """A format of `_predict/stream`, where an object of its own ends every stream."""

    _text_key: ClassVar[str]
    _chunk_fields: ClassVar[dict[str, Any]]  # the fields beside the text of every chunk

    def ending(self, ending: Ending, extra: dict[str, Any]) -> bytes:
        return self._encode({self._text_key: "", "is_last": True, **ending_fields(ending, extra)})

    @abstractmethod
    def _encode(self, data_as_map: dict[str, Any]) -> bytes: ...

    def _mixed_chunk(self, chunk: Chunk) -> bytes:
        return self._encode({self._text_key: chunk.text, **self._chunk_fields, **_non_text_fields(chunk)})


class _NDJSON(_PredictFormat):
    """One JSON object per line, as RFC opensearch-project/ml-commons#3630 proposes."""

    content_type = "application/x-ndjson"
    _heartbeat = b"\n"
    _text_key = "response"
    _chunk_fields: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        super().__init__(
            b'{"inference_results":[{"output":[{"name":"response","dataAsMap":{"response":',
            b'}}],"status_code":200}]}\n',
        )

    def error(self, error: MLStreamError) -> bytes:
        return orjson.dumps(error.body()) + b"\n"

    def _encode(self, data_as_map: dict[str, Any]) -> bytes:
        result = {**_output(data_as_map), "status_code": 200}
        return orjson.dumps({"inference_results": [result]}) + b"\n"


class _SSE(_PredictFormat):
    """One `data:` line and a blank line per object, without event names and ids, as ML Commons 3.3+ sends them."""

    content_type = "text/event-stream"
    _heartbeat = b": ping\n"
    _text_key = "content"
    _chunk_fields: ClassVar[dict[str, Any]] = {"is_last": False}

    def __init__(self) -> None:
        super().__init__(
            b'data: {"inference_results":[{"output":[{"name":"response","dataAsMap":{"content":',
            b',"is_last":false}}]}]}\n\n',
        )

    def error(self, error: MLStreamError) -> bytes:
        return sse_error(error)

    def _encode(self, data_as_map: dict[str, Any]) -> bytes:
        return b"data: " + orjson.dumps({"inference_results": [_output(data_as_map)]}) + b"\n\n"


def sse_error(error: MLStreamError) -> bytes:
    """Encode an error as an event, its reason a string under `error`, where clients of ML Commons and of V2 read it."""
    body = {"error": error.reason, "type": error.type, "status": error.status, **error.provider_fields()}
    return b"data: " + orjson.dumps(body) + b"\n\n"


def ending_fields(ending: Ending, extra: dict[str, Any]) -> dict[str, Any]:
    """Return what a terminal object says of the end: `finish_reason` always, the rest where it is known."""
    fields: dict[str, Any] = {"finish_reason": ending.finish_reason}
    if ending.native_finish_reason is not None:
        fields["native_finish_reason"] = ending.native_finish_reason
    if ending.usage is not None and (usage := ending.usage.as_dict()):
        fields["usage"] = usage
    if ending.model is not None:
        fields["model"] = ending.model
    if ending.guardrail is not None:
        fields["guardrail"] = ending.guardrail
    return {**fields, **extra}


def _non_text_fields(chunk: Chunk) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if chunk.reasoning:
        fields["reasoning"] = chunk.reasoning
    if chunk.signature:
        fields["reasoning_signature"] = chunk.signature
    if chunk.tool_calls:
        fields["tool_calls"] = [call.as_dict() for call in chunk.tool_calls]
    if chunk.outputs:
        fields["outputs"] = chunk.outputs
    return fields


def _output(data_as_map: dict[str, Any]) -> dict[str, Any]:
    return {"output": [{"name": "response", "dataAsMap": data_as_map}]}


NDJSON: WireFormat = _NDJSON()
SSE: WireFormat = _SSE()
