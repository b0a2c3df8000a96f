"""Wire formats of V2 streams: server-sent events, each an inference response.

MLServer's dialect, `data: {"model_name":"m","id":"1","parameters":{},"outputs":[{"name":"output",...,"data":["Hi"]}]}`,
and that of the generate extension, `data: {"model_name":"m","text_output":"Hi","id":"1"}`. The last response, and no
other, has `finish_reason` and `usage` in its `parameters`. A stream that fails ends with `data: {"error":"..."}`.

What all responses of a stream have in common is encoded once per stream.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, TextRun
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.v2.json_requests import Dialect
from opensearch_ml_stream.connectors.v2.json_responses import STRING, identity, tensor_object
from opensearch_ml_stream.connectors.v2.messages import ResponseShape, Tensor
from opensearch_ml_stream.connectors.wire_format import ChunkFormat, WireFormat, ending_fields, sse_error

_NO_TEXT = Chunk()
_NO_TEXT_END = b'""]}'  # how a tensor of an empty text ends


def stream_format(shape: ResponseShape, dialect: Dialect) -> WireFormat:
    """Return the wire format of one stream."""
    return _TensorEvents(shape) if dialect is Dialect.TENSORS else _TextEvents(shape)


def text_tensors(shape: ResponseShape, text: str) -> list[Tensor]:
    """Return the tensors of a response's text: one, or role, content and type of a chat message."""
    output = _string_tensor(shape.output, text)
    return [_string_tensor("role", "assistant"), output, _string_tensor("type", "text")] if shape.is_chat else [output]


def further_tensors(chunk: Chunk) -> list[Tensor]:
    """Return the tensors of a chunk's reasoning and tool calls, which only responses that have them have."""
    tensors = [_string_tensor("reasoning", chunk.reasoning)] if chunk.reasoning else []
    if chunk.tool_calls:
        calls = [orjson.dumps(call.as_dict()).decode() for call in chunk.tool_calls]
        tensors.append(Tensor("tool_calls", "BYTES", [len(calls), 1], calls, STRING))
    return tensors


class _V2Events(ChunkFormat):
    """Server-sent events without names and ids, as MLServer sends them."""

    content_type = "text/event-stream; charset=utf-8"
    _heartbeat = b": ping\n"

    def last(self, chunks: Chunks, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode the chunks, the last one as the response that also tells the ending."""
        if not chunks:
            return self.ending(ending, extra)
        fields = ending_fields(ending, extra)
        if isinstance(chunks, TextRun):
            before, _, text = chunks.rpartition(TextRun.SEPARATOR)
            return (self.chunks(TextRun(before)) if before else b"") + self._response(b'"%b"' % text, _NO_TEXT, fields)
        return self.chunks(chunks[:-1]) + self._response(orjson.dumps(chunks[-1].text), chunks[-1], fields)

    def ending(self, ending: Ending, extra: dict[str, Any]) -> bytes:
        return self._response(b'""', _NO_TEXT, ending_fields(ending, extra))

    def error(self, error: MLStreamError) -> bytes:
        return sse_error(error)

    def _mixed_chunk(self, chunk: Chunk) -> bytes:
        return self._response(orjson.dumps(chunk.text), chunk, {})

    @abstractmethod
    def _response(self, text: bytes, chunk: Chunk, ending: Mapping[str, Any]) -> bytes:
        """Encode a response of a text, which is a JSON string, with the chunk's reasoning and tool calls."""


class _TensorEvents(_V2Events):
    """MLServer's dialect."""

    def __init__(self, shape: ResponseShape) -> None:
        self._head = b"data: " + _open(orjson.dumps({**identity(shape), "id": shape.id})) + b',"parameters":'
        tensors = [orjson.dumps(tensor_object(tensor)) for tensor in text_tensors(shape, "")]
        place = 1 if shape.is_chat else 0
        before = b",".join([*tensors[:place], tensors[place].removesuffix(_NO_TEXT_END)])
        self._before_text = b',"outputs":[' + before
        self._after_text = b",".join([b"]}", *tensors[place + 1 :]])
        super().__init__(self._head + b"{}" + self._before_text, self._after_text + b"]}\n\n")

    def _response(self, text: bytes, chunk: Chunk, ending: Mapping[str, Any]) -> bytes:
        parts = [self._head, orjson.dumps(ending), self._before_text, text, self._after_text]
        for tensor in further_tensors(chunk):
            parts += (b",", orjson.dumps(tensor_object(tensor)))
        return b"".join([*parts, b"]}\n\n"])


class _TextEvents(_V2Events):
    """The dialect of the generate extension. `details` tells the ending too, where its specification has it."""

    def __init__(self, shape: ResponseShape) -> None:
        self._before_text = b"data: " + _open(orjson.dumps(identity(shape))) + b',"text_output":'
        self._after_text = _open(b',"id":' + orjson.dumps(shape.id) + b"}")
        super().__init__(self._before_text, self._after_text + b"}\n\n")

    def _response(self, text: bytes, chunk: Chunk, ending: Mapping[str, Any]) -> bytes:
        fields: dict[str, Any] = {}
        if chunk.reasoning:
            fields["reasoning"] = chunk.reasoning
        if chunk.tool_calls:
            fields["tool_calls"] = [call.as_dict() for call in chunk.tool_calls]
        if ending:
            fields |= {"details": ending, "parameters": ending}
        return b"".join((self._before_text, text, self._after_text, b",", orjson.dumps(fields)[1:], b"\n\n"))


def _string_tensor(name: str, text: str) -> Tensor:
    return Tensor(name, "BYTES", [1, 1], [text], STRING)


def _open(encoded: bytes) -> bytes:
    """Return a JSON object without its closing brace."""
    return encoded[:-1]
