"""The two wire formats: ML Commons' shapes, byte for byte, and always valid JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.errors import InvalidRequest, MLStreamError, UpstreamError
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
    found: dict[str, Any] = written["inference_results"][0]["output"][0]["dataAsMap"]
    return found


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
    key = "response" if wire is NDJSON else "content"
    found = written.decode().split("\n" if wire is NDJSON else "\n\n")
    assert [data_as_map(json.loads(one.removeprefix("data: ")))[key] for one in found if one] == texts


@BOTH
def test_reasoning_and_tool_calls_stand_beside_the_text(wire: WireFormat) -> None:
    chunk = Chunk("t", "r", (ToolCall(0, "id", "f", "{"), ToolCall(1, arguments="}")))
    (written,) = objects(wire.chunks([chunk]), wire)
    found = data_as_map(written)
    assert found["response" if wire is NDJSON else "content"] == "t"
    assert found["reasoning"] == "r"
    assert found["tool_calls"] == [
        {"index": 0, "id": "id", "name": "f", "arguments": "{"},
        {"index": 1, "arguments": "}"},
    ]


@BOTH
def test_a_good_end_says_all_that_is_known(wire: WireFormat) -> None:
    ending = Ending("length", "max_tokens", Usage(1, 2, cached_tokens=0), "m", {"own": 1})
    (written,) = objects(wire.ending(ending, {"skipped_events": 2}), wire)
    assert data_as_map(written) == {
        ("response" if wire is NDJSON else "content"): "",
        "is_last": True,
        "finish_reason": "length",
        "native_finish_reason": "max_tokens",
        "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3, "cached_tokens": 0},
        "model": "m",
        "own": 1,
        "skipped_events": 2,
    }


@BOTH
def test_a_good_end_without_details_is_short(wire: WireFormat) -> None:
    (written,) = objects(wire.ending(Ending(), {}), wire)
    assert set(data_as_map(written)) == {"response" if wire is NDJSON else "content", "is_last", "finish_reason"}


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
    (found,) = objects(written, wire)
    said = found["error"]["reason"] if wire is NDJSON else found["error"]
    assert said == reason.replace("\ud800", "?")


@BOTH
def test_a_heartbeat_is_nothing_to_a_client(wire: WireFormat) -> None:
    assert wire.heartbeat == (b"\n" if wire is NDJSON else b": ping\n")
