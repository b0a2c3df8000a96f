"""Writes the messages of a stream: their common parts are encoded once per stream, a message costs a concatenation.

A message of text alone is a ModelInferResponse in which only the text changes. In protobuf's wire format
(https://protobuf.dev/programming-guides/encoding/) a field is a tag and, for strings and messages, a length before the
bytes; so only the lengths around the text are encoded again.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, ResponseRun, TextRun, to_chunk_list
from opensearch_ml_stream.connectors.protobuf_wire import length_delimited
from opensearch_ml_stream.connectors.wire_format import ending_fields
from opensearch_ml_stream.extensions.v2.grpc.inference_messages import ModelStreamInferResponse
from opensearch_ml_stream.extensions.v2.grpc.response_messages import tensors_response
from opensearch_ml_stream.extensions.v2.protocol.local_responses import read_local_response, read_outputs
from opensearch_ml_stream.extensions.v2.protocol.messages import ResponseShape, Tensor
from opensearch_ml_stream.extensions.v2.protocol.stream_events import further_tensors, text_tensors

# Tags: field number << 3 | 2 (bytes after their length).
_OUTPUTS = b"\x2a"  # ModelInferResponse.outputs
_CONTENTS = b"\x2a"  # InferOutputTensor.contents
_BYTES_CONTENTS = b"\x42"  # InferTensorContents.bytes_contents
_RAW_OUTPUT_CONTENTS = b"\x32"  # ModelInferResponse.raw_output_contents
_INFER_RESPONSE = b"\x12"  # ModelStreamInferResponse.infer_response

_FINAL = "triton_final_response"


class StreamMessages:
    """The messages of one response; with `is_triton` in the form of Triton's clients.

    With `has_empty_final` the last message of that form has no outputs, which clients can ask for.
    """

    def __init__(self, shape: ResponseShape, *, is_raw: bool, is_triton: bool, has_empty_final: bool = False) -> None:
        self._shape = shape
        self._is_raw = is_raw
        self._is_triton = is_triton
        self._has_empty_final = is_triton and has_empty_final
        self._tells_ending = not shape.is_local  # a runtime's own responses say it
        self._head, self._tensor, self._tail = self._parts()

    def chunks(self, chunks: Chunks) -> list[bytes]:
        """Return a message for each chunk."""
        if isinstance(chunks, TextRun):
            found = [self._text(text) for text in chunks.to_texts()]
        elif isinstance(chunks, ResponseRun) and self._shape.is_local:
            self._tells_ending = False
            return [self._own(response) for response in chunks.to_responses()]
        else:
            found = [self._chunk(chunk) for chunk in to_chunk_list(chunks)]
        self._tells_ending = True
        return found

    def last(self, chunks: Chunks, ending: Ending, extra: dict[str, Any]) -> list[bytes]:
        """Return the messages of the chunks that came with the ending, if any; the last one has the ending, too."""
        fields = ending_fields(ending, extra)
        if isinstance(chunks, ResponseRun) and self._shape.is_local:
            return [*self.chunks(chunks), *self.last([], ending, extra)]
        is_told = bool(chunks or self._tells_ending or extra or ending.guardrail is not None)
        if self._has_empty_final:
            return [*(self.chunks(chunks) if chunks else ()), self._final(fields if is_told else {})]
        if not chunks:
            if is_told:
                return [self._message(Chunk(), fields)]
            return [self._final({})] if self._is_triton else []
        found = to_chunk_list(chunks)
        return [*self.chunks(found[:-1]), self._message(found[-1], fields)]

    def _own(self, response: bytes) -> bytes:
        """Return the message of a runtime's own response."""
        own = read_local_response(orjson.loads(response), self._shape)
        parameters = {**own.parameters, _FINAL: False} if self._is_triton else own.parameters
        message = tensors_response(own.shape, own.outputs, parameters, is_raw=self._is_raw)
        return _serialized(ModelStreamInferResponse(infer_response=message) if self._is_triton else message)

    def _final(self, fields: Mapping[str, Any]) -> bytes:
        """Return Triton's message without outputs that ends a request's responses."""
        message = tensors_response(self._shape, (), {_FINAL: True, **fields}, is_raw=self._is_raw)
        return _serialized(ModelStreamInferResponse(infer_response=message))

    def _chunk(self, chunk: Chunk) -> bytes:
        if chunk.reasoning or chunk.tool_calls or chunk.outputs:
            return self._message(chunk, {})
        return self._text(chunk.text.encode())

    def _text(self, text: bytes) -> bytes:
        if self._is_raw:
            changed = length_delimited(_RAW_OUTPUT_CONTENTS, len(text).to_bytes(4, "little") + text)
        else:
            contents = length_delimited(_CONTENTS, length_delimited(_BYTES_CONTENTS, text))
            changed = length_delimited(_OUTPUTS, self._tensor + contents)
        message = self._head + changed + self._tail
        return length_delimited(_INFER_RESPONSE, message) if self._is_triton else message

    def _message(self, chunk: Chunk, fields: Mapping[str, Any]) -> bytes:
        own = read_outputs(list(chunk.outputs))
        outputs = [*text_tensors(self._shape, chunk.text), *further_tensors(chunk), *own]
        parameters = {_FINAL: bool(fields), **fields} if self._is_triton else fields
        message = tensors_response(self._shape, outputs, parameters, is_raw=self._is_raw)
        return _serialized(ModelStreamInferResponse(infer_response=message) if self._is_triton else message)

    def _parts(self) -> tuple[bytes, bytes, bytes]:
        """Return the bytes before the text's tensor, its fields before the contents, and the bytes after it.

        Raw contents are fields of the message after all tensors, so the tensors are part of the bytes before.
        """
        tensors = text_tensors(self._shape, "")
        place = 1 if self._shape.is_chat else 0
        before, text, after = tensors[:place], tensors[place], tensors[place + 1 :]
        bare = self._serialized_tensor(Tensor(text.name, text.datatype, text.shape, (), text.parameters))
        parameters = {_FINAL: False} if self._is_triton else {}
        if not self._is_raw:
            head = tensors_response(self._shape, before, parameters, is_raw=False)
            behind = [length_delimited(_OUTPUTS, self._serialized_tensor(one)) for one in after]
            return _serialized(head), bare, b"".join(behind)
        head = tensors_response(self._shape, tensors, parameters, is_raw=True)
        contents = [length_delimited(_RAW_OUTPUT_CONTENTS, one) for one in head.raw_output_contents]
        del head.raw_output_contents[:]
        return _serialized(head) + b"".join(contents[:place]), b"", b"".join(contents[place + 1 :])

    def _serialized_tensor(self, tensor: Tensor) -> bytes:
        message = tensors_response(self._shape, [tensor], {}, is_raw=False).outputs[0]
        if not tensor.data:
            message.ClearField("contents")
        return _serialized(message)


def error_message(shape: ResponseShape | None, reason: str) -> bytes:
    """Return Triton's message of an error, with the request that it belongs to."""
    message = ModelStreamInferResponse(error_message=reason)
    if shape is not None:
        message.infer_response.model_name = shape.model_name
        message.infer_response.id = shape.id
        message.infer_response.parameters[_FINAL].bool_param = True
    return _serialized(message)


def _serialized(message: Any) -> bytes:
    data: bytes = message.SerializeToString(deterministic=True)
    return data
