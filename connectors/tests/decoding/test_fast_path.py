"""The fast path (text cut out of repeating events) gives what the slow path (parsing) gives."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opensearch_ml_stream.connectors.chunks import Chunk, ChunkParts, Ending, TextRun, to_chunk_list
from opensearch_ml_stream.connectors.decoding.contract import Finishing, Outcome
from opensearch_ml_stream.connectors.decoding.decoder import (
    EVENTS_TO_LEARN_FROM,
    LONG_READ_BYTES,
    MAX_LEARNED_FRAMES,
    Decoder,
    FastPathDecoder,
)
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from opensearch_ml_stream.connectors.stream_spec import StreamSpec

CHAT = SHIPPED.presets["openai/v1/chat/completions"]
FAST_SPECS = [spec for spec in SHIPPED.presets.values() if spec.has_fast_path]

# Shapes with the text at {}: two of each dialect, so that frames change in the middle of a stream.
SHAPES = {
    "openai/v1/chat/completions": [
        'data: {"id":"x","model":"m","choices":[{"index":0,"delta":{"content":{}},"finish_reason":null}]}\n\n',
        'data: {"id":"x","choices":[{"delta":{"content":{},"role":"assistant"}}],"usage":null}\n\n',
        'data: {"id":"x","choices":[{"delta":{"reasoning_content":{}}}]}\n\n',
        'data: {"choices":[{"delta":{},"finish_reason":{}}]}\n\n',
        ': {}\n\n',
        'data: {"id":"x","choices":[{"delta":{"content":{}}}],"obfuscation":"aB3"}\n\n',
        'data: {"id":"x","choices":[{"delta":{"content":{}}}],"obfuscation":""}\n\n',
        'data: {"id":"x","choices":[{"delta":{"content":"a"}}],"obfuscation":{}}\n\n',
        'data: {"id":"x","choices":[{"delta":{"content":{}}}],"p":"abc"}\n\n',
        'data: {"id":"\ud83d","choices":[{"delta":{"content":{}},"logprob":NaN}]}\n\n',
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

# What must not be cut out as it is, between the quotes of a text's JSON string.
NOT_PLAIN = [
    b'"', b"\\", b"\x00", b"\n", b"a\nb", b"a\x00b", b"\xff", b"\xed\xa0\x80", b'","content":"',
    b"\\u00e9", b"\\ud83d\\ude00", b"\\ud83d", b"\\ude00", b"\\ud83dx", b"\\u12", b"\\x", b"a\\", b"\\\\", b'\\"',
]  # fmt: skip

texts = st.one_of(
    st.text(max_size=6),
    st.sampled_from(['"', "\\", "\n", "\u2028", "ü", "😀", "stop", "", '"},', "data: ", "\x01", "\x7f"]),
    st.sampled_from(["\ud83d", "a\ud83d", "\ude00", "\ude00b", "\ude00\ud83d", "\ufffd", "a\ufffd"]),
)


def slow_path(spec: StreamSpec) -> Decoder:
    return Decoder(SSEFraming(), spec.reader())


def play(decoder: Decoder | FastPathDecoder, pieces: Sequence[bytes]) -> object:
    chunks = [chunk for piece in pieces for chunk in to_chunk_list(decoder.feed(piece))]
    chunks += to_chunk_list(decoder.close())
    return chunks, repr(decoder.outcome), decoder.chunk_count


@pytest.mark.parametrize("name", SHAPES)
@given(data=st.data())
def test_both_paths_agree_on_any_stream_cut_anywhere(name: str, data: st.DataObject) -> None:
    spec = SHIPPED.presets[name]
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
    for reads in (events, [raw], pieces):
        assert play(spec.decoder(), reads) == play(slow_path(spec), reads)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("text", NOT_PLAIN)
def test_bytes_that_are_no_plain_text_are_parsed(name: str, text: bytes) -> None:
    spec = SHIPPED.presets[name]
    shape = SHAPES[name][0].encode()
    events = [shape.replace(b"{}", b'"%b"' % content, 1) for content in (b"one", b"two", text, b"four")]
    for pieces in (events, [b"".join(events)], [events[0], b"".join(events[1:])]):
        assert play(spec.decoder(), pieces) == play(slow_path(spec), pieces)


def padded(text: str, padding: str, name: str = "obfuscation") -> bytes:
    return f'data: {{"choices":[{{"delta":{{"content":"{text}"}}}}],"{name}":"{padding}"}}\n\n'.encode()


@pytest.mark.parametrize("name", ["obfuscation", "p"])
def test_events_that_differ_in_their_padding_are_of_one_frame(name: str) -> None:
    decoder = CHAT.decoder()
    decoder.feed(padded("a", "x1", name))
    for data in (padded("b", "x22", name), padded("c", "", name) + padded("d", "x4", name)):
        assert isinstance(decoder.feed(data), TextRun)
    cut = padded("e", "x", name) * 20
    assert isinstance(decoder.feed(cut[:-4]), TextRun)
    assert to_chunk_list(decoder.feed(cut[-4:])) == [Chunk("e")]


@pytest.mark.parametrize("padding", [b"\xff", b"\\", b'"', b"\n"])
def test_a_padding_that_is_no_plain_text_is_parsed(padding: bytes) -> None:
    events = [padded("a", "x"), padded("b", "y"), padded("c", "~").replace(b"~", padding), padded("d", "z")]
    for pieces in (events, [b"".join(events)], [events[0], b"".join(events[1:])]):
        assert play(CHAT.decoder(), pieces) == play(slow_path(CHAT), pieces)


def test_no_frame_is_learned_of_events_that_are_not_quite_json() -> None:
    decoder = CHAT.decoder()
    for text in "abc":
        assert decoder.feed(chat(text, before='"x":NaN,')) == [Chunk(text)]


def test_a_frame_is_learned_anew_when_its_events_begin_to_be_padded() -> None:
    decoder = CHAT.decoder()
    decoder.feed(chat("a"))
    assert isinstance(decoder.feed(chat("b")), TextRun)
    decoder.feed(padded("c", "x"))
    assert isinstance(decoder.feed(padded("d", "y")), TextRun)


def chat(text: str, before: str = "") -> bytes:
    return f'data: {{{before}"choices":[{{"delta":{{"content":"{text}"}}}}]}}\n\n'.encode()


@pytest.mark.parametrize("text", ["Hello", " Hello", "\\u00e9", "\\n"])
@pytest.mark.parametrize("before", ["", '"id":"x",'])
def test_a_frame_learned_in_the_middle_of_a_read_cuts_only_what_is_of_it(text: str, before: str) -> None:
    spec = SHIPPED.presets["openai/v1/chat/completions"]
    learned = chat(" a") + chat(" b", before)
    for pieces in (
        [chat(" a"), chat(" b")[:-1], b"\n" + chat(" c", before) + chat(text)],
        [learned, chat(" c", before) + chat(text)],
        [chat(" a"), chat(" b")[:-2], b"\n\n" + chat(" c", before) + chat(text, before) + chat(text)],
    ):
        assert play(spec.decoder(), pieces) == play(slow_path(spec), pieces)


@pytest.mark.parametrize("spec", FAST_SPECS, ids=lambda spec: spec.name)
def test_every_spec_with_a_fast_path_has_its_decoder(spec: StreamSpec) -> None:
    assert isinstance(spec.decoder(), FastPathDecoder)


class CountingProvider:
    """OpenAI's chat provider that counts the events it reads, over all objects of the class."""

    reads = 0

    def __init__(self) -> None:
        self._provider = CHAT.reader()
        self.end_of_input = self._provider.end_of_input

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        type(self).reads += 1
        return self._provider.read(event, chunks)


def decode_and_count(pieces: Sequence[bytes]) -> tuple[list[str], int]:
    """The texts of the chunks, and how many events were parsed for them, probes included."""

    class Counting(CountingProvider):
        pass

    decoder = FastPathDecoder(Counting)
    texts = [chunk.text for piece in pieces for chunk in to_chunk_list(decoder.feed(piece))]
    return texts, Counting.reads


def test_repeating_events_are_not_parsed() -> None:
    expected = [f"t{number}" for number in range(100)]
    events = [chat(text) for text in expected]
    assert decode_and_count(events) == (expected, 2)  # the first event, and the probe


def test_repeating_events_with_escapes_or_several_in_a_read_are_not_parsed() -> None:
    events = [chat("first"), chat("\\n"), chat("\\ud83d\\ude00"), chat("\u00fc"), chat("a") + chat("b") + chat("c")]
    assert decode_and_count(events) == (["first", "\n", "\U0001f600", "\u00fc", "a", "b", "c"], 2)


def test_a_read_is_cut_though_it_begins_and_ends_within_an_event() -> None:
    body = b"".join(chat(f"t{number}") for number in range(100))
    middle = len(body) // 2 + 7
    texts, parsed = decode_and_count([chat("first"), body[:middle], body[middle:]])
    assert texts == ["first", *[f"t{number}" for number in range(100)]]
    assert parsed <= 4  # the first event, the probe, the event at the cut


def test_the_texts_of_a_read_are_a_run_whatever_comes_before_and_after_them() -> None:
    spec = SHIPPED.presets["openai/v1/chat/completions"]
    other = b'data: {"choices":[{"delta":{"reasoning_content":"%b"},"index":0}]}\n\n'
    texts = [chat(f"t{number}") for number in range(100)]
    read, decoder = b"".join([other % b"a", *texts, other % b"b"]), spec.decoder()
    chunks = decoder.feed(read)
    assert isinstance(chunks, ChunkParts)
    assert max(part.length for part in chunks if isinstance(part, TextRun)) > 90
    assert chunks.to_chunks() == slow_path(spec).feed(read)
    assert decoder.chunk_count == len(chunks.to_chunks())


def test_a_long_text_that_comes_in_several_reads_is_one_chunk() -> None:
    event = chat("x" * 1000)
    pieces = [chat("a"), event[:400], event[400:800], event[800:] + chat("b"), chat("c")]
    assert decode_and_count(pieces)[0] == ["a", "x" * 1000, "b", "c"]
    assert play(CHAT.decoder(), pieces) == play(slow_path(CHAT), pieces)


def test_a_long_first_read_is_parsed_only_at_its_beginning() -> None:
    role = b'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n'
    texts, parsed = decode_and_count([role + b"".join(chat(f"t{number}") for number in range(100))])
    assert texts == [f"t{number}" for number in range(100)]
    assert parsed == EVENTS_TO_LEARN_FROM + 1  # and the probe


@pytest.mark.parametrize(("length", "is_split"), [(LONG_READ_BYTES, False), (LONG_READ_BYTES + 1, True)])
def test_a_first_read_is_split_only_if_it_is_long(length: int, is_split: bool) -> None:
    events = [chat(f"t{number}") for number in range(10)]
    padding = length - len(b"".join(events)) - len(chat("first", '"id":"",'))
    body = chat("first", f'"id":"{"x" * padding}",') + b"".join(events)
    assert len(body) == length
    _, parsed = decode_and_count([body])
    assert parsed == (EVENTS_TO_LEARN_FROM if is_split else 11) + 1  # and the probe


def test_a_long_read_is_split_once() -> None:
    unlearnable = [chat("m", '"model":"m",')] * (EVENTS_TO_LEARN_FROM + 1)
    learnable = [chat(f"t{number}") for number in range(100)]
    texts, parsed = decode_and_count([b"".join([*unlearnable, *learnable])])
    assert texts == ["m"] * len(unlearnable) + [f"t{number}" for number in range(100)]
    assert parsed == len(unlearnable) + 100 + 1  # and the probe for the last event


@pytest.mark.parametrize("name", ["model", "id"])
def test_a_text_that_occurs_twice_in_its_event_teaches_no_frame(name: str) -> None:
    twice = chat("m", f'"{name}":"m",')
    events = [twice, chat("n", f'"{name}":"m",'), twice, chat("o", f'"{name}":"m",')]
    assert decode_and_count(events)[0] == ["m", "n", "m", "o"]
    for pieces in (events, [b"".join(events)], [twice * 40], [twice, *events * 3]):
        assert play(CHAT.decoder(), pieces) == play(slow_path(CHAT), pieces)


def test_a_frame_is_learned_from_the_event_after_one_whose_text_occurs_twice() -> None:
    events = [chat(text, '"model":"m",') for text in ("m", "n", "o", "m", "p")]
    assert decode_and_count(events) == (["m", "n", "o", "m", "p"], 3)  # two events, and the probe


def test_a_stream_whose_frame_keeps_changing_is_learned_from_a_few_times_only() -> None:
    events = [chat(f"t{number}", f'"id":"{number}",') for number in range(50)]
    texts, parsed = decode_and_count(events)
    assert texts == [f"t{number}" for number in range(50)]
    assert parsed == 50 + MAX_LEARNED_FRAMES


def test_a_frame_is_learned_from_an_event_behind_the_end_of_another() -> None:
    pieces = [chat("a")[:-2], b"\n\n" + chat("b"), chat("c"), chat("d")]
    assert decode_and_count(pieces) == (list("abcd"), 3)  # two events, and the probe


def test_a_long_first_read_may_begin_with_a_blank_line() -> None:
    texts, parsed = decode_and_count([b"\n\n" + b"".join(chat(f"t{number}") for number in range(100))])
    assert texts == [f"t{number}" for number in range(100)]
    assert parsed == EVENTS_TO_LEARN_FROM - 1 + 1  # the blank line counts as one; and the probe


def test_a_frame_that_differs_only_behind_the_text_is_learned_too() -> None:
    other = 'data: {"choices":[{"delta":{"content":"%s"},"index":0}]}\n\n'
    events = [chat("a"), *((other % text).encode() for text in "bcd")]
    assert decode_and_count(events) == (list("abcd"), 4)  # two events, two probes


def test_a_frame_that_comes_back_is_learned_again() -> None:
    one, other = '"id":"one",', '"id":"other",'
    events = [chat("a", one), chat("b", one), chat("c", other), chat("d", other), chat("e", one), chat("f", one)]
    assert decode_and_count(events) == (list("abcdef"), 6)  # three events that differ from those before, three probes


@pytest.mark.parametrize("finish", ["null", '"stop"'])
def test_a_frame_in_which_another_text_would_be_lost_is_not_learned(finish: str) -> None:
    event = f'data: {{"choices":[{{"delta":{{"content":"a"}},"finish_reason":{finish}}}]}}\n\n'.encode()
    reasoning = b'data: {"choices":[{"delta":{"content":"a","reasoning":"b"}}]}\n\n'
    for events in ([event, event, reasoning, reasoning], [reasoning, event] * 3):
        assert play(CHAT.decoder(), events) == play(slow_path(CHAT), events)


def test_the_end_of_the_stream_ends_the_fast_path_too() -> None:
    done = b"data: [DONE]\n\n"
    for pieces in (
        [chat("a"), done, chat("b")],
        [chat("a") * 40 + done + chat("b") * 40],
        [chat("a"), done + chat("b") * 3],
    ):
        decoder = CHAT.decoder()
        assert play(decoder, pieces) == play(slow_path(CHAT), pieces)
        assert isinstance(decoder.outcome, Ending)
