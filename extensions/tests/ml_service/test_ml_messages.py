import json
from contextlib import suppress
from typing import Any

import orjson
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, TextRun, ToolCall, Usage
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.ml_service.grpc.ml_messages import message_class
from opensearch_ml_stream.extensions.ml_service.protocol.predict_request import PredictRequest, read_predict_request
from opensearch_ml_stream.extensions.ml_service.protocol.predict_response import encode_chunks, encode_ending

Request = message_class("org.opensearch.protobufs.MlPredictModelStreamRequest")
Response = message_class("org.opensearch.protobufs.PredictResponse")

TEXT = st.text(st.characters(codec="utf-8"))
MESSAGE = st.fixed_dictionaries({}, optional={"role": TEXT, "content": TEXT})
PARAMETERS = st.fixed_dictionaries(
    {},
    optional={
        "messages": st.lists(MESSAGE, min_size=1),
        "inputs": TEXT,
        "question": TEXT,
        "x_llm_interface": TEXT,
    },
)
CALLS = st.lists(st.builds(ToolCall, st.integers(0, 9), TEXT, TEXT, TEXT), max_size=2).map(tuple)
CHUNKS = st.builds(Chunk, TEXT, TEXT, CALLS, st.just(()), event=st.none())


def serialized(parameters: dict[str, Any]) -> bytes:
    request = Request(model_id="m", ml_predict_model_stream_request_body={"parameters": parameters})
    encoded: bytes = request.SerializeToString()
    return encoded


def outputs(encoded: bytes) -> list[dict[str, Any]]:
    """The outputs of a message that is, byte for byte, what protobuf writes."""
    response = Response.FromString(encoded)
    assert response.SerializeToString(deterministic=True) == encoded
    (result,) = response.inference_results
    first = {"content": result.output[0].data_as_map.content, "is_last": result.output[0].data_as_map.is_last}
    assert result.output[0].name == "response"
    return [first, *({"name": output.name, "result": output.result} for output in result.output[1:])]


def as_read(request: Any) -> PredictRequest:
    parameters = request.ml_predict_model_stream_request_body.parameters
    names = {"inputs": "inputs", "question": "question", "x_llm_interface": "_llm_interface"}
    read = {names[name]: getattr(parameters, name) for name in names if parameters.HasField(name)}
    if parameters.messages:
        messages = [{field.name: value for field, value in message.ListFields()} for message in parameters.messages]
        read["messages"] = orjson.dumps(messages).decode()
    return PredictRequest(request.model_id, read)


@given(PARAMETERS)
def test_a_request_is_read_as_protobuf_writes_it(parameters: dict[str, Any]) -> None:
    read = read_predict_request(serialized(parameters))
    expected = {"_llm_interface" if name == "x_llm_interface" else name: value for name, value in parameters.items()}
    assert read.model_id == "m"
    assert {
        name: json.loads(value) if name == "messages" else value for name, value in read.parameters.items()
    } == expected


@given(PARAMETERS, st.data())
def test_a_damaged_request_is_refused_or_read_as_protobuf_reads_it(
    parameters: dict[str, Any], data: st.DataObject
) -> None:
    damaged = bytearray(serialized(parameters))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with suppress(InvalidRequest, DecodeError):
        assert read_predict_request(bytes(damaged)) == as_read(Request.FromString(bytes(damaged)))


@given(st.lists(CHUNKS, max_size=3))
def test_a_chunk_is_encoded_as_protobuf_does(chunks: list[Chunk]) -> None:
    encoded = encode_chunks(chunks)
    assert len(encoded) == len(chunks)
    for chunk, message in zip(chunks, encoded, strict=True):
        first, *others = outputs(message)
        assert first == {"content": chunk.text, "is_last": False}
        results = {other["name"]: other["result"] for other in others}
        assert results.get("reasoning", "") == chunk.reasoning
        assert orjson.loads(results.get("tool_calls", "[]")) == [call.as_dict() for call in chunk.tool_calls]


@given(st.lists(TEXT.filter(bool), min_size=1, max_size=4))
def test_a_run_is_encoded_as_its_chunks_are(texts: list[str]) -> None:
    run = TextRun(TextRun.SEPARATOR.join(orjson.dumps(text)[1:-1] for text in texts))
    assert encode_chunks(run) == encode_chunks([Chunk(text) for text in texts])


def test_the_last_message_is_encoded_as_protobuf_does() -> None:
    first, ending = outputs(encode_ending(Ending("stop", usage=Usage(1, 2)), {"model_id": "m"}))
    assert first == {"content": "", "is_last": True}
    assert ending["name"] == "ending"
    assert orjson.loads(ending["result"]) == {
        "finish_reason": "stop",
        "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        "model_id": "m",
    }
