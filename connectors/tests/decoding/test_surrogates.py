"""A surrogate pair that a provider splits over two events is one character; half a pair is U+FFFD in its place."""

from functools import partial

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, to_chunk_list
from opensearch_ml_stream.connectors.conversation.as_sent import DecoderAsSent
from opensearch_ml_stream.connectors.decoding.decoder import Decoder, FastPathDecoder
from opensearch_ml_stream.connectors.errors import StreamTruncated, UpstreamError
from opensearch_ml_stream.connectors.providers.ollama import OLLAMA
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT

EMOJI = "\N{GRINNING FACE}"
DONE = b"data: [DONE]\n\n"
CALL = '"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]'


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
        assert got == text
        assert isinstance(decoder.outcome, Ending)


@pytest.mark.parametrize(
    ("contents", "text"),
    [
        (("a", "b\\ud83d", "c"), "ab\ufffdc"),
        (("a", "b\\ud83d"), "ab\ufffd"),
        (("\\ud83d",), "\ufffd"),
        (("a\\ud83d", "b\\ud83d", "c", "d\\ud83d"), "a\ufffdb\ufffdcd\ufffd"),
        (("a", "\\ude00", "b"), "a\ufffdb"),
        (("a\\ud83d in the middle", "\\ude00b"), "a\ufffd in the middle\ufffdb"),
        (("\\ud83d\\ud83d", "\\ude00\\ude00"), f"\ufffd{EMOJI}\ufffd"),
        (("a\\ud83d", "b", "\\ude00"), "a\ufffdb\ufffd"),
        (("\\ud83d", "\\ud83d", "\\ude00"), f"\ufffd{EMOJI}"),
        (("a\ufffd", "\ufffdb", "\\ud83d", "\ufffdc"), "a\ufffd\ufffdb\ufffd\ufffdc"),
        (("\\\\\\ud83d", "\\\\ude00"), "\\\ufffd\\ude00"),
        (('\\"\\ud83d\\"', "\\ude00"), '"\ufffd"\ufffd'),
    ],
)
def test_a_half_without_its_other_half_is_no_character_in_its_place(contents: tuple[str, ...], text: str) -> None:
    body = openai(*contents)
    for cut in range(len(body)):
        got, decoder = read(openai("x", "y")[: -len(DONE)] + body, cut)
        assert got == "xy" + text
        assert isinstance(decoder.outcome, Ending)


@pytest.mark.parametrize("high", [0xD800, 0xDBFF])
@pytest.mark.parametrize("low", [0xDC00, 0xDFFF])
def test_the_first_and_last_of_either_half_are_halves(high: int, low: int) -> None:
    character = chr(0x10000 + (high - 0xD800) * 0x400 + low - 0xDC00)
    got, _ = read(openai(f"a\\u{high:x}", f"\\u{low:X}b"))
    assert got == f"a{character}b"


@pytest.mark.parametrize("code", ["d7ff", "e000", "0000"])
def test_what_is_beside_the_surrogates_is_a_character_of_its_own(code: str) -> None:
    got, _ = read(openai(f"a\\u{code}", f"\\u{code}b", "\\ud83d", f"\\u{code}"))
    assert got == f"a{chr(int(code, 16)) * 2}b\ufffd{chr(int(code, 16))}"


def test_a_half_may_come_in_a_read_of_its_own() -> None:
    decoder = OPENAI_CHAT.decoder()
    events = [openai(content).partition(b"data: [DONE]")[0] for content in ("a", "b", "\\ud83d", "\\ude00", "c")]
    texts = ["".join(chunk.text for chunk in to_chunk_list(decoder.feed(event))) for event in events]
    assert texts == ["a", "b", "", EMOJI, "c"]


def test_an_event_that_ends_the_stream_may_hold_the_other_half() -> None:
    half = b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\n'
    other = b'data: {"choices":[{"delta":{"content":"\\ude00!"}}],"error":{"message":"full"}}\n\n'
    decoder = OPENAI_CHAT.decoder()
    decoder.feed(half)
    assert to_chunk_list(decoder.feed(other)) == [Chunk(EMOJI + "!")]
    assert isinstance(decoder.outcome, UpstreamError)


def test_a_half_waits_for_the_next_text_whatever_comes_between() -> None:
    decoder = OPENAI_CHAT.decoder()
    body = openai("a\\ud83d", "\\ude00b").partition(b"\n\n")
    between = b': ping\n\ndata: {"choices":[],"usage":null}\n\ndata: {"choices":[{"delta":{"content":""}}]}\n\n'
    chunks = to_chunk_list(decoder.feed(body[0] + b"\n\n" + between + body[2]))
    assert chunks == [Chunk("a"), Chunk(f"{EMOJI}b")]


def test_a_half_is_held_where_the_body_ends_without_a_terminator() -> None:
    decoder = OPENAI_CHAT.decoder()
    assert to_chunk_list(decoder.feed(openai("a\\ud83d")[: -len(DONE)])) == [Chunk("a")]
    assert to_chunk_list(decoder.close()) == [Chunk("\ufffd")]
    assert isinstance(decoder.outcome, StreamTruncated)
    assert decoder.chunk_count == 2


@pytest.mark.parametrize(
    ("member", "field"), [('"reasoning_content":"{}"', "reasoning"), (CALL, "arguments")], ids=["reasoning", "call"]
)
def test_halves_in_reasoning_and_arguments_are_one_character_too(member: str, field: str) -> None:
    def said(*contents: str) -> str:
        events = [f'data: {{"choices":[{{"delta":{{{member.replace("{}", content)}}}}}]}}\n\n' for content in contents]
        chunks = to_chunk_list(OPENAI_CHAT.decoder().feed("".join(events).encode() + DONE))
        assert all(chunk.text == "" and chunk != Chunk() for chunk in chunks)
        return "".join(
            chunk.reasoning if field == "reasoning" else "".join(call.arguments for call in chunk.tool_calls)
            for chunk in chunks
        )

    assert said("a\\ud83d", "\\ude00b") == f"a{EMOJI}b"
    assert said("\\ud83d", "\\ude00") == EMOJI
    assert said("a\\ud83d", "b\\ud83d") == "a\ufffdb\ufffd"


def test_a_half_of_one_text_is_not_joined_with_another_text() -> None:
    thought = b'data: {"choices":[{"delta":{"reasoning_content":"\\ude00"}}]}\n\n'
    decoder = OPENAI_CHAT.decoder()
    chunks = to_chunk_list(decoder.feed(openai("a\\ud83d")[: -len(DONE)] + thought))
    assert chunks == [Chunk("a"), Chunk("\ufffd"), Chunk(reasoning="\ufffd")]


def test_other_framings_are_repaired_too() -> None:
    decoder = OLLAMA.decoder()
    assert decoder.feed(b'{"response":"\\ud83d","done":false}\n') == []
    assert decoder.feed(b'{"response":"\\ude00","done":false}\n') == [Chunk(EMOJI)]


@pytest.mark.parametrize(
    ("contents", "texts"),
    [
        (("a\\ud83d", "\\ude00b", "c"), ["a", f"{EMOJI}b", "c"]),
        (("\\ud83d", "\\ude00"), ["", EMOJI]),
        (("a\\ud83d", "b"), ["a", "\ufffd", "b"]),
        (('\\"\\ud83d', "\\ude00\\\\"), ['"', f"{EMOJI}\\"]),
    ],
)
def test_events_that_go_on_as_they_were_sent_hold_whole_characters(contents: tuple[str, ...], texts: list[str]) -> None:
    decoder = OPENAI_CHAT.decoder_with(partial(DecoderAsSent, lambda event, chunks, outcome: event, lambda data: data))
    chunks = to_chunk_list(decoder.feed(openai(*contents)[: -len(DONE)]))
    assert [chunk.text for chunk in chunks] == texts
    sent = [chunk.event.payload["choices"][0]["delta"]["content"] for chunk in chunks if chunk.event is not None]
    assert sent == [text for text in texts if text != "\ufffd"]


def test_half_a_character_in_a_refusal_stays_in_it() -> None:
    refusal = b'data: {"choices":[{"delta":{"refusal":"no\\ud83d"}}]}\n\n'
    chunks = to_chunk_list(OPENAI_CHAT.decoder().feed(refusal + openai("a")[: -len(DONE)]))
    assert chunks == [Chunk("no\ufffd", refusal="no\ufffd"), Chunk("a")]
