"""Wire formats of V2 streams: server-sent events, each an inference response.

MLServer's dialect, `data: {"model_name":"m","id":"1","parameters":{},"outputs":[{"name":"output",...,"data":["Hi"]}]}`,
and that of the generate extension, `data: {"model_name":"m","text_output":"Hi","id":"1"}`. The last response, and no
other, has `finish_reason` and `usage` in its `parameters`. A stream that fails ends with `data: {"error":"..."}`.

The common parts of all responses are encoded once per stream. In MLServer's dialect a runtime's own responses are
passed on.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, ResponseRun, TextRun, to_chunk_list
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.wire_format import ChunkFormat, WireFormat, ending_fields, sse_error
from opensearch_ml_stream.extensions.v2.protocol.json_requests import Dialect
from opensearch_ml_stream.extensions.v2.protocol.json_responses import STRING, identity, tensor_object
from opensearch_ml_stream.extensions.v2.protocol.messages import ResponseShape, Tensor

_NO_TEXT = Chunk()
_NO_TEXT_END = b'""]}'  # how a tensor of an empty text ends
_OF_TEXT_EVENTS = frozenset({"model_name", "model_version", "text_output", "id", "details", "parameters"})


def stream_format(shape: ResponseShape, dialect: Dialect) -> WireFormat:
    """Return the wire format of one stream."""
    if dialect is Dialect.TEXT:
        return _TextEvents(shape)
    return _LocalEvents(shape) if shape.is_local else _TensorEvents(shape)


def text_tensors(shape: ResponseShape, text: str) -> list[Tensor]:
    """Return the tensors of a response's text: one, or role, content and type of a chat message."""
    output = _string_tensor(shape.output, text)
    return [_string_tensor("role", "assistant"), output, _string_tensor("type", "text")] if shape.is_chat else [output]


def further_tensors(chunk: Chunk) -> list[Tensor]:
    """Return the tensors of a chunk's reasoning and tool calls, if it has any.

    A runtime's further outputs are not among them, since these are tensors in JSON already.
    """
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
        """Encode the chunks; the last response has the ending, too."""
        if not chunks:
            return self.ending(ending, extra)
        fields = ending_fields(ending, extra)
        if isinstance(chunks, TextRun):
            before, _, text = chunks.rpartition(TextRun.SEPARATOR)
            return (self.chunks(TextRun(before)) if before else b"") + self._response(b'"%b"' % text, _NO_TEXT, fields)
        found = to_chunk_list(chunks)
        return self.chunks(found[:-1]) + self._response(orjson.dumps(found[-1].text), found[-1], fields)

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
        for output in (*map(tensor_object, further_tensors(chunk)), *chunk.outputs):
            parts += (b",", orjson.dumps(output))
        return b"".join([*parts, b"]}\n\n"])


class _LocalEvents(_TensorEvents):
    """MLServer's dialect for a runtime's own responses, which say themselves how they end.

    Other chunks are written as for any model: text that a guardrail held back, or that of a fallback model.
    """

    def __init__(self, shape: ResponseShape) -> None:
        super().__init__(shape)
        self._tells_ending = False

    def chunks(self, chunks: Chunks) -> bytes:
        """Encode all chunks of one upstream read."""
        self._tells_ending = not isinstance(chunks, ResponseRun)
        if isinstance(chunks, ResponseRun):
            return chunks.wrap_each(b"data: ", b"\n\ndata: ", b"\n\n")
        return super().chunks(chunks)

    def last(self, chunks: Chunks, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode the chunks, and the ending unless the runtime's own responses have it."""
        if isinstance(chunks, ResponseRun):
            return self.chunks(chunks) + self.ending(ending, extra)
        return super().last(chunks, ending, extra) if chunks else self.ending(ending, extra)

    def ending(self, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode the ending, nothing if the responses have it."""
        return super().ending(ending, extra) if self._tells_ending or extra or ending.guardrail is not None else b""


class _TextEvents(_V2Events):
    """The dialect of the generate extension. The ending is in `details`, too, as its specification wants."""

    def __init__(self, shape: ResponseShape) -> None:
        self._before_text = b"data: " + _open(orjson.dumps(identity(shape))) + b',"text_output":'
        self._after_text = _open(b',"id":' + orjson.dumps(shape.id) + b"}")
        super().__init__(self._before_text, self._after_text + b"}\n\n")

    def _response(self, text: bytes, chunk: Chunk, ending: Mapping[str, Any]) -> bytes:
        fields: dict[str, Any] = {str(output.get("name")): output.get("data") for output in chunk.outputs}
        for own in _OF_TEXT_EVENTS & fields.keys():
            del fields[own]
        if chunk.reasoning:
            fields["reasoning"] = chunk.reasoning
        if chunk.tool_calls:
            fields["tool_calls"] = [call.as_dict() for call in chunk.tool_calls]
        if ending:
            fields |= {"details": ending, "parameters": ending}
        members = b"," + orjson.dumps(fields)[1:] if fields else b"}"
        return b"".join((self._before_text, text, self._after_text, members, b"\n\n"))


def _string_tensor(name: str, text: str) -> Tensor:
    return Tensor(name, "BYTES", [1, 1], [text], STRING)


def _open(encoded: bytes) -> bytes:
    """Return a JSON object without its closing brace."""
    return encoded[:-1]
