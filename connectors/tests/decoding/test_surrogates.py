"""A character that a provider cut in half comes whole, or its loss is told."""

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, as_list
from opensearch_ml_stream.connectors.decoding.decoder import Decoder
from opensearch_ml_stream.connectors.decoding.fast_path import FastPathDecoder
from opensearch_ml_stream.connectors.selection.presets import OLLAMA, OPENAI_CHAT

EMOJI = "\N{GRINNING FACE}"


def openai(*contents: str) -> bytes:
    """Events whose text is `contents`, JSON as it stands between quotes."""
    events = [f'data: {{"choices":[{{"index":0,"delta":{{"content":"{content}"}}}}]}}\n\n' for content in contents]
    return "".join([*events, "data: [DONE]\n\n"]).encode()


def read(body: bytes, cut: int | None = None) -> tuple[str, Decoder | FastPathDecoder]:
    """The text of an OpenAI stream that comes in two reads."""
    decoder = OPENAI_CHAT.decoder()
    parts = [body] if cut is None else [body[:cut], body[cut:]]
    chunks = [chunk for part in parts for chunk in as_list(decoder.feed(part))]
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


def test_a_half_whose_other_half_never_comes_is_told() -> None:
    got, decoder = read(openai("a", "b\\ud83d", "c"))
    assert (got, decoder.skipped_events) == ("abc", 1)
    assert isinstance(decoder.outcome, Ending)


@pytest.mark.parametrize("between", ["b", "bcd"])
def test_a_half_is_not_put_behind_other_text(between: str) -> None:
    plain = openai("x").partition(b"data: [DONE]")[0]
    for body in (openai("a\\ud83d", between, "\\ude00"), plain * 3 + openai("a\\ud83d", between, "\\ude00")):
        for cut in range(len(body)):
            got, decoder = read(body, cut)
            assert (got.lstrip("x"), decoder.skipped_events) == (f"a{between}", 2)


@pytest.mark.parametrize("content", ["\\ude00", "\\ud83d in the middle", "x\\ude00", "\\ud83d\\ud83d"])
def test_what_no_other_event_can_mend_is_skipped_and_told(content: str) -> None:
    got, decoder = read(openai("a", content, "b"))
    assert (got, decoder.skipped_events) == ("ab", 1)


def test_other_framings_are_mended_too() -> None:
    decoder = OLLAMA.decoder()
    assert decoder.feed(b'{"response":"\\ud83d","done":false}\n') == []
    assert decoder.feed(b'{"response":"\\ude00","done":false}\n') == [Chunk(EMOJI)]
