"""What is left of a text before a terminal gets it."""

import pytest

from opensearch_ml_stream.plugin.cli.printable_text import printable


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a\tb\nc é 漢 👍🏽", "a\tb\nc é 漢 👍🏽"),
        ("a\x1b[31;1mred\x1b[0m", "ared"),
        ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b", "ab"),
        ("\x1bP+q544e\x1b\\a\x1b_x\x9cb", "ab"),
        ("\x1b]0;without an end", "]0;without an end"),
        ("\x1bca\x1b", "ca"),
        ("\x9b31ma\x90b", "31mab"),
        ("a\r\nb\rc\x08\x7f\x00\x0b\x0c", "a\nbc"),
        ("a\u202eb\u2066c\u200e", "abc\u200e"),
    ],
)
def test_sequences_and_control_characters_are_left_out_and_all_text_stays(text: str, left: str) -> None:
    assert printable(text) == left
