"""The two wire formats: ML Commons' shapes, byte for byte, and always valid JSON."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, TextRun, ToolCall, Usage
from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, ProviderWords, UpstreamError
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT
from opensearch_ml_stream.connectors.wire_format import NDJSON, SSE, WireFormat

BOTH = pytest.mark.parametrize("wire", [NDJSON, SSE], ids=["ndjson", "sse"])


def objects(written: bytes, wire: WireFormat) -> list[Any]:
    """What a client reads: every line, or every event, must be one JSON object."""
    text = written.decode()
    if wire is NDJSON:
        assert text.endswith("\n")
        return [json.loads(line) for line in text.split("\n") if line]
    assert text.endswith("\n\n")
    events = text.split("\n\n")[:-1]
    assert all(event.startswith("data: ") and "\n" not in event for event in events)
    return [json.loads(event.removeprefix("data: ")) for event in events]


def data_as_map(written: object) -> dict[str, Any]:
    assert isinstance(written, dict)
    fields: dict[str, Any] = written["inference_results"][0]["output"][0]["dataAsMap"]
    return fields


def text_key(wire: WireFormat) -> str:
    return "response" if wire is NDJSON else "content"


def test_a_chunk_of_sse_is_as_ml_commons_prints_it() -> None:
    assert (
        SSE.chunks([Chunk('Hé "l"')])
        == (
            'data: {"inference_results":[{"output":[{"name":"response","dataAsMap":'
            '{"content":"Hé \\"l\\"","is_last":false}}]}]}\n\n'
        ).encode()
    )


def test_a_chunk_of_ndjson_is_as_the_rfc_has_it() -> None:
    assert NDJSON.chunks([Chunk("Hi")]) == (
        b'{"inference_results":[{"output":[{"name":"response","dataAsMap":{"response":"Hi"}}],"status_code":200}]}\n'
    )


@BOTH
@given(texts=st.lists(st.text(), max_size=4))
def test_all_the_chunks_of_one_read_are_whole_objects(wire: WireFormat, texts: list[str]) -> None:
    if not texts:
        assert wire.chunks([]) == b""
        return
    written = wire.chunks([Chunk(text) for text in texts])
    key = text_key(wire)
    lines = written.decode().split("\n" if wire is NDJSON else "\n\n")
    assert [data_as_map(json.loads(one.removeprefix("data: ")))[key] for one in lines if one] == texts


@BOTH
@given(texts=st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_a_run_of_texts_is_written_as_its_chunks_are(wire: WireFormat, texts: list[str]) -> None:
    run = TextRun(TextRun.SEPARATOR.join(orjson.dumps(text)[1:-1] for text in texts))
    assert wire.chunks(run) == wire.chunks([Chunk(text) for text in texts])


@BOTH
def test_a_run_of_texts_is_written_as_the_provider_wrote_it(wire: WireFormat) -> None:
    written = wire.chunks(TextRun(b"\\u00e9\0b"))
    assert b'"\\u00e9"' in written
    key = text_key(wire)
    assert [data_as_map(one)[key] for one in objects(written, wire)] == ["\u00e9", "b"]


@BOTH
def test_runs_of_texts_and_other_chunks_of_one_stream_join_to_whole_objects(wire: WireFormat) -> None:
    reads: list[Chunks] = [
        TextRun(b"a\0b"),
        [Chunk("c", "why"), Chunk("d")],
        TextRun(b"e"),
        [Chunk(tool_calls=(ToolCall(0, "i", "f"),))],
        [],
        TextRun(b"g\0h\0i"),
    ]
    written = b"".join(wire.chunks(read) for read in reads)
    fields = [data_as_map(one) for one in objects(written, wire)]
    assert [one[text_key(wire)] for one in fields] == ["a", "b", "c", "d", "e", "", "g", "h", "i"]
    assert [one.get("reasoning") for one in fields] == [None, None, "why", *[None] * 6]
    assert ["tool_calls" in one for one in fields] == [*[False] * 5, True, *[False] * 3]
    assert {one.get("is_last") for one in fields} == ({None} if wire is NDJSON else {False})


@BOTH
def test_a_run_that_the_decoder_joined_is_written_as_its_chunks_are(wire: WireFormat) -> None:
    first = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
    event = 'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n'
    other = b'data: {"choices":[{"delta":{"content":"r"},"index":0}]}\n\n'
    decoder = OPENAI_CHAT.decoder()
    decoder.feed(first)
    chunks = decoder.feed("".join(event % text for text in ("b", "\\u00e9", "\u4e16")).encode() + other)
    assert isinstance(chunks, TextRun)
    fields = [data_as_map(one)[text_key(wire)] for one in objects(wire.chunks(chunks), wire)]
    assert fields == ["b", "\u00e9", "\u4e16", "r"]


@BOTH
@pytest.mark.parametrize(
    ("chunk", "fields"),
    [
        (Chunk("t", reasoning="r"), {"reasoning": "r"}),
        (Chunk("t", signature="s"), {"reasoning_signature": "s"}),
        (Chunk("t", tool_calls=(ToolCall(0),)), {"tool_calls": [{"index": 0, "arguments": ""}]}),
    ],
)
def test_a_chunk_has_only_the_fields_that_it_fills(wire: WireFormat, chunk: Chunk, fields: dict[str, Any]) -> None:
    (written,) = objects(wire.chunks([chunk]), wire)
    is_last = {} if wire is NDJSON else {"is_last": False}
    assert data_as_map(written) == {text_key(wire): "t", **is_last, **fields}


@BOTH
def test_reasoning_and_tool_calls_stand_beside_the_text(wire: WireFormat) -> None:
    chunk = Chunk("t", "r", (ToolCall(0, "id", "f", "{"), ToolCall(1, arguments="}")))
    (written,) = objects(wire.chunks([chunk]), wire)
    fields = data_as_map(written)
    assert fields[text_key(wire)] == "t"
    assert fields["reasoning"] == "r"
    assert fields["tool_calls"] == [
        {"index": 0, "id": "id", "name": "f", "arguments": "{"},
        {"index": 1, "arguments": "}"},
    ]


@BOTH
def test_a_good_end_says_all_that_is_known(wire: WireFormat) -> None:
    ending = Ending("length", "max_tokens", Usage(1, 2, cached_tokens=0), "m")
    (written,) = objects(wire.ending(ending, {"model_id": "m2"}), wire)
    assert data_as_map(written) == {
        text_key(wire): "",
        "is_last": True,
        "finish_reason": "length",
        "native_finish_reason": "max_tokens",
        "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3, "cached_tokens": 0},
        "model": "m",
        "model_id": "m2",
    }


@BOTH
def test_an_end_by_a_guardrail_names_it(wire: WireFormat) -> None:
    (written,) = objects(wire.ending(Ending("content_filter", guardrail="regex[0]"), {}), wire)
    expected = {text_key(wire): "", "is_last": True, "finish_reason": "content_filter", "guardrail": "regex[0]"}
    assert data_as_map(written) == expected


@BOTH
def test_a_good_end_without_details_is_short(wire: WireFormat) -> None:
    (written,) = objects(wire.ending(Ending(), {}), wire)
    assert set(data_as_map(written)) == {text_key(wire), "is_last", "finish_reason"}


def test_the_bad_end_of_ndjson_is_opensearchs_error_object() -> None:
    error = UpstreamError("down", provider_status=503)
    assert objects(NDJSON.error(error), NDJSON) == [
        {
            "error": {
                "root_cause": [{"type": "status_exception", "reason": "down"}],
                "type": "status_exception",
                "reason": "down",
                "provider_status": 503,
            },
            "status": 424,
        }
    ]


def test_the_bad_end_of_sse_has_its_reason_as_a_string() -> None:
    error = UpstreamError("down", provider_status=503)
    assert objects(SSE.error(error), SSE) == [
        {"error": "down", "type": "status_exception", "status": 424, "provider_status": 503}
    ]


@BOTH
@pytest.mark.parametrize("reason", ['"', "\\", "\n\n data: x", "\x00\x1f", "\u2028", "\ud800", "}{", "é世😀"])
def test_an_error_is_valid_json_whatever_it_says(wire: WireFormat, reason: str) -> None:
    error: MLStreamError = InvalidRequest(reason)
    written = wire.error(error)
    assert written.count(b"\n") == (1 if wire is NDJSON else 2)
    (written_object,) = objects(written, wire)
    reason_written = written_object["error"]["reason"] if wire is NDJSON else written_object["error"]
    assert reason_written == reason.replace("\ud800", "?")


def test_an_error_has_the_providers_status_only_where_the_provider_responded() -> None:
    assert "provider_status" not in objects(SSE.error(UpstreamError("down")), SSE)[0]
    assert "provider_status" not in objects(NDJSON.error(UpstreamError("down")), NDJSON)[0]["error"]


def test_an_error_has_the_words_by_which_its_provider_names_it() -> None:
    error = UpstreamError("long", provider_status=400, provider=ProviderWords("c", "t", "p"))
    fields = {"provider_status": 400, "provider_code": "c", "provider_type": "t", "provider_param": "p"}
    assert objects(SSE.error(error), SSE)[0].items() >= fields.items()
    assert objects(NDJSON.error(error), NDJSON)[0]["error"].items() >= fields.items()


@BOTH
def test_the_result_of_every_object_has_its_name_and_in_ndjson_its_status(wire: WireFormat) -> None:
    for written in (wire.chunks([Chunk("t", "r")]), wire.ending(Ending(), {})):
        (written_object,) = objects(written, wire)
        (result,) = written_object["inference_results"]
        (output,) = result.pop("output")
        assert output["name"] == "response"
        assert result == ({"status_code": 200} if wire is NDJSON else {})


def test_the_content_types_are_those_of_the_formats() -> None:
    assert (NDJSON.content_type, SSE.content_type) == ("application/x-ndjson", "text/event-stream")


@BOTH
def test_a_heartbeat_is_nothing_to_a_client(wire: WireFormat) -> None:
    assert wire.heartbeat == (b"\n" if wire is NDJSON else b": ping\n")
