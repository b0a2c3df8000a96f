"""Streams of V2: MLServer's events byte for byte, valid JSON whatever the names, and one response that ends them."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, TextRun, ToolCall, Usage, to_chunk_list
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.providers.open_inference import OPEN_INFERENCE
from opensearch_ml_stream.connectors.wire_format import WireFormat
from opensearch_ml_stream.extensions.v2.protocol.json_requests import Dialect
from opensearch_ml_stream.extensions.v2.protocol.messages import ResponseShape
from opensearch_ml_stream.extensions.v2.protocol.stream_events import stream_format

SHAPE = ResponseShape("text-model", None, "1")
TENSORS = stream_format(SHAPE, Dialect.TENSORS)
TEXT = stream_format(ResponseShape("text-model", "2", "1"), Dialect.TEXT)
BOTH = pytest.mark.parametrize("wire", [TENSORS, TEXT], ids=["tensors", "text"])
END = Ending("stop", "end_turn", Usage(2, 3), "m")
ENDING = {
    "finish_reason": "stop",
    "native_finish_reason": "end_turn",
    "usage": {"input_tokens": 2, "output_tokens": 3, "total_tokens": 5},
    "model": "m",
}


def events(written: bytes) -> list[Any]:
    """What a client reads: each event is one line `data: {...}` and a blank line."""
    parts = written.decode().split("\n\n")
    assert parts.pop() == ""
    assert all(part.startswith("data: ") and "\n" not in part for part in parts)
    return [orjson.loads(part.removeprefix("data: ")) for part in parts]


def run(*texts: str) -> TextRun:
    return TextRun(TextRun.SEPARATOR.join(orjson.dumps(text)[1:-1] for text in texts))


def texts(written: list[Any]) -> list[str]:
    return [one["text_output"] if "text_output" in one else one["outputs"][0]["data"][0] for one in written]


def test_a_chunk_is_written_as_mlserver_writes_it() -> None:
    assert TENSORS.chunks([Chunk("What")]) == (
        b'data: {"model_name":"text-model","id":"1","parameters":{},"outputs":[{"name":"output","shape":[1,1],'
        b'"datatype":"BYTES","parameters":{"content_type":"str"},"data":["What"]}]}\n\n'
    )


def test_a_chunk_is_written_as_the_generate_extension_has_it() -> None:
    assert TEXT.chunks([Chunk("What")]) == (
        b'data: {"model_name":"text-model","model_version":"2","text_output":"What","id":"1"}\n\n'
    )


@given(version=st.none() | st.text(), names=st.lists(st.text(), min_size=3, max_size=3), text=st.text(min_size=1))
def test_names_and_texts_of_any_kind_are_valid_json(version: str | None, names: list[str], text: str) -> None:
    model, id, output = names
    for is_chat in (False, True):
        shape = ResponseShape(model, version, id, output, is_chat)
        wire = stream_format(shape, Dialect.TENSORS)
        for written in (wire.chunks([Chunk(text)]), wire.chunks(run(text)), wire.last([Chunk(text)], END, {})):
            (event,) = events(written)
            tensors = event["outputs"]
            assert (event["model_name"], event["id"], event.get("model_version")) == (model, id, version)
            assert [tensor["name"] for tensor in tensors] == (["role", output, "type"] if is_chat else [output])
            assert [tensor["data"] for tensor in tensors] == (
                [["assistant"], [text], ["text"]] if is_chat else [[text]]
            )
        (event,) = events(stream_format(shape, Dialect.TEXT).chunks(run(text)))
        assert (event["model_name"], event["id"], event["text_output"]) == (model, id, text)


@BOTH
@given(written=st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_a_run_of_texts_is_written_as_its_chunks_are(wire: WireFormat, written: list[str]) -> None:
    chunks = [Chunk(text) for text in written]
    assert wire.chunks(run(*written)) == wire.chunks(chunks)
    assert wire.last(run(*written), END, {}) == wire.last(chunks, END, {})


@BOTH
def test_a_run_of_texts_is_never_decoded(wire: WireFormat) -> None:
    assert b'"\\u00e9"' in wire.chunks(TextRun(b"\\u00e9\0b"))
    assert b'"\\u00e9"' in wire.last(TextRun(b"\\u00e9"), END, {})


@BOTH
@pytest.mark.parametrize("chunks", [[Chunk("a"), Chunk("b")], run("a", "b"), run("b"), [Chunk("b")]], ids=str)
def test_the_last_text_and_the_ending_are_one_response(wire: WireFormat, chunks: Chunks) -> None:
    written = events(wire.last(chunks, END, {"model_id": "m2"}))
    assert texts(written) == (["a", "b"] if len(written) == 2 else ["b"])
    assert written[-1]["parameters"] == {**ENDING, "model_id": "m2"}
    assert all("finish_reason" not in event.get("parameters", {}) for event in written[:-1])


@BOTH
def test_an_ending_without_a_text_is_a_response_of_its_own(wire: WireFormat) -> None:
    (event,) = events(wire.last([], END, {}))
    assert texts([event]) == [""]
    assert event["parameters"] == ENDING
    assert wire.ending(END, {}) == wire.last([], END, {})


def test_the_ending_is_told_where_the_generate_extension_has_it_too() -> None:
    (event,) = events(TEXT.last([], END, {}))
    assert event["details"] == ENDING


def test_reasoning_and_tool_calls_are_further_tensors_of_the_responses_that_have_them() -> None:
    calls = (ToolCall(0, "c1", "f", "{"), ToolCall(1, arguments='"a"'))
    plain, thought, called = events(TENSORS.chunks([Chunk("a"), Chunk("", "Hm"), Chunk("", "", calls)]))
    assert [tensor["name"] for tensor in plain["outputs"]] == ["output"]
    assert [(tensor["name"], tensor["data"]) for tensor in thought["outputs"]] == [
        ("output", [""]),
        ("reasoning", ["Hm"]),
    ]
    output, tool_calls = called["outputs"]
    assert (output["data"], tool_calls["name"], tool_calls["shape"]) == ([""], "tool_calls", [2, 1])
    assert [orjson.loads(call) for call in tool_calls["data"]] == [call.as_dict() for call in calls]


def test_the_generate_extension_has_reasoning_and_tool_calls_beside_its_text() -> None:
    call = ToolCall(0, "c1", "f", "{}")
    (event,) = events(TEXT.chunks([Chunk("a", "Hm", (call,))]))
    assert (event["text_output"], event["reasoning"], event["tool_calls"]) == ("a", "Hm", [call.as_dict()])
    assert "parameters" not in event


def test_a_tool_call_that_comes_with_the_ending_is_in_the_last_response() -> None:
    written = events(TENSORS.last([Chunk("a"), Chunk("", "", (ToolCall(0, "c", "f", "{}"),))], END, {}))
    assert [len(event["outputs"]) for event in written] == [1, 2]
    assert written[-1]["parameters"] == ENDING


@BOTH
def test_an_error_is_an_event_of_its_own(wire: WireFormat) -> None:
    (event,) = events(wire.error(UpstreamError("broken", provider_status=500)))
    assert event == {"error": "broken", "type": "status_exception", "status": 424, "provider_status": 500}


@BOTH
def test_a_sidecar_reads_what_another_one_streams(wire: WireFormat) -> None:
    decoder = OPEN_INFERENCE.decoder()
    read = decoder.feed(wire.chunks(run("Hel", "lo")) + wire.heartbeat + wire.last(run("!"), Ending("length"), {}))
    chunks = [*to_chunk_list(read), *to_chunk_list(decoder.close())]
    assert "".join(chunk.text for chunk in chunks) == "Hello!"
    assert isinstance(decoder.outcome, Ending)
    if wire is TEXT:
        assert decoder.outcome.finish_reason == "length"
