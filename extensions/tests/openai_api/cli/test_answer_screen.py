"""What a terminal is sent of an answer. The clock stands still, or is moved."""

import io
import re
from collections.abc import Callable, Sequence
from threading import Timer

import pytest
from rich.console import Console

from opensearch_ml_stream.extensions.openai_api.cli.answer_screen import DRAW_SECONDS, AnswerScreen, MarkdownBlocks
from opensearch_ml_stream.extensions.openai_api.cli.chat_answer import Piece

_SEQUENCES = re.compile(r"\x1b\[[0-9;?]*([A-Za-z])")


class Written(io.StringIO):
    """What is written, and in how many writes."""

    writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        return super().write(text)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class DrawsAsItIsCancelled(Timer):
    """A timer whose time has come just as it is cancelled."""

    def __init__(self, _: float, draw: Callable[[], None]) -> None:
        super().__init__(3600, draw)

    def cancel(self) -> None:
        self.function()
        super().cancel()


def console(written: io.StringIO, height: int = 24) -> Console:
    return Console(file=written, force_terminal=True, width=80, height=height, color_system="truecolor", _environ={})


def shown_by(sent: str) -> str:
    """What stands on a terminal, and has scrolled off it, after all that was sent."""
    rows, row = [""], 0
    for text, sequence, final in re.findall(r"([^\x1b]*)(\x1b\[[0-9;?]*([A-Za-z])|$)", sent):
        for character in text:
            if character == "\n":
                row += 1
                rows += [""] * (row == len(rows))
            elif character != "\r":  # what follows it is an erasure
                rows[row] += character
        if final == "K":
            rows[row] = ""
        elif final == "A":
            row -= int(sequence[2:-1])
    return "\n".join(line.rstrip() for line in rows).rstrip("\n")


def last_drawn(*pieces: Piece) -> str:
    """What stands on the terminal at the end, if each piece is drawn by itself."""
    written, clock = io.StringIO(), Clock()
    with AnswerScreen(console(written), clock) as screen:
        for piece in pieces:
            clock.now += DRAW_SECONDS
            screen.add(piece)
    return shown_by(written.getvalue())


def test_markdown_is_drawn_with_its_styles() -> None:
    written = io.StringIO()
    with AnswerScreen(console(written), Clock()) as screen:
        screen.add(Piece("some **bold** text\n\n- item"))
    assert "\x1b[1mbold\x1b[0m" in written.getvalue()
    assert "•" in written.getvalue()
    assert "**" not in written.getvalue()


def test_reasoning_is_dim_and_stands_above_the_text() -> None:
    written = io.StringIO()
    with AnswerScreen(console(written), Clock()) as screen:
        screen.add(Piece(reasoning="I **think**"))
        screen.add(Piece("yes"))
    assert "\x1b[2;3mI **think**\x1b[0m\n\nyes" in re.sub(r" +$", "", written.getvalue(), flags=re.MULTILINE)


@pytest.mark.parametrize(
    "hostile",
    [
        "\x1b[2Jx",
        "\x1b]0;title\x07x",
        "\x1b]52;c;QQ==\x1b\\x",
        "\x9b31mx",
        "x\r\b\x7f\x00",
        "x &#27;[2J &#x9b;31m &#13; &#8;",
        "[x](http://a.example/\x1b[2J)",
        "```\n\x1b[2Jx\n```",
        "\u202ex &#x202e;",
    ],
)
def test_nothing_that_a_model_writes_controls_the_terminal(hostile: str) -> None:
    for piece in (Piece(hostile), Piece(reasoning=hostile)):
        written = io.StringIO()
        with AnswerScreen(console(written), Clock()) as screen:
            for part in (hostile[:2], hostile[2:]):
                screen.add(Piece(part) if piece.text else Piece(reasoning=part))
        sent = written.getvalue()
        finals = set(_SEQUENCES.findall(sent))
        assert finals <= {"m", "h", "l", "K", "A"}  # colours, the cursor hidden and shown, the own redrawing
        rest = _SEQUENCES.sub("", sent)
        assert "x" in rest
        assert [character for character in rest if not character.isprintable() and character not in "\n\r"] == []
        assert "x\r" not in sent


def test_a_link_shows_where_it_leads() -> None:
    assert last_drawn(Piece("[bank](http://other.example/)")) == "bank (http://other.example/)"


def test_nothing_is_drawn_of_an_answer_without_text() -> None:
    assert last_drawn(Piece()) == ""


def test_pieces_that_come_at_the_same_time_are_drawn_once_and_all_at_the_end() -> None:
    written, clock = Written(), Clock()
    with AnswerScreen(console(written), clock) as screen:
        for number in range(1000):
            screen.add(Piece(f"{number} "))
        assert written.writes < 10
    assert " 999" in written.getvalue()


def test_an_answer_may_end_while_what_came_last_is_being_drawn() -> None:
    written = io.StringIO()
    with AnswerScreen(console(written), Clock(), DrawsAsItIsCancelled) as screen:
        screen.add(Piece("first "))
        screen.add(Piece("last"))
    assert shown_by(written.getvalue()) == "first last"


def sent_for(paragraphs: int, text: str) -> tuple[int, int]:
    """The characters that are sent for so many pieces, one every hundredth of a second, and the draws."""
    written, clock = Written(), Clock()
    with AnswerScreen(console(written), clock, lambda _, draw: Timer(3600, draw)) as screen:
        for _ in range(paragraphs):
            clock.now += DRAW_SECONDS / 10
            screen.add(Piece(text))
    return len(written.getvalue()), written.writes


@pytest.mark.parametrize("text", ["A paragraph of some words.\n\n", "- an item\n", "word ", "```\ncode\n```\n\n"])
def test_what_is_sent_grows_as_the_answer_does(text: str) -> None:
    once, _ = sent_for(1000, text)
    four_times, draws = sent_for(4000, text)
    assert four_times < 5 * once
    assert draws < 4000


def test_a_block_that_is_taller_than_the_terminal_is_drawn_by_its_end_and_whole_when_it_has_ended() -> None:
    written, clock = io.StringIO(), Clock()
    with AnswerScreen(console(written, height=10), clock) as screen:
        for number in range(100):
            clock.now += DRAW_SECONDS
            screen.add(Piece(f"- item {number}\n"))
        items = shown_by(written.getvalue()).split()[2::3]
        assert 5 <= len(items) < 10 and items[-1] == "99"
    assert shown_by(written.getvalue()).split()[2::3] == [str(number) for number in range(100)]


def test_nothing_stands_there_twice_when_an_answer_has_come_in_pieces() -> None:
    text = "# Title\n\nSome words\nmore.\n\n1. one\n\n2. two\n\n```\na\n\nb\n```\n\n|a|b|\n|-|-|\n|1|2|\n\nThe end"
    whole = last_drawn(Piece(text))
    drawn = [word for word in whole.split() if word.isalnum() or word[:-1].isalnum()]  # rules and boxes are rich's
    assert " ".join(drawn) == "Title Some words more. 1 one 2 two a b a b 1 2 The end"
    for size in (1, 2, 5, 20):
        pieces = [Piece(text[place : place + size]) for place in range(0, len(text), size)]
        assert last_drawn(*pieces) == whole


def blocks_of(text: str, size: int) -> Sequence[str]:
    blocks = MarkdownBlocks()
    ended = [block for place in range(0, len(text), size) for block in blocks.feed(text[place : place + size])]
    return [*ended, *blocks.close()]


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("one", ["one"]),
        ("one\ntwo\n\nthree", ["one\ntwo\n", "three"]),
        ("```py\na\n\nb\n```\n\nafter", ["```py\na\n\nb\n```\n", "after"]),
        ("~~~~\n\n~~~\n```\n\n~~~~\n\nafter", ["~~~~\n\n~~~\n```\n\n~~~~\n", "after"]),
        ("```code``` in a line\n\nafter", ["```code``` in a line\n", "after"]),
        ("1. a\n\n   more of a\n\n2. b", ["1. a\n\n   more of a\n", "2. b"]),
        ("|a|\n|-|\n|1|\n\n\n# title\n", ["|a|\n|-|\n|1|\n\n", "# title\n"]),
        ("\n\na", ["\n", "a"]),
    ],
)
def test_a_block_ends_where_no_later_line_can_belong_to_it(text: str, blocks: Sequence[str]) -> None:
    for size in (1, 3, len(text)):
        assert blocks_of(text, size) == blocks


def test_the_tail_is_the_block_that_is_being_written() -> None:
    blocks = MarkdownBlocks()
    blocks.feed("one\n\ntwo\nthr")
    assert blocks.tail(10, 100) == "two\nthr"
    assert blocks.tail(1, 100) == "two\nthr"
    blocks.feed("ee\nfour")
    assert blocks.tail(1, 100) == "three\nfour"
    assert blocks.tail(10, 6) == "o\nthree\nfour"


def test_the_tail_of_long_code_is_code() -> None:
    blocks = MarkdownBlocks()
    blocks.feed("```py\n" + "x = 1\n" * 100 + "y")
    assert blocks.tail(2, 100) == "```py\nx = 1\nx = 1\ny"


def test_a_tail_is_no_longer_than_was_asked_for_whatever_the_lines_are() -> None:
    for text in ("x" * 10_000, "x\n" * 10_000, ("x" * 1_000 + "\n") * 10):
        blocks = MarkdownBlocks()
        blocks.feed(text)
        assert len(blocks.tail(50, 80)) <= 160
