"""Provider streams that are damaged, foreign or hostile: one ending each, wherever they are cut."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from integration_tests.fuzz.bounds import TIMEOUT_SECONDS, corpus, show, tries
from integration_tests.fuzz.mutations import edited, edits, event_frame, json_values, replaced, replacements

from opensearch_ml_stream.connectors.chunks import FINISH_REASONS, Chunk, Ending, to_chunk_list
from opensearch_ml_stream.connectors.decoding.plain_text import PlainTextFraming
from opensearch_ml_stream.connectors.errors import MLStreamError, UpstreamError
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.connectors.stream_parameter import read_stream_spec
from opensearch_ml_stream.connectors.stream_spec import StreamSpec
from opensearch_ml_stream.connectors.wire_format import NDJSON, SSE
from tests.providers.recorded_streams import ALL_STREAMS

pytestmark = pytest.mark.timeout(TIMEOUT_SECONDS)

TRANSCRIPTS = [recorded.data for recorded in ALL_STREAMS]
_FRAMINGS = ("sse", "ndjson", "json_array", "aws_eventstream", "text")
CUSTOM = [
    json.dumps({"framing": framing, "events": {"text": "$.text", "reasoning": "$..why", "tool_calls": "$.calls",
                "finish": "$.end", "usage": "$.usage", "error": "$.error"}, "terminator": {"data": "[DONE]"}})
    for framing in _FRAMINGS[:4]
] + ['{"framing": "text"}']  # fmt: skip
_PRESETS = sorted(SHIPPED.presets)
SPECS = st.sampled_from([*_PRESETS, *CUSTOM])
AMAZON_EVENTS = (
    "messageStart", "contentBlockStart", "contentBlockDelta", "messageStop", "metadata", "chunk", "PayloadPart", "",
)  # fmt: skip
CUTS = st.lists(st.integers(0, 20_000), max_size=6)


def spec_named(name: str) -> StreamSpec:
    """A preset, or what `_stream` describes."""
    return SHIPPED.presets[name] if name in SHIPPED.presets else read_stream_spec(name)


def played(spec: StreamSpec, pieces: Sequence[bytes]) -> tuple[object, ...]:
    """All that a stream in these pieces gives, as values that compare. Asserts that it ends once, and for good."""
    decoder = spec.decoder()
    chunks: list[Chunk] = []
    for piece in pieces:
        before = decoder.outcome
        more = decoder.feed(piece)
        assert before is None or not more
        assert before is None or decoder.outcome is before
        written(more)
        chunks += to_chunk_list(more)
    chunks += to_chunk_list(decoder.close())
    outcome = decoder.outcome
    assert outcome is not None
    assert to_chunk_list(decoder.feed(b"data: {}\n\n")) == [] and to_chunk_list(decoder.close()) == []
    assert decoder.outcome is outcome
    if spec.framing is PlainTextFraming:  # whose chunks are what was read
        chunks = [Chunk("".join(chunk.text for chunk in chunks))]
    for wire in (NDJSON, SSE):
        last = wire.ending(outcome, {}) if isinstance(outcome, Ending) else wire.error(outcome)
        orjson.loads(last.strip().removeprefix(b"data: "))
    if isinstance(outcome, Ending):
        assert outcome.finish_reason in FINISH_REASONS
        usage = None if outcome.usage is None else outcome.usage.as_dict()
        return chunks, outcome.finish_reason, outcome.native_finish_reason, usage, outcome.model
    assert isinstance(outcome, UpstreamError)
    return chunks, type(outcome), outcome.reason, outcome.status


def written(chunks: Any) -> None:
    """Each object of both wire formats is JSON."""
    for line in NDJSON.chunks(chunks).splitlines():
        orjson.loads(line)
    for block in SSE.chunks(chunks).split(b"\n\n")[:-1]:
        orjson.loads(block.removeprefix(b"data: "))


def tried(name: str, data: bytes, cuts: Sequence[int]) -> None:
    show("decoders", spec=name, data=data.decode("latin-1"))
    check(name, data, cuts)


def check(name: str, data: bytes, cuts: Sequence[int]) -> None:
    """One piece, the given pieces and single bytes give the same."""
    spec = spec_named(name)
    whole = played(spec, [data])
    ends = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    assert played(spec, [data[start:end] for start, end in pairwise(ends)]) == whole
    if len(data) < 400:
        assert played(spec, [data[at : at + 1] for at in range(len(data))]) == whole


@pytest.mark.parametrize("case", corpus("decoders"))
def test_a_stream_that_once_failed_ends_once(case: dict[str, str]) -> None:
    data = case["data"].encode("latin-1")
    check(case["spec"], data, range(len(data)))


@tries(200)
@given(SPECS, st.one_of(st.binary(max_size=200), st.text(max_size=100).map(str.encode)), CUTS)
def test_any_bytes_end_once(name: str, data: bytes, cuts: list[int]) -> None:
    tried(name, data, cuts)


@tries(300)
@given(SPECS, st.sampled_from(TRANSCRIPTS), edits(), CUTS)
def test_a_damaged_stream_ends_once_whosever_it_is(
    name: str, transcript: bytes, changes: list[Any], cuts: list[int]
) -> None:
    tried(name, edited(transcript, changes), cuts)


@tries(400)
@given(SPECS, st.sampled_from(TRANSCRIPTS), replacements(), CUTS)
def test_events_with_foreign_values_end_once(name: str, transcript: bytes, changes: list[Any], cuts: list[int]) -> None:
    """In the framing of the transcript, of which each second preset is."""
    lines = transcript.split(b"\n")
    for number, line in enumerate(lines):
        prefix, brace, rest = line.partition(b"{")
        if brace and b"[" not in prefix:
            lines[number] = prefix + _replaced(
                b"{" + rest, [change for change in changes if change[0] % 5 == number % 5]
            )
    tried(name, b"\n".join(lines), cuts)


@tries(150)
@given(
    st.sampled_from([name for name in _PRESETS if "bedrock" in name or "sagemaker" in name] + [CUSTOM[3]]),
    st.lists(
        st.tuples(
            st.sampled_from(AMAZON_EVENTS),
            json_values(),
        ),
        max_size=6,
    ),
    CUTS,
)  # fmt: skip
def test_frames_of_amazon_with_foreign_values_end_once(name: str, events: list[Any], cuts: list[int]) -> None:
    tried(name, b"".join(event_frame(kind, json.dumps(value).encode()) for kind, value in events), cuts)


@tries(150)
@given(st.recursive(st.none() | st.booleans() | st.text(max_size=5), lambda inner: st.dictionaries(
    st.sampled_from(["preset", "framing", "events", "text", "match", "field", "terminator", "data", "event", "eof_ok",
                     "enable", "body", "url", "replace", "query", "headers", "drop", "mode", "payload", "usage"]),
    inner | st.sampled_from(["$.a", "$..*", "sse", "ndjson", "delta", "sagemaker", *_PRESETS]) | st.lists(inner),
    max_size=4)))  # fmt: skip
def test_a_description_of_a_stream_is_read_or_refused(document: object) -> None:
    try:
        spec = read_stream_spec(json.dumps(document))
    except MLStreamError as error:
        assert error.status == 400
    else:
        played(spec, [b'data: {"a": 1}\n\n'])


def _replaced(data: bytes, changes: list[Any]) -> bytes:
    try:
        value = json.loads(data)
    except ValueError:
        return data
    return json.dumps(replaced(value, changes)).encode("utf-8", "replace")
