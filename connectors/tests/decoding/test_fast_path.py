"""The short way (text cut out of repeating events) gives what the long way (parsing) gives."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.chunks import as_list
from opensearch_ml_stream.connectors.decoding.decoder import Decoder
from opensearch_ml_stream.connectors.decoding.fast_path import FastPathDecoder
from opensearch_ml_stream.connectors.decoding.framing.sse import SSEFraming
from opensearch_ml_stream.connectors.selection.presets import PRESETS
from opensearch_ml_stream.connectors.stream_spec import StreamSpec

REPEATING = [spec for spec in PRESETS.values() if spec.has_fast_path]

# Shapes with the text at {}: two of each dialect, so that frames change in the middle of a stream.
SHAPES = {
    "openai/v1/chat/completions": [
        'data: {"id":"x","model":"m","choices":[{"index":0,"delta":{"content":{}},"finish_reason":null}]}\n\n',
        'data: {"id":"x","choices":[{"delta":{"content":{},"role":"assistant"}}],"usage":null}\n\n',
        'data: {"id":"x","choices":[{"delta":{"reasoning_content":{}}}]}\n\n',
        'data: {"choices":[{"delta":{},"finish_reason":{}}]}\n\n',
        ': {}\n\n',
    ],
    "anthropic/v1/messages": [
        'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
        '"delta":{"type":"text_delta","text":{}}}\n\n',
        'data: {"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":{}}}\n\n',
        'data: {"type":"ping","x":{}}\n\n',
    ],
    "v2/models/infer_stream": [
        'data: {"model_name":"m","outputs":[{"name":"output","shape":[1,1],"datatype":"BYTES","data":[{}]}]}\n\n',
        'data: {"model_name":{},"outputs":[{"name":"output","shape":[1],"datatype":"BYTES","data":["a"]}]}\n\n',
    ],
}  # fmt: skip

# What stands between the quotes of a text's JSON string, and should not.
EVIL = [
    b'"', b"\\", b"\x00", b"\n", b"a\nb", b"a\x00b", b"\xff", b"\xed\xa0\x80", b'","content":"',
    b"\\u00e9", b"\\ud83d\\ude00", b"\\ud83d", b"\\ude00", b"\\ud83dx", b"\\u12", b"\\x", b"a\\", b"\\\\", b'\\"',
]  # fmt: skip

texts = st.one_of(
    st.text(max_size=6),
    st.sampled_from(['"', "\\", "\n", "\u2028", "ü", "😀", "stop", "", '"},', "data: ", "\x01", "\x7f"]),
)


def long_way(spec: StreamSpec) -> Decoder:
    return Decoder(SSEFraming(), spec.provider())


def play(decoder: Decoder | FastPathDecoder, pieces: Sequence[bytes]) -> object:
    chunks = [chunk for piece in pieces for chunk in as_list(decoder.feed(piece))]
    chunks += as_list(decoder.close())
    return chunks, repr(decoder.outcome), decoder.skipped_events, decoder.chunks


@pytest.mark.parametrize("name", SHAPES)
@given(data=st.data())
def test_both_ways_agree_on_any_stream_cut_anywhere(name: str, data: st.DataObject) -> None:
    spec = PRESETS[name]
    shapes = st.sampled_from(SHAPES[name])
    ascii_only = data.draw(st.booleans())
    events = [
        shape.replace("{}", json.dumps(text, ensure_ascii=ascii_only), 1).encode("utf-8", "surrogatepass")
        for shape, run in data.draw(st.lists(st.tuples(shapes, st.lists(texts, max_size=5)), max_size=5))
        for text in run
    ]
    raw = b"".join(events)
    ends = [sum(map(len, events[: number + 1])) for number in range(len(events))]
    beside_ends = st.sampled_from([end + off for end in ends for off in (-1, 0) if end + off >= 0] or [0])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)) | beside_ends, max_size=6)))
    pieces = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    for way in (events, [raw], pieces):
        assert play(spec.decoder(), way) == play(long_way(spec), way)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(
    "evil", [b'"', b"\\", b"\x00", b"\n", b"a\nb", b"a\x00b", b"\xff", b"\xed\xa0\x80", b'","content":"', b"\\u00e9"]
)
def test_bytes_that_are_no_plain_text_are_parsed(name: str, evil: bytes) -> None:
    spec = PRESETS[name]
    shape = SHAPES[name][0].encode()
    events = [shape.replace(b"{}", b'"%b"' % text, 1) for text in (b"one", b"two", evil, b"four")]
    assert play(spec.decoder(), events) == play(long_way(spec), events)
    assert play(spec.decoder(), [b"".join(events)]) == play(long_way(spec), [b"".join(events)])


def chat(text: str, before: str = "") -> bytes:
    return f'data: {{{before}"choices":[{{"delta":{{"content":"{text}"}}}}]}}\n\n'.encode()


@pytest.mark.parametrize("text", ["Hello", " Hello", "\\u00e9", "\\n"])
@pytest.mark.parametrize("before", ["", '"id":"x",'])
def test_a_frame_learned_in_the_middle_of_a_read_cuts_only_what_is_of_it(text: str, before: str) -> None:
    spec = PRESETS["openai/v1/chat/completions"]
    learned = chat(" a") + chat(" b", before)
    for pieces in (
        [chat(" a"), chat(" b")[:-1], b"\n" + chat(" c", before) + chat(text)],
        [learned, chat(" c", before) + chat(text)],
        [chat(" a"), chat(" b")[:-2], b"\n\n" + chat(" c", before) + chat(text, before) + chat(text)],
    ):
        assert play(spec.decoder(), pieces) == play(long_way(spec), pieces)


@pytest.mark.parametrize("spec", REPEATING, ids=lambda spec: spec.name)
def test_every_spec_that_says_it_repeats_has_a_decoder_that_is_quick(spec: StreamSpec) -> None:
    assert isinstance(spec.decoder(), FastPathDecoder)


def test_repeating_events_are_not_parsed() -> None:
    spec = PRESETS["openai/v1/chat/completions"]
    parsed = 0

    class Counting:
        def __init__(self) -> None:
            self._provider = spec.provider()
            self.end_of_input = self._provider.end_of_input

        def read(self, event, chunks):  # type: ignore[no-untyped-def]
            nonlocal parsed
            parsed += 1
            return self._provider.read(event, chunks)

    decoder = FastPathDecoder(Counting)
    shape = SHAPES["openai/v1/chat/completions"][0]
    answer = [as_list(decoder.feed(shape.replace("{}", json.dumps(f"t{n}"), 1).encode()))[0].text for n in range(100)]
    assert answer == [f"t{n}" for n in range(100)]
    assert parsed <= 3  # the first event, and the probe
