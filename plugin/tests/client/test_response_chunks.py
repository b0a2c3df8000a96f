"""The parser of `_predict/stream` responses: bytes in, chunks out, however the bytes are cut."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.client.errors import ProviderFailed, RequestRefused, SidecarError, StreamTruncated
from opensearch_ml_stream.client.response_chunks import Chunk, ChunkReader
from opensearch_ml_stream.connectors import errors as sent_errors
from opensearch_ml_stream.connectors.chunks import Chunk as SentChunk
from opensearch_ml_stream.connectors.chunks import Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.wire_format import NDJSON, SSE, WireFormat

SENT = [
    SentChunk("Hé\u2028l😀\r\n"),
    SentChunk("", "thinking", (ToolCall(1, "id", "f", "{"),)),
    SentChunk("data: {}\n\n"),
]
BOTH = pytest.mark.parametrize("wire", [NDJSON, SSE], ids=["ndjson", "sse"])


def transcript(wire: WireFormat) -> bytes:
    ending = wire.ending(Ending("length", "max_tokens", Usage(1, 2), "m"), {})
    return wire.heartbeat + wire.chunks(SENT[:1]) + wire.heartbeat + wire.chunks(SENT[1:]) + ending


def read(*pieces: bytes) -> list[Chunk]:
    reader = ChunkReader()
    return [chunk for piece in pieces for chunk in reader.feed(piece)] + list(reader.close())


@BOTH
def test_every_chunk_comes_out_as_it_was_sent(wire: WireFormat) -> None:
    *chunks, last = read(transcript(wire))
    assert [(chunk.text, chunk.reasoning) for chunk in chunks] == [(sent.text, sent.reasoning) for sent in SENT]
    assert chunks[1].tool_calls == ({"index": 1, "id": "id", "name": "f", "arguments": "{"},)
    assert (last.is_last, last.finish_reason, last.model) == (True, "length", "m")
    assert last.usage == {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}


@BOTH
def test_any_size_of_pieces_gives_the_same_chunks(wire: WireFormat) -> None:
    data = transcript(wire)
    whole = read(data)
    for size in range(1, len(data)):
        assert read(*(data[start : start + size] for start in range(0, len(data), size))) == whole


@given(cuts=st.lists(st.integers(0, 2000), max_size=8), sse=st.booleans(), crlf=st.booleans())
def test_any_cuts_give_the_same_chunks(cuts: list[int], sse: bool, crlf: bool) -> None:
    data = transcript(SSE if sse else NDJSON)
    if crlf:
        data = data.replace(b"\n", b"\r\n")
    bounds = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    assert read(*(data[a:b] for a, b in pairwise(bounds))) == read(data)


@BOTH
def test_a_stream_that_ends_anywhere_before_its_last_chunk_is_cut_short(wire: WireFormat) -> None:
    data = transcript(wire).rstrip()
    for end in range(len(data)):
        with pytest.raises(StreamTruncated):
            read(data[:end])
    assert read(data)[-1].is_last


@BOTH
def test_an_error_is_raised_with_status_type_and_reason(wire: WireFormat) -> None:
    sent = UpstreamError('say "no"\n', type="remote_exception", provider_status=500)
    with pytest.raises(ProviderFailed) as raised:
        read(wire.error(sent))
    error = raised.value
    assert (error.status, error.type, error.reason, error.provider_status) == (
        424,
        "remote_exception",
        'say "no"\n',
        500,
    )


@BOTH
@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (sent_errors.StreamTruncated("cut"), StreamTruncated),
        (UpstreamError("slow down", provider_status=429), ProviderFailed),
        (sent_errors.Throttled("spent", type="budget_exceeded_exception"), RequestRefused),
    ],
    ids=["truncated", "provider", "sidecar"],
)
def test_an_error_in_the_stream_is_of_the_kind_of_its_cause(
    wire: WireFormat, sent: sent_errors.MLStreamError, kind: type[SidecarError]
) -> None:
    with pytest.raises(SidecarError) as raised:
        read(wire.error(sent))
    assert type(raised.value) is kind
    assert (raised.value.reason, raised.value.status, raised.value.type) == (sent.reason, sent.status, sent.type)


def test_an_error_of_ml_commons_own_stream_has_only_a_reason() -> None:
    with pytest.raises(ProviderFailed) as raised:
        read(b'data: {"error": "Fail to execute streaming"}\n\n')
    assert (raised.value.status, raised.value.reason) == (424, "Fail to execute streaming")


@pytest.mark.parametrize("line", [b"{", b'{"a": 1}', b'{"inference_results": []}', b'{"inference_results": 7}'])
def test_an_object_that_is_no_inference_result_is_an_error_that_does_not_repeat_it(line: bytes) -> None:
    with pytest.raises(SidecarError, match="no inference result"):
        read(line + b"\n")


def test_nothing_after_the_last_chunk_is_read() -> None:
    ending = NDJSON.ending(Ending(), {})
    assert len(read(ending + ending + NDJSON.error(UpstreamError("late")))) == 1


def test_a_line_in_many_pieces_costs_no_more_than_its_length() -> None:
    text = "x" * 400_000
    data: Any = NDJSON.chunks([SentChunk(text)]) + NDJSON.ending(Ending(), {})
    assert read(*(data[at : at + 1] for at in range(len(data))))[0].text == text
