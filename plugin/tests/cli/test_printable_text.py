"""What is left of a text before a terminal gets it."""

import shlex

import pytest

from opensearch_ml_stream.plugin.cli.printable_text import one_line, printable, printable_json


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
        ("a\u202eb\u2066c\u200ed\u061c", "abcd"),
        ("\x1b[3\x1b]52;c;eA==\x071m", "[31m"),
        ("\x1b[0 qa", "a"),
        ("half of a pair: \ud83d", "half of a pair: "),
    ],
)
def test_sequences_and_control_characters_are_left_out_and_all_text_stays(text: str, left: str) -> None:
    assert printable(text) == left


def test_in_json_control_characters_become_escapes_so_that_nothing_is_lost() -> None:
    assert printable_json('{"a":"\u009b\u202e é"}') == '{"a":"\\u009b\\u202e é"}'


def test_in_one_line_breaks_and_tabs_are_a_space() -> None:
    assert one_line("a\r\n\tb\u2028c d") == "a b c d"


@pytest.mark.parametrize(
    "word", ["\x1b['", '\x1b["', "\x1b[", "a\x1b]", "\x1b]'; touch x; '\x07", "\x1b[' ; touch x #"]
)
def test_words_that_are_quoted_for_a_shell_stay_quoted(word: str) -> None:
    shown = printable(shlex.join(("predict", word, "Hello", word, "$(x)")))
    assert shlex.split(shown)[-1] == "$(x)" and "touch" not in shlex.split(shown)
