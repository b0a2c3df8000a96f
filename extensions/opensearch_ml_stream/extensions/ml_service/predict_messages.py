"""Messages of `PredictModelStream`: bytes in, parameters out; chunks in, bytes out.

    MlPredictModelStreamRequest: model_id = 1; ml_predict_model_stream_request_body = 3 { parameters = 1 {
        messages = 1 (repeated) { role = 1; content = 2 }; inputs = 2; question = 3; x_llm_interface = 4 } }
    PredictResponse, one for each chunk and a last one for the ending:
        inference_results = 1 { output = 1 { name = 1; result = 6; data_as_map = 7 { content = 1; is_last = 2 } } }

Source: opensearch-protobufs 1.6, `protos/schemas/common.proto`; ML Commons 3.8, `ProtoRequestConverter` (a field that
is not set is no parameter, one that is set to "" is) and `ProtoResponseConverter`. The first output of a response is ML
Commons': `response` with `data_as_map`. Its map has no field for more than text, so what a chunk or an ending says
beside it are further outputs, whose `result` holds it: `reasoning` as text, `tool_calls`, `outputs` and `ending` as
JSON.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, TextRun, to_chunk_list
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.protobuf_wire import FieldReader, length_delimited, text, varint
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.connectors.wire_format import ending_fields

_MODEL_ID, _BODY = 1, 3
_PARAMETERS = 1
_MESSAGES = 1
_STRINGS = {2: "inputs", 3: "question", 4: "_llm_interface"}
_MESSAGE_STRINGS = {1: "role", 2: "content"}

# A field's number and wire type in one byte.
_FIRST_FIELD = b"\x0a"  # inference_results, output, name and content are each number 1
_RESULT = b"\x32"
_DATA_AS_MAP = b"\x3a"
_NOT_LAST = b"\x10\x00"
_LAST = b"\x10\x01"
_RESPONSE_NAME = length_delimited(_FIRST_FIELD, b"response")


@dataclass(frozen=True, slots=True)
class PredictRequest:
    """A request for a prediction."""

    model_id: str
    parameters: Mapping[str, str]


def read_predict_request(data: bytes) -> PredictRequest:
    """Read a serialized request. InvalidRequest names what is missing or wrong, never its value."""
    reader = FieldReader(len(data))
    fields = list(reader.fields(data))
    model_ids = [content for number, content in fields if number == _MODEL_ID]
    model_id = text(model_ids[-1], "model_id") if model_ids else ""
    if not model_id:
        raise InvalidRequest("model_id is required")
    body = _message(fields, _BODY, "MlPredictModelStreamRequest must have request body")
    parameters = _message(list(reader.fields(body)), _PARAMETERS, "Request body must have parameters")
    return PredictRequest(model_id, _read_parameters(reader, parameters))


def _message(fields: list[tuple[int, bytes]], wanted: int, missing: str) -> bytes:
    """Return the message in a field; several of the same field are merged, as in protobuf."""
    messages = [content for number, content in fields if number == wanted]
    if not messages:
        raise InvalidRequest(missing)
    return messages[0] if len(messages) == 1 else b"".join(messages)


def _read_parameters(reader: FieldReader, data: bytes) -> dict[str, str]:
    messages: list[dict[str, str]] = []
    parameters: dict[str, str] = {}
    for number, content in reader.fields(data):
        if number == _MESSAGES:
            messages.append(_read_strings(reader, content, _MESSAGE_STRINGS))
        elif (name := _STRINGS.get(number)) is not None:
            parameters[name] = text(content, name)
    if messages:
        parameters["messages"] = jsontext.JsonText(jsontext.dumps(messages))
    return parameters


def _read_strings(reader: FieldReader, data: bytes, names: Mapping[int, str]) -> dict[str, str]:
    return {names[number]: text(content, names[number]) for number, content in reader.fields(data) if number in names}


def encode_chunks(chunks: Chunks) -> list[bytes]:
    """Encode each chunk as a message."""
    if isinstance(chunks, TextRun):
        return [_text_prefix(len(text)) + text + _NOT_LAST for text in chunks.to_texts()]
    return [_chunk(chunk) for chunk in to_chunk_list(chunks)]


def encode_ending(ending: Ending, extra: dict[str, Any]) -> bytes:
    """Encode the last message of a complete stream: `is_last`, and the ending with the fields of `extra`."""
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
    """Return the bytes before the text of a chunk of text alone; _NOT_LAST follows it."""
    prefix = _FIRST_FIELD + varint(length)
    size = len(prefix) + length + len(_NOT_LAST)
    for before in (_RESPONSE_NAME + _DATA_AS_MAP, _FIRST_FIELD, _FIRST_FIELD):
        header = before + varint(size)
        prefix = header + prefix
        size += len(header)
    return prefix
