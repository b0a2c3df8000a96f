"""Chunks become the `inference_results` objects of `_predict/stream`, in its two wire formats.

NDJSON (RFC opensearch-project/ml-commons#3630): one object a line, text under `response`, with `status_code`.
SSE (ML Commons 3.3+): `data: {...}` and a blank line, text under `content`, with `is_last`.
Key order is as ML Commons prints it. Each function returns whole objects.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending
from opensearch_ml_stream.connectors.errors import MLStreamError


class WireFormat(ABC):
    """How a stream is written. All of the chunks of one upstream read become one bytes object."""

    content_type: ClassVar[str]
    heartbeat: ClassVar[bytes]

    _text_key: ClassVar[str]
    _in_chunk: ClassVar[dict[str, Any]]  # what stands beside the text of every chunk
    _before: ClassVar[bytes]  # a chunk of text alone, as nearly all are, is put together from these two
    _after: ClassVar[bytes]

    def __init__(self) -> None:
        self._opening = self._before + b'"'
        self._closing = b'"' + self._after
        self._between = self._closing + self._opening

    def chunks(self, chunks: Chunks) -> bytes:
        if isinstance(chunks, list):
            return b"".join([self._chunk(chunk) for chunk in chunks])
        return chunks.enclosed(self._opening, self._between, self._closing)

    def ending(self, ending: Ending, extra: dict[str, Any]) -> bytes:
        return self._whole({self._text_key: "", "is_last": True, **_ending_fields(ending, extra)})

    @abstractmethod
    def error(self, error: MLStreamError) -> bytes: ...

    @abstractmethod
    def _whole(self, data_as_map: dict[str, Any]) -> bytes: ...

    def _chunk(self, chunk: Chunk) -> bytes:
        if chunk.reasoning or chunk.tool_calls:
            return self._whole({self._text_key: chunk.text, **self._in_chunk, **_side_fields(chunk)})
        return self._before + orjson.dumps(chunk.text) + self._after


class _NDJSON(WireFormat):
    """One JSON object a line."""

    content_type = "application/x-ndjson"
    heartbeat = b"\n"
    _text_key = "response"
    _in_chunk: ClassVar[dict[str, Any]] = {}
    _before = b'{"inference_results":[{"output":[{"name":"response","dataAsMap":{"response":'
    _after = b'}}],"status_code":200}]}\n'

    def error(self, error: MLStreamError) -> bytes:
        return orjson.dumps(error.body()) + b"\n"

    def _whole(self, data_as_map: dict[str, Any]) -> bytes:
        result = {**_output(data_as_map), "status_code": 200}
        return orjson.dumps({"inference_results": [result]}) + b"\n"


class _SSE(WireFormat):
    """One `data:` line and a blank line each, no event names, no ids."""

    content_type = "text/event-stream"
    heartbeat = b": ping\n"
    _text_key = "content"
    _in_chunk: ClassVar[dict[str, Any]] = {"is_last": False}
    _before = b'data: {"inference_results":[{"output":[{"name":"response","dataAsMap":{"content":'
    _after = b',"is_last":false}}]}]}\n\n'

    def error(self, error: MLStreamError) -> bytes:
        """`error` is the reason as a string, as clients of ML Commons read it; the rest stands beside it."""
        body: dict[str, Any] = {"error": error.reason, "type": error.type, "status": error.status}
        if error.provider_status is not None:
            body["provider_status"] = error.provider_status
        return b"data: " + orjson.dumps(body) + b"\n\n"

    def _whole(self, data_as_map: dict[str, Any]) -> bytes:
        return b"data: " + orjson.dumps({"inference_results": [_output(data_as_map)]}) + b"\n\n"


def _ending_fields(ending: Ending, extra: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {"finish_reason": ending.finish_reason}
    if ending.native_finish_reason is not None:
        fields["native_finish_reason"] = ending.native_finish_reason
    if ending.usage is not None and (usage := ending.usage.as_dict()):
        fields["usage"] = usage
    if ending.model is not None:
        fields["model"] = ending.model
    return {**fields, **ending.extra, **extra}


def _side_fields(chunk: Chunk) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if chunk.reasoning:
        fields["reasoning"] = chunk.reasoning
    if chunk.tool_calls:
        fields["tool_calls"] = [call.as_dict() for call in chunk.tool_calls]
    return fields


def _output(data_as_map: dict[str, Any]) -> dict[str, Any]:
    return {"output": [{"name": "response", "dataAsMap": data_as_map}]}


NDJSON: WireFormat = _NDJSON()
SSE: WireFormat = _SSE()
