"""A surrogate pair that a provider splits over two events is repaired, or its loss is counted."""

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, to_chunk_list
from opensearch_ml_stream.connectors.decoding.decoder import Decoder
from opensearch_ml_stream.connectors.decoding.fast_path import FastPathDecoder
from opensearch_ml_stream.connectors.decoding.surrogates import SurrogateRepair
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.providers.ollama import OLLAMA
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT

EMOJI = "\N{GRINNING FACE}"


def openai(*contents: str) -> bytes:
    """Events whose text is `contents`, JSON as it stands between quotes."""
    events = [f'data: {{"choices":[{{"index":0,"delta":{{"content":"{content}"}}}}]}}\n\n' for content in contents]
    return "".join([*events, "data: [DONE]\n\n"]).encode()


def read(body: bytes, cut: int | None = None) -> tuple[str, Decoder | FastPathDecoder]:
    """The text of an OpenAI stream that comes in two reads."""
    decoder = OPENAI_CHAT.decoder()
    parts = [body] if cut is None else [body[:cut], body[cut:]]
    chunks = [chunk for part in parts for chunk in to_chunk_list(decoder.feed(part))]
    return "".join(chunk.text for chunk in chunks), decoder


@pytest.mark.parametrize(
    ("contents", "text"),
    [
        (("\\ud83d", "\\ude00"), EMOJI),
        (("\\ud83d\\ude00 so \\ud83d", "\\ude00!"), f"{EMOJI} so {EMOJI}!"),
        (("a", "b\\uD83D", "\\uDE00c", "d"), f"ab{EMOJI}cd"),
        (("\\ud83d", "\\ude00\\ud83d", "\\ude00"), EMOJI * 2),
        (("\\\\ud83d is text, and so \\ud83d", "\\ude00"), f"\\ud83d is text, and so {EMOJI}"),
    ],
)
def test_halves_in_two_events_are_one_character_however_the_bytes_are_cut(contents: tuple[str, ...], text: str) -> None:
    body = openai(*contents)
    for cut in range(len(body)):
        got, decoder = read(body, cut)
        assert (got, decoder.skipped_events) == (text, 0)
        assert isinstance(decoder.outcome, Ending)


def test_a_half_whose_other_half_never_comes_is_counted() -> None:
    got, decoder = read(openai("a", "b\\ud83d", "c"))
    assert (got, decoder.skipped_events) == ("abc", 1)
    assert isinstance(decoder.outcome, Ending)


@pytest.mark.parametrize("events", [("a", "b\\ud83d"), ("\\ud83d",), ("a", "\\ud83d\\ude00b\\ud83d")])
def test_a_half_at_the_end_of_the_response_is_counted(events: tuple[str, ...]) -> None:
    _, decoder = read(openai(*events))
    assert decoder.skipped_events == 1
    assert isinstance(decoder.outcome, Ending)


def test_every_half_that_is_lost_is_counted() -> None:
    got, decoder = read(openai("a\\ud83d", "b\\ud83d", "c", "d\\ud83d"))
    assert (got, decoder.skipped_events) == ("abcd", 3)


@pytest.mark.parametrize("high", [0xD800, 0xDBFF])
@pytest.mark.parametrize("low", [0xDC00, 0xDFFF])
def test_the_first_and_last_of_either_half_are_halves(high: int, low: int) -> None:
    character = chr(0x10000 + (high - 0xD800) * 0x400 + low - 0xDC00)
    got, decoder = read(openai(f"a\\u{high:x}", f"\\u{low:X}b"))
    assert (got, decoder.skipped_events) == (f"a{character}b", 0)


@pytest.mark.parametrize("code", ["d7ff", "e000", "0000"])
def test_what_is_beside_the_surrogates_is_a_character_of_its_own(code: str) -> None:
    got, decoder = read(openai(f"a\\u{code}", f"\\u{code}b", "\\ud83d", f"\\u{code}"))
    assert (got, decoder.skipped_events) == (f"a{chr(int(code, 16)) * 2}b{chr(int(code, 16))}", 1)


def test_a_half_may_come_in_a_read_of_its_own() -> None:
    decoder = OPENAI_CHAT.decoder()
    events = [openai(content).partition(b"data: [DONE]")[0] for content in ("a", "b", "\\ud83d", "\\ude00", "c")]
    texts = ["".join(chunk.text for chunk in to_chunk_list(decoder.feed(event))) for event in events]
    assert texts == ["a", "b", "", EMOJI, "c"]
    assert decoder.skipped_events == 0


def test_an_event_that_ends_the_stream_may_hold_the_other_half() -> None:
    half = b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\n'
    other = b'data: {"choices":[{"delta":{"content":"\\ude00!"}}],"error":{"message":"full"}}\n\n'
    decoder = OPENAI_CHAT.decoder()
    decoder.feed(half)
    assert to_chunk_list(decoder.feed(other)) == [Chunk(EMOJI + "!")]
    assert isinstance(decoder.outcome, UpstreamError)


@pytest.mark.parametrize(
    ("data", "repaired", "half"),
    [
        (rb'{"a":"x\ud83d"}', rb'{"a":"x"}', rb"\ud83d"),
        (rb'{"a":"\ud83d\ude00\ud83d"}', rb'{"a":"\ud83d\ude00"}', rb"\ud83d"),
        (rb'{"a":"\ud83d","b":"c"}', rb'{"a":"","b":"c"}', rb"\ud83d"),
        (rb'{"a":"\\","b":"\ud83d"}', rb'{"a":"\\","b":""}', rb"\ud83d"),
    ],
)
def test_a_half_is_cut_from_the_end_of_its_string(data: bytes, repaired: bytes, half: bytes) -> None:
    repair = SurrogateRepair()
    assert repair.repair(data) == (repaired, half)
    repair.keep(half)
    assert repair.repair(rb'{"a":"\ude00b"}') == (b'{"a":"' + half + rb'\ude00b"}', b"")
    assert (repair.pending, repair.lost) == (b"", 0)


@pytest.mark.parametrize(
    "data",
    [
        rb'{"a":"b"}',
        rb'{"a":"\ud83d\ude00"}',
        rb'{"a":"\\ud83d"}',
        rb'{"a":"\ud83d "}',
        rb'{"a":"\ude00"}',
        rb'{"a":" \ude00"}',
        rb'{"a":"\ud83d","b":"\ud83d"}',
        rb'{"a":"\ud83d\n\ud83d"}',
        rb'{"a":"\ud83d\u0041\ud83d"}',
        rb'{"a":"\ude00\ud83d\ude00\ude00"}',
        rb'{"a":"\ud83d',
    ],
)
def test_what_has_no_half_or_more_than_it_can_repair_is_not_repaired(data: bytes) -> None:
    assert SurrogateRepair().repair(data) is None


@pytest.mark.parametrize("between", ["b", "bcd"])
def test_a_half_is_not_put_behind_other_text(between: str) -> None:
    plain = openai("x").partition(b"data: [DONE]")[0]
    for body in (openai("a\\ud83d", between, "\\ude00"), plain * 3 + openai("a\\ud83d", between, "\\ude00")):
        for cut in range(len(body)):
            got, decoder = read(body, cut)
            assert (got.lstrip("x"), decoder.skipped_events) == (f"a{between}", 2)


@pytest.mark.parametrize("content", ["\\ude00", "\\ud83d in the middle", "x\\ude00", "\\ud83d\\ud83d"])
def test_what_no_other_event_can_repair_is_skipped_and_counted(content: str) -> None:
    got, decoder = read(openai("a", content, "b"))
    assert (got, decoder.skipped_events) == ("ab", 1)


def test_other_framings_are_repaired_too() -> None:
    decoder = OLLAMA.decoder()
    assert decoder.feed(b'{"response":"\\ud83d","done":false}\n') == []
    assert decoder.feed(b'{"response":"\\ude00","done":false}\n') == [Chunk(EMOJI)]
