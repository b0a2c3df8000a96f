"""A runtime's responses as chunks, and in every format of a stream."""

from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ResponseRun, TextRun, Usage, to_chunk_list
from opensearch_ml_stream.connectors.wire_format import NDJSON, SSE, WireFormat
from opensearch_ml_stream.extensions.generate_stream.growing_text import GrowingText
from opensearch_ml_stream.extensions.ml_service.predict_messages import encode_chunks
from opensearch_ml_stream.extensions.v2.protocol.json_requests import Dialect
from opensearch_ml_stream.extensions.v2.protocol.messages import ResponseShape
from opensearch_ml_stream.extensions.v2.protocol.stream_events import stream_format

OWN = ResponseShape("m", "2", "7", is_local=True)
END = Ending("length", "max_tokens", Usage(2, 3), "m")
SCORE = {"name": "score", "shape": [1], "datatype": "FP32", "data": [0.5]}


def texts(name: str, *data: Any) -> dict[str, Any]:
    return {"name": name, "shape": [len(data)], "datatype": "BYTES", "data": list(data)}


def response(*outputs: Any, **members: Any) -> bytes:
    return orjson.dumps({"model_name": "own", "id": "1", **members, "outputs": outputs})


def run(*responses: bytes) -> ResponseRun:
    return ResponseRun(b"\0".join(responses))


TWO = run(response(texts("a", "Hé"), SCORE), response(texts("a", "llo"), parameters={"finish_reason": "length"}))


def events(written: bytes) -> list[Any]:
    parts = written.split(b"\n\n")
    assert parts.pop() == b""
    return [orjson.loads(part.removeprefix(b"data: ")) for part in parts]


@pytest.mark.parametrize(
    ("outputs", "chunk"),
    [
        ([], Chunk()),
        ([texts("a", "b", "c")], Chunk("bc")),
        ([texts("a", ["b", ["c"]], None, 7)], Chunk("bc")),
        ([SCORE], Chunk(outputs=(SCORE,))),
        ([SCORE, texts("a", "b"), texts("c", "d")], Chunk("b", outputs=(SCORE, texts("c", "d")))),
        ([texts("role", "assistant"), texts("content", "Hi")], Chunk("Hi", outputs=(texts("role", "assistant"),))),
        ([texts("role", "assistant"), SCORE], Chunk("assistant", outputs=(SCORE,))),
        ([texts("a", "b"), texts("content", "Hi")], Chunk("b", outputs=(texts("content", "Hi"),))),
        ([{"name": "a", "datatype": "BYTES"}], Chunk()),
    ],
)
def test_the_text_is_that_of_the_first_tensor_of_strings(outputs: list[Any], chunk: Chunk) -> None:
    assert to_chunk_list(run(response(*outputs))) == [chunk]


def test_a_run_has_a_chunk_for_each_response() -> None:
    assert TWO.length == 2
    assert to_chunk_list(TWO) == [Chunk("Hé", outputs=(SCORE,)), Chunk("llo")]
    assert run(response()).length == 1


@pytest.mark.parametrize(("wire", "key"), [(NDJSON, "response"), (SSE, "content")])
def test_text_is_written_as_any_models_and_other_outputs_stand_beside_it(wire: WireFormat, key: str) -> None:
    written = wire.chunks(TWO)
    parsed = events(written) if wire is SSE else [orjson.loads(line) for line in written.splitlines()]
    first, second = (one["inference_results"][0]["output"][0]["dataAsMap"] for one in parsed)
    assert (first[key], first["outputs"]) == ("Hé", [SCORE])
    assert (second[key], "outputs" in second) == ("llo", False)
    assert written.endswith(wire.chunks([Chunk("llo")]))


def test_a_growing_text_is_of_the_texts_alone() -> None:
    wire = GrowingText(lambda: None)
    assert wire.chunks(TWO) == 'data: {"text": "Héllo"}\n\n'.encode()


def test_ml_service_has_the_other_outputs_as_one_of_its_own() -> None:
    with_outputs, text_alone = encode_chunks(TWO)
    assert text_alone == encode_chunks(TextRun(b"llo"))[0]
    assert orjson.dumps([SCORE]) in with_outputs


def test_v2_passes_each_response_on_as_it_is_and_adds_no_end() -> None:
    wire = stream_format(OWN, Dialect.TENSORS)
    first, second = TWO.to_responses()
    assert wire.chunks(TWO) == b"data: " + first + b"\n\ndata: " + second + b"\n\n"
    assert wire.ending(END, {}) == wire.last([], END, {}) == b""
    assert wire.last(TWO, END, {}) == wire.chunks(TWO)


def test_v2_ends_a_stream_without_responses_with_nothing() -> None:
    assert stream_format(OWN, Dialect.TENSORS).last([], Ending(), {}) == b""


def test_v2_tells_what_only_this_server_knows_of_the_end() -> None:
    wire = stream_format(OWN, Dialect.TENSORS)
    told = events(wire.last(TWO, END, {"model_id": "x"}))
    assert [one["model_name"] for one in told] == ["own", "own", "m"]
    assert told[-1]["parameters"]["model_id"] == "x"
    guarded = events(wire.last([], Ending("content_filter", guardrail="a pattern"), {}))
    assert guarded[-1]["parameters"] == {"finish_reason": "content_filter", "guardrail": "a pattern"}


@pytest.mark.parametrize("chunks", [[Chunk("a", outputs=(SCORE,))], TextRun(b"a")])
def test_v2_writes_chunks_that_are_no_responses_as_any_models(chunks: Any) -> None:
    own, any_model = (stream_format(shape, Dialect.TENSORS) for shape in (OWN, ResponseShape("m", "2", "7")))
    assert own.chunks(chunks) == any_model.chunks(chunks)
    assert own.last([], END, {}) == any_model.last([], END, {}) != b""
    assert own.last(chunks, END, {}) == any_model.last(chunks, END, {})


@pytest.mark.parametrize("last", [False, True])
def test_responses_in_the_place_of_a_remote_models_have_its_names(last: bool) -> None:
    wire = stream_format(ResponseShape("remote", None, "7"), Dialect.TENSORS)
    first, second = events(wire.last(TWO, END, {}) if last else wire.chunks(TWO))
    assert (first["model_name"], first["id"]) == ("remote", "7")
    assert [(one["name"], one["data"]) for one in first["outputs"]] == [("output", ["Hé"]), ("score", [0.5])]
    assert second["parameters"].get("finish_reason") == ("length" if last else None)


def test_the_generate_extension_has_text_and_the_others_by_their_names() -> None:
    wire = stream_format(OWN, Dialect.TEXT)
    outputs = [texts("a", "Hi"), SCORE, texts("id", "x"), texts("text_output", "y")]
    first, second = events(wire.chunks(run(response(*outputs), response(texts("a", "b"), texts("id", "x")))))
    assert first == {"model_name": "m", "model_version": "2", "text_output": "Hi", "id": "7", "score": [0.5]}
    assert second == {"model_name": "m", "model_version": "2", "text_output": "b", "id": "7"}
    assert events(wire.last([], END, {}))[0]["details"]["finish_reason"] == "length"
