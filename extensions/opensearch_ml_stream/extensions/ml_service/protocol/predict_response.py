"""Write `PredictResponse`, one for each chunk of a stream and a last one for its ending.

    inference_results = 1 { output = 1 { name = 1; result = 6; data_as_map = 7 { content = 1; is_last = 2 } } }

Source: opensearch-protobufs 1.6, `protos/schemas/common.proto`; ML Commons 3.8, `ProtoResponseConverter`. The first
output is ML Commons': `response` with `data_as_map`. Its map has no field for more than text, so what a chunk or an
ending says beside it are further outputs, whose `result` holds it: `reasoning` as text, `tool_calls`, `outputs`
and `ending` as JSON.
"""

from functools import lru_cache
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, TextRun, to_chunk_list
from opensearch_ml_stream.connectors.protobuf_wire import length_delimited, varint
from opensearch_ml_stream.connectors.wire_format import ending_fields

# A field's number and wire type in one byte.
_FIRST_FIELD = b"\x0a"  # inference_results, output, name and content are each number 1
_RESULT = b"\x32"
_DATA_AS_MAP = b"\x3a"
_NOT_LAST = b"\x10\x00"
_LAST = b"\x10\x01"
_RESPONSE_NAME = length_delimited(_FIRST_FIELD, b"response")


def encode_chunks(chunks: Chunks) -> list[bytes]:
    """Encode each chunk as a message."""
    if isinstance(chunks, TextRun):
        return [_text_prefix(len(text)) + text + _NOT_LAST for text in chunks.to_texts()]
    return [_chunk(chunk) for chunk in to_chunk_list(chunks)]


def encode_ending(ending: Ending, extra: dict[str, Any]) -> bytes:
    """Encode the last message of a complete stream: `is_last`, and how it ended, with the fields of `extra` in it."""
    result = orjson.dumps(ending_fields(ending, extra))
    return _response(_response_output(b"", _LAST) + _result_output(b"ending", result))


def _chunk(chunk: Chunk) -> bytes:
    outputs = _response_output(chunk.text.encode(), _NOT_LAST)
    if chunk.reasoning:
        outputs += _result_output(b"reasoning", chunk.reasoning.encode())
    if chunk.tool_calls:
        outputs += _result_output(b"tool_calls", orjson.dumps([call.as_dict() for call in chunk.tool_calls]))
    if chunk.outputs:
        outputs += _result_output(b"outputs", orjson.dumps(chunk.outputs))
    return _response(outputs)


def _response(outputs: bytes) -> bytes:
    return length_delimited(_FIRST_FIELD, outputs)


def _response_output(text: bytes, is_last: bytes) -> bytes:
    data_as_map = length_delimited(_FIRST_FIELD, text) + is_last
    return length_delimited(_FIRST_FIELD, _RESPONSE_NAME + length_delimited(_DATA_AS_MAP, data_as_map))


def _result_output(name: bytes, result: bytes) -> bytes:
    return length_delimited(_FIRST_FIELD, length_delimited(_FIRST_FIELD, name) + length_delimited(_RESULT, result))


@lru_cache(maxsize=1024)
def _text_prefix(length: int) -> bytes:
    """Return all that stands before the text of a chunk of text alone, as nearly all are; behind it is _NOT_LAST."""
    prefix = _FIRST_FIELD + varint(length)
    size = len(prefix) + length + len(_NOT_LAST)
    for before in (_RESPONSE_NAME + _DATA_AS_MAP, _FIRST_FIELD, _FIRST_FIELD):
        header = before + varint(size)
        prefix = header + prefix
        size += len(header)
    return prefix
