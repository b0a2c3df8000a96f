from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, TextRun, ToolCall, Usage
from opensearch_ml_stream.connectors.protobuf_wire import FieldReader
from opensearch_ml_stream.extensions.ml_service.protocol.predict_response import encode_chunks, encode_ending

RESPONSE = "response"


def outputs(encoded: bytes) -> dict[str, Any]:
    """The outputs by name: those of `response` as (content, is_last), others as their result."""
    reader = FieldReader(len(encoded))
    ((number, results),) = reader.fields(encoded)
    assert number == 1
    read: dict[str, Any] = {}
    for _, output in reader.fields(results):
        fields = dict(reader.fields(output))
        if 7 in fields:
            ((_, content),) = reader.fields(fields[7])
            read[fields[1].decode()] = (content.decode(), {b"\x10\x00": False, b"\x10\x01": True}[fields[7][-2:]])
        else:
            read[fields[1].decode()] = fields[6].decode()
    return read


def test_a_chunk_of_text_is_the_message_that_ml_commons_sends() -> None:
    # Serialized by protobuf's own classes.
    expected = bytes.fromhex("0a160a140a08726573706f6e73653a080a0448c3a96f1000")
    assert encode_chunks([Chunk("Héo")]) == encode_chunks(TextRun("Héo".encode())) == [expected]


def test_a_run_of_chunks_is_a_message_for_each() -> None:
    run = TextRun(b"a\0\\u00e9\\n\0\xc3\xa9")
    assert [outputs(encoded) for encoded in encode_chunks(run)] == [
        {RESPONSE: ("a", False)},
        {RESPONSE: ("é\n", False)},
        {RESPONSE: ("é", False)},
    ]


@pytest.mark.parametrize(
    "length", [0, 1, 100, 107, 108, 109, 110, 111, 112, 113, 114, 127, 128, 5_000, 20_000, 2_200_000]
)
def test_text_of_any_length_is_encoded_alike_on_both_paths(length: int) -> None:
    text = "x" * length
    (encoded,) = encode_chunks([Chunk(text)])
    assert encode_chunks(TextRun(text.encode())) == [encoded]
    assert outputs(encoded) == {RESPONSE: (text, False)}


def test_reasoning_and_tool_calls_are_outputs_of_their_own() -> None:
    chunk = Chunk("", "hm", (ToolCall(0, "c1", "look", '{"a":'),))
    (encoded,) = encode_chunks([chunk])
    assert outputs(encoded) == {
        RESPONSE: ("", False),
        "reasoning": "hm",
        "tool_calls": '[{"index":0,"id":"c1","name":"look","arguments":"{\\"a\\":"}]',
    }


def test_the_last_message_says_all_that_is_known_of_the_ending() -> None:
    ending = Ending("length", "max_tokens", Usage(3, 5), "gpt-4o")
    read = outputs(encode_ending(ending, {"model_id": "m1"}))
    assert read[RESPONSE] == ("", True)
    assert orjson.loads(read["ending"]) == {
        "finish_reason": "length",
        "native_finish_reason": "max_tokens",
        "usage": {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8},
        "model": "gpt-4o",
        "model_id": "m1",
    }
