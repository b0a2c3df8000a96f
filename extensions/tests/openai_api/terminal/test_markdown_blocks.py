"""Markdown that is cut while it is written."""

from collections.abc import Sequence

import pytest

from opensearch_ml_stream.extensions.openai_api.terminal.markdown_blocks import MarkdownBlocks


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
