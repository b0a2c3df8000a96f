"""What a provider says is shown without credentials, and not at any length."""

import pytest

from opensearch_ml_stream.plugin.credentials.redaction import MAX_TEXT_BYTES, redact


@pytest.mark.parametrize(
    ("text", "credentials", "shown"),
    [
        ("no key in it", ["sk-1234"], "no key in it"),
        ("key sk-1234 is wrong: sk-1234", ["sk-1234"], "key *** is wrong: ***"),
        ("a sk-1234-long and a sk-1234", ["sk-1234", "sk-1234-long"], "a *** and a ***"),
        ("abcd", ["abcd"], "***"),
        ("abc", ["abc"], "abc"),
        ("x marks the spot", ["x", ""], "x marks the spot"),
        ("Authorization: Bearer sk-other-12345678", [], "Authorization: Bearer ***"),
        ("basic dXNlcjpwYXNz rest", [], "basic *** rest"),
        ("api-key abcdefgh", [], "api-key ***"),
        ("Bearer abcdefg", [], "Bearer abcdefg"),
        ("forbearer abcdefgh", [], "forbearer abcdefgh"),
        ("BEARER   a.b_c~d+e/f=g-h, rest", [], "BEARER ***, rest"),
    ],
)
def test_credentials_are_taken_out(text: str, credentials: list[str], shown: str) -> None:
    assert redact(text, credentials) == shown


def test_a_text_is_cut_at_2_kib() -> None:
    assert redact("a" * MAX_TEXT_BYTES, []) == "a" * MAX_TEXT_BYTES
    assert redact("a" * (MAX_TEXT_BYTES + 1), []) == "a" * MAX_TEXT_BYTES + "..."


def test_a_text_is_cut_between_characters_and_after_its_credentials() -> None:
    assert redact("é" * MAX_TEXT_BYTES, []) == "é" * (MAX_TEXT_BYTES // 2) + "..."
    assert redact("a" + "é" * MAX_TEXT_BYTES, []) == "a" + "é" * (MAX_TEXT_BYTES // 2 - 1) + "..."
    assert redact("a" * (MAX_TEXT_BYTES - 4) + "sk-1234", ["sk-1234"]) == "a" * (MAX_TEXT_BYTES - 4) + "***"


def test_half_a_surrogate_pair_can_be_shown() -> None:
    assert redact("\ud800" * (MAX_TEXT_BYTES + 1), []) == "?" * MAX_TEXT_BYTES + "..."
