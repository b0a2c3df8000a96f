import base64

import orjson
import pytest

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.doctor.diagnosis.recording import (
    MAX_BYTES,
    Read,
    Recording,
    harmless_headers,
    read_recording,
    read_recording_file,
)

RECORDING = Recording(
    200,
    (("content-type", "text/event-stream"),),
    (
        Read(12.3, b'data: {"a": "\xc3\xa4"}\n\n'),
        Read(14.0, b"\xff\x00"),
        Read(14.0, b"half \xc3"),
        Read(15.5, b"\xa4"),
    ),
    "complete",
    20.0,
)
HEAD = {"format": "opensearch-ml-stream recording", "version": 1, "status": 200, "headers": []}
LAST = {"ms": 1, "end": "complete"}


def test_a_recording_is_read_as_it_was_written() -> None:
    assert read_recording_file(RECORDING.to_file()) == RECORDING
    assert read_recording(RECORDING.to_lines()) == RECORDING


def test_a_file_is_json_lines_with_text_where_the_bytes_are_text() -> None:
    head, first, second, *_, last = map(orjson.loads, RECORDING.to_file().splitlines())
    assert head == {**HEAD, "headers": [["content-type", "text/event-stream"]]}
    assert first == {"ms": 12.3, "text": 'data: {"a": "ä"}\n\n'}
    assert second == {"ms": 14.0, "base64": base64.b64encode(b"\xff\x00").decode()}
    assert last == {"ms": 20.0, "end": "complete"}


def test_only_headers_about_the_body_are_kept() -> None:
    headers = {"content-type": "text/event-stream", "set-cookie": "session=1", "x-request-id": "7", "retry-after": "3"}
    assert harmless_headers(headers) == (("content-type", "text/event-stream"), ("retry-after", "3"))


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "This is no recording"),
        ([{"hello": 1}], "This is no recording"),
        ([{**HEAD, "version": 2}, LAST], "version 2"),
        ([{**HEAD, "status": 99}, LAST], "Line 1"),
        ([{**HEAD, "headers": [["set-cookie", "a"]]}, LAST], "Line 1"),
        ([{**HEAD, "headers": [["content-type", "a\r\nb: c"]]}, LAST], "Line 1"),
        ([HEAD], "0 to"),
        ([HEAD, {"ms": 1}, LAST], "Line 2"),
        ([HEAD, {"ms": True, "text": ""}, LAST], "Line 2"),
        ([HEAD, {"ms": 2, "text": ""}, {"ms": 1, "text": ""}, LAST], "Line 3"),
        ([HEAD, {"ms": 1, "text": "\ud800"}, LAST], "Line 2"),
        ([HEAD, {"ms": 1, "base64": "?"}, LAST], "Line 2"),
        ([HEAD, {"ms": 1, "text": "a" * (MAX_BYTES + 1)}, LAST], "Line 2"),
        ([HEAD, {"ms": 1, "text": "a"}], "the last"),
        ([HEAD, {"ms": 1, "end": "somehow"}], "the last"),
        ([HEAD, 5], "Line 2"),
    ],
)
def test_what_is_no_recording_is_refused_with_the_line(lines: list[object], problem: str) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        read_recording(lines)


def test_a_line_that_is_no_json_is_named() -> None:
    with pytest.raises(InvalidRequest, match="Line 2 of the recording is not JSON"):
        read_recording_file(orjson.dumps(HEAD) + b"\n\nnonsense\n")
