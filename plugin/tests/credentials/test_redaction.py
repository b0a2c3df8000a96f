"""What a provider sends is shown without credentials, however they are written, and errors not at any length."""

import base64
import html
import json
import random
from collections.abc import Callable
from urllib.parse import quote

import pytest

from opensearch_ml_stream.plugin.credentials.redaction import MAX_ENCODED, MAX_FINDINGS, MAX_TEXT_BYTES, Redactor

KEY = "sk-proj-9fA_2bC-4dE7gH1jK3mN5pQ8rS6tU0vW"
PASSWORD = 'p@ss/w"ord\\&<é>-2024!'
PEM = """-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49
AwEHBG0wawIBAQQgVcB/UJPxalR9zDYA
-----END PRIVATE KEY-----
"""


def redactor(*secrets: str) -> Redactor:
    return Redactor({f"key{number}": secret for number, secret in enumerate(secrets)})


@pytest.mark.parametrize(
    ("text", "credentials", "shown"),
    [
        ("no key in it", ["sk-1234"], "no key in it"),
        ("key sk-1234 is wrong: sk-1234", ["sk-1234"], "key *** is wrong: ***"),
        ("a sk-1234-long and a sk-1234", ["sk-1234", "sk-1234-long"], "a *** and a ***"),
        ("abcd", ["abcd"], "***"),
        ("abcdabcd", ["abcd"], "******"),
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
    assert redactor(*credentials).error(text) == shown


def shifted_base64(before: str) -> Callable[[str], str]:
    return lambda secret: base64.b64encode(f"{before}{secret}!".encode()).decode()


def escaped(form: str) -> Callable[[str], str]:
    return lambda secret: "".join(form % ord(one) if one.isascii() and one not in '"\\' else one for one in secret)


FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "upper case": str.upper,
    "lower case": str.lower,
    "JSON": lambda secret: json.dumps(secret)[1:-1],
    "JSON with slashes": lambda secret: json.dumps(secret)[1:-1].replace("/", "\\/"),
    "JSON in JSON": lambda secret: json.dumps(json.dumps(secret.replace('"', "").replace("\\", "")))[3:-3],
    "JSON escapes": escaped("\\u%04x"),
    "JSON escapes in capitals": escaped("\\u%04X"),
    "JSON escapes in JSON": escaped("\\\\u%04x"),
    "JSON escapes of some": lambda secret: secret.replace("-", "\\u002d").replace("_", "\\u005F"),
    "program's escapes": escaped("\\x%02x"),
    "percent": lambda secret: quote(secret, safe=""),
    "percent of all": escaped("%%%02X"),
    "percent twice": lambda secret: quote(quote(secret, safe=""), safe=""),
    "percent in JSON": lambda secret: escaped("\\u%04x")(quote(secret, safe="")),
    "HTML": html.escape,
    "HTML numbers": escaped("&#%d;"),
    "HTML hex numbers": escaped("&#x%02X;"),
    "hex": lambda secret: secret.encode().hex(),
    "HEX": lambda secret: secret.encode().hex().upper(),
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "base64 of URLs": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode().rstrip("="),
    "base64 after one byte": shifted_base64(":"),
    "base64 after two bytes": shifted_base64("u:"),
    "base64 of a login": shifted_base64("user:"),
    "base64 in percent": lambda secret: quote(shifted_base64("user:")(secret), safe=""),
    "base64 in JSON": lambda secret: shifted_base64("a")(secret).replace("/", "\\/"),
}
PIECES: dict[str, Callable[[str], str]] = {
    "less two characters": lambda secret: secret[:-2],
    "less its first two": lambda secret: secret[2:],
    "12 of its characters": lambda secret: secret[5:17],
    "12 of its characters in hex": lambda secret: secret[3:15].encode().hex(),
    "12 of its characters in base64": lambda secret: base64.b64encode(secret[4:16].encode()).decode(),
}  # fmt: skip


def check_that_it_is_redacted(secret: str, written: str) -> None:
    for shown in (redactor(secret).error(f"[{written}]"), redactor(secret).value(f"[{written}]")):
        assert "***" in shown
        # What is left of base64 are the characters that its neighbours share, and the name of a login.
        assert len(shown) - len("[***]") <= 12


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("secret", [KEY, "p@ss/word&<é>-2024!", "hunter2-9"], ids=["key", "password", "short"])
def test_a_secret_is_found_however_it_is_written(form: Callable[[str], str], secret: str) -> None:
    check_that_it_is_redacted(secret, form(secret))


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES)
def test_a_large_piece_of_a_secret_is_enough(piece: Callable[[str], str]) -> None:
    check_that_it_is_redacted(KEY, piece(KEY))


def test_a_secret_with_quotes_and_backslashes_is_found_in_json() -> None:
    for text in (json.dumps({"a": PASSWORD}), json.dumps({"a": PASSWORD}, ensure_ascii=False)):
        assert json.loads(redactor(PASSWORD).body(text.encode())) == {"a": "***"}


@pytest.mark.parametrize("text", [KEY[:11], KEY[-11:], KEY[:11] + " " + KEY[11:22], "sk-proj-", "hunter2"])
def test_a_piece_that_says_little_is_left(text: str) -> None:
    assert redactor(KEY, "hunter2-9").error(text) == text


def test_every_piece_of_twelve_characters_is_found_at_every_place() -> None:
    found = redactor(KEY)
    for start in range(len(KEY) - 11):
        assert found.error(f"....{KEY[start : start + 12]}....") == "....***...."


def test_a_public_part_of_a_credential_and_the_frame_of_a_pem_file_are_no_secrets() -> None:
    redactor = Redactor({"region": "us-east-1", "service_name": "bedrock-runtime", "client_key_pem": PEM})
    text = "arn:aws:bedrock-runtime:us-east-1 -----BEGIN PRIVATE KEY----- "
    assert redactor.error(text + PEM.splitlines()[1]) == text + "***"


def test_in_a_good_response_short_credentials_of_test_servers_stay() -> None:
    found = redactor("demo", "secret-key")
    assert found.value("a demo of secret-key") == "a demo of ***"
    assert found.error("a demo of secret-key") == "a *** of ***"


def test_a_good_body_stays_json_and_without_a_secret_the_very_same_object() -> None:
    found = redactor(KEY, "123456789")
    body = json.dumps({"a": [1.50, "x %20 \\u0041"], KEY[:8]: None}).encode()
    assert found.body(body) is body
    assert found.body(json.dumps({"a": f"\n{KEY}\n", KEY: 1.5}).encode()) == b'{"a": "\\n***\\n", "***": 1.5}'
    assert json.loads(found.body(b'{"a":"%b","b":"\\u0022\\\\"}' % escaped("\\u%04x")(KEY).encode())) == {
        "a": "***", "b": '"\\',
    }  # fmt: skip
    assert found.body(b'{"a":123456789}') == b'"***"'  # no string: what is left would be no JSON
    assert found.body(b"plain " + KEY.encode()) == b"plain ***"
    assert found.body(b"\xff" + KEY.encode()) == b"\xff***"


def test_a_connector_without_credentials_has_nothing_to_redact() -> None:
    body = b'{"a": "\\u002d"}'
    assert Redactor({}).body(body) is body
    assert Redactor({"key": "", "other": "abc"}).value("abc") == "abc"


def test_a_credential_of_any_size_is_compiled_within_a_bound() -> None:
    """Were the bound not there, it would take longer than any test may."""
    found = redactor("k" * 5_000_000 + KEY, *("\n".join(["line-" + KEY] * 100_000) for _ in range(3)))
    assert found.error("kkkkkkkkkkkkkkkkkkkk") == "***"


@pytest.mark.parametrize("part", ["kkkkkk ", "k", "kkkkkkkkkkkkk "])
def test_a_secret_that_repeats_itself_costs_no_more(part: str) -> None:
    """Were each repetition searched for from each place, it would take longer than any test may."""
    found = redactor("k" * 60_000)
    assert found.body(part.encode() * (1024 * 1024 // len(part))).count(b"k") < 12


def test_a_long_secret_is_found_as_it_is() -> None:
    secret = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=MAX_ENCODED + 1))
    assert redactor(secret).error(f"[{secret[100:200]}]") == "[***]"


def test_a_text_is_cut_at_2_kib() -> None:
    assert redactor().error("a" * MAX_TEXT_BYTES) == "a" * MAX_TEXT_BYTES
    assert redactor().error("a" * (MAX_TEXT_BYTES + 1)) == "a" * MAX_TEXT_BYTES + "..."


def test_a_text_is_cut_between_characters_and_after_its_credentials() -> None:
    assert redactor().error("é" * MAX_TEXT_BYTES) == "é" * (MAX_TEXT_BYTES // 2) + "..."
    assert redactor().error("a" + "é" * MAX_TEXT_BYTES) == "a" + "é" * (MAX_TEXT_BYTES // 2 - 1) + "..."
    cut = "a" * (MAX_TEXT_BYTES - 4)
    assert redactor("sk-1234").error(cut + "sk-1234") == cut + "***"


def test_half_a_surrogate_pair_can_be_shown() -> None:
    assert redactor().error("\ud800" * (MAX_TEXT_BYTES + 1)) == "?" * MAX_TEXT_BYTES + "..."
    assert redactor(KEY).value("\ud800") == "\ud800"


def test_a_text_that_is_full_of_pieces_is_not_shown_at_all() -> None:
    assert redactor(KEY).value(KEY + " x" * 10 + f" {KEY}" * MAX_FINDINGS) == "***"


@pytest.mark.parametrize(
    "part", ["%41", "\\u0041", "\\", "%25", "&amp;", KEY[:11] + " ", KEY[:6], KEY + " ", "bearer  "]
)
def test_a_text_that_looks_like_many_pieces_is_read_to_its_end(part: str) -> None:
    """Were it quadratic, it would take longer than any test may."""
    found = redactor(KEY, PASSWORD, PEM)
    assert PASSWORD.encode() not in found.body(part.encode() * (1024 * 1024 // len(part)) + PASSWORD.encode())
    assert len(found.error(part * (64 * 1024 // len(part)))) < 2 * MAX_TEXT_BYTES


def test_a_value_is_searched_once_and_only_so_many_are_kept() -> None:
    redactor = Redactor({"key": "a secret of mine"})
    for _ in range(2):
        assert redactor.value("stop gpt-4o") == "stop gpt-4o"
        assert redactor.value("stop a secret of mine") == "stop ***"
    for number in range(1000):
        assert redactor.value(f"model {number}") == f"model {number}"
    assert redactor.value("stop a secret of mine") == "stop ***"
