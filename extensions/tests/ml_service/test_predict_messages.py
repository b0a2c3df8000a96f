"""Messages of MLService, as bytes and as protobuf has them."""

import json
from contextlib import suppress
from typing import Any

import orjson
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, TextRun, ToolCall, Usage
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.protobuf_wire import MAX_FIELDS, length_delimited
from opensearch_ml_stream.connectors.syntax.jsontext import JsonText
from opensearch_ml_stream.extensions.ml_service.ml_service import message_class
from opensearch_ml_stream.extensions.ml_service.predict_messages import (
    PredictRequest,
    encode_chunks,
    encode_ending,
    read_predict_request,
)

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


def outputs(encoded: bytes) -> dict[str, Any]:
    """The outputs of a message that is, byte for byte, what protobuf writes: `response` as (content, is_last)."""
    response = Response.FromString(encoded)
    assert response.SerializeToString(deterministic=True) == encoded
    (result,) = response.inference_results
    first, *others = result.output
    assert first.name == "response"
    text = first.data_as_map
    return {"response": (text.content, text.is_last), **{output.name: output.result for output in others}}


def field(number: int, content: bytes | str) -> bytes:
    return length_delimited(bytes([number << 3 | 2]), content if isinstance(content, bytes) else content.encode())


def message(role: str, content: str) -> bytes:
    return field(1, field(1, role) + field(2, content))


def request(*parameters: bytes, model_id: str = "m") -> bytes:
    return field(1, model_id) + field(3, field(1, b"".join(parameters)))


def parameters_of(*fields: bytes) -> dict[str, str]:
    return dict(read_predict_request(request(*fields)).parameters)


def refusal(data: bytes) -> str:
    with pytest.raises(InvalidRequest) as refused:
        read_predict_request(data)
    return refused.value.reason


def test_messages_become_the_parameter_that_a_template_takes_as_json() -> None:
    parameters = parameters_of(message("system", "Be brief."), message("user", 'Say "é"'))
    assert parameters == {
        "messages": '[{"role":"system","content":"Be brief."},{"role":"user","content":"Say \\"é\\""}]'
    }
    assert isinstance(parameters["messages"], JsonText)


def test_text_and_interface_become_parameters_of_the_rest_api() -> None:
    parameters = parameters_of(field(2, "[1]"), field(3, "Why?"), field(4, "openai/v1/chat/completions"))
    assert parameters == {"inputs": "[1]", "question": "Why?", "_llm_interface": "openai/v1/chat/completions"}
    assert not any(isinstance(value, JsonText) for value in parameters.values())


def test_a_field_that_is_not_set_is_no_parameter_and_one_that_is_empty_is_one() -> None:
    assert parameters_of() == {}
    assert parameters_of(field(2, "")) == {"inputs": ""}
    assert parameters_of(field(1, b""), field(1, field(1, "user"))) == {"messages": '[{},{"role":"user"}]'}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "model_id is required"),
        (request(model_id=""), "model_id is required"),
        (field(1, "m"), "MlPredictModelStreamRequest must have request body"),
        (field(1, "m") + field(3, b""), "Request body must have parameters"),
    ],
)
def test_what_is_missing_is_named_in_the_words_of_ml_commons(data: bytes, reason: str) -> None:
    assert refusal(data) == reason


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (field(1, b"\xff"), "model_id"),
        (request(field(2, b"\xff")), "inputs"),
        (request(field(1, field(2, b"\xe9"))), "content"),
    ],
)
def test_text_that_is_not_utf8_is_refused_by_its_name(data: bytes, name: str) -> None:
    assert refusal(data) == f"{name} is not UTF-8"


@pytest.mark.parametrize("others", [field(2, b"\x08\x01"), b"\x48\x05", b"\x4d1234", b"\x4912345678", b"\xa2\x06\x01a"])
def test_fields_that_nobody_asked_for_are_skipped(others: bytes) -> None:
    read = read_predict_request(others + request(others, field(2, "a")) + others)
    assert (read.model_id, read.parameters) == ("m", {"inputs": "a"})


def test_of_several_strings_the_last_counts_and_of_several_messages_all() -> None:
    twice = request(field(2, "a"), model_id="n") + field(3, field(1, message("user", "hi"))) + field(1, "m")
    read = read_predict_request(twice + field(3, field(1, field(2, "b"))))
    assert read.model_id == "m"
    assert read.parameters == {"inputs": "b", "messages": '[{"role":"user","content":"hi"}]'}


_MALFORMED = [
    b"\x00",  # field number 0
    b"\x02\x00",
    b"\x0a",  # no length
    b"\x0a\x05abcd",  # a length that lies
    b"\x0a\xff\xff\xff\xff\x0f",
    b"\x0b\x0c",  # a group
    b"\x0f",  # no wire type
    b"\x0d123",
    b"\x09123",
    b"\x08\xff",
    b"\x08" + b"\xff" * 10 + b"\x01",
    b"\xff" * 9 + b"\x01\x00",  # a field number of 61 bits
    request() + b"\x1a\x02\x0a\x05",  # in a message within
]


@pytest.mark.parametrize("data", _MALFORMED)
def test_what_is_no_protobuf_is_refused(data: bytes) -> None:
    assert refusal(data) == "The request is not a protobuf message"


def test_a_request_of_many_empty_messages_is_refused_before_they_are_kept() -> None:
    assert refusal(request(b"\x0a\x00" * MAX_FIELDS)).startswith("The request has more than 40000 fields")
    assert len(parameters_of(b"\x0a\x00" * (MAX_FIELDS - 10))["messages"]) == 3 * (MAX_FIELDS - 10) + 1


def test_a_large_request_may_have_more_fields() -> None:
    many = [message("user", "a" * 120)] * MAX_FIELDS
    assert parameters_of(*many)["messages"].count("user") == MAX_FIELDS


def test_a_chunk_of_text_is_the_message_that_ml_commons_sends() -> None:
    # Serialized by protobuf's own classes.
    expected = bytes.fromhex("0a160a140a08726573706f6e73653a080a0448c3a96f1000")
    assert encode_chunks([Chunk("Héo")]) == encode_chunks(TextRun("Héo".encode())) == [expected]


def test_a_run_of_chunks_is_a_message_for_each() -> None:
    run = TextRun(b"a\0\\u00e9\\n\0\xc3\xa9")
    assert [outputs(encoded) for encoded in encode_chunks(run)] == [
        {"response": ("a", False)},
        {"response": ("é\n", False)},
        {"response": ("é", False)},
    ]


@pytest.mark.parametrize(
    "length", [0, 1, 100, 107, 108, 109, 110, 111, 112, 113, 114, 127, 128, 5_000, 20_000, 2_200_000]
)
def test_text_of_any_length_is_encoded_alike_on_both_paths(length: int) -> None:
    text = "x" * length
    (encoded,) = encode_chunks([Chunk(text)])
    assert encode_chunks(TextRun(text.encode())) == [encoded]
    assert outputs(encoded) == {"response": (text, False)}


def test_reasoning_and_tool_calls_are_outputs_of_their_own() -> None:
    chunk = Chunk("", "hm", (ToolCall(0, "c1", "look", '{"a":'),))
    (encoded,) = encode_chunks([chunk])
    assert outputs(encoded) == {
        "response": ("", False),
        "reasoning": "hm",
        "tool_calls": '[{"index":0,"id":"c1","name":"look","arguments":"{\\"a\\":"}]',
    }


def test_the_last_message_says_all_that_is_known_of_the_ending() -> None:
    ending = Ending("length", "max_tokens", Usage(3, 5), "gpt-4o")
    read = outputs(encode_ending(ending, {"model_id": "m1"}))
    assert read["response"] == ("", True)
    assert orjson.loads(read["ending"]) == {
        "finish_reason": "length",
        "native_finish_reason": "max_tokens",
        "usage": {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8},
        "model": "gpt-4o",
        "model_id": "m1",
    }


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
        results = outputs(message)
        assert results["response"] == (chunk.text, False)
        assert results.get("reasoning", "") == chunk.reasoning
        assert orjson.loads(results.get("tool_calls", "[]")) == [call.as_dict() for call in chunk.tool_calls]


@given(st.lists(TEXT.filter(bool), min_size=1, max_size=4))
def test_a_run_is_encoded_as_its_chunks_are(texts: list[str]) -> None:
    run = TextRun(TextRun.SEPARATOR.join(orjson.dumps(text)[1:-1] for text in texts))
    assert encode_chunks(run) == encode_chunks([Chunk(text) for text in texts])
