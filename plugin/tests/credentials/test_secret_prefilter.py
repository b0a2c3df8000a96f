"""Of a body in which a piece of a secret stands, wherever and however, it is never said that none is there."""

import random

import pytest

from opensearch_ml_stream.plugin.credentials import redaction
from opensearch_ml_stream.plugin.credentials.redaction import Form, Redactor, SecretPrefilter, secret_forms
from tests.counted_work import CountedBytes

SECRETS = {
    "key": "sk-proj-9fA_2bC-4dE7gH1jK3mN5pQ8rS6tU0vW",
    "hex form of digits alone": "pqrstuvwxy0123456789QRSTUVWXYabcdefghi",
    "with e in its hex form": "nNpnNqnNrnNsnNtnNun",
    "many hex forms of digits alone": "pqrstuvwxy0123456789QRSTUVWXYabcdefghi" + "eijklmpRSTUVWpqrstuvwxy" * 3,
    "short": "p@ss/w-rd",
    "account": "123456789012",
    "number": "12.345-6789+1234",
    "passphrase": "correct horse battery staple",
    "not ASCII": "Zürich-Straße-Nr-12",
}


def forms_of(secret: str) -> list[Form]:
    return secret_forms({"key": secret})


def embedding(chance: random.Random, *, exponents: bool = False) -> bytes:
    """The response with an array of numbers of some 18 kB."""
    numbers = [chance.gauss(0, 0.02) for _ in range(1536)]
    if exponents:
        numbers[::50] = [number / 1e5 for number in numbers[::50]]
    array = ",".join(map(repr, numbers)) if exponents else ",".join(f"{number:.9f}" for number in numbers)
    return b'{"data":[{"embedding":[%b]}],"usage":{"prompt_tokens":8}}' % array.encode()


def several_embeddings(chance: random.Random) -> bytes:
    return b'{"documents":[%b]}' % b",".join([embedding(chance, exponents=bool(number)) for number in range(3)])


def written(piece: bytes, chance: random.Random) -> bytes:
    """The folded piece with other letters, as it is or escaped."""
    raw = bytes(chance.choice([byte, *bytes((byte,)).upper()]) for byte in piece)
    raw = raw.replace(b"+", chance.choice([b"+", b"-"])).replace(b"/", chance.choice([b"/", b"_"]))
    if chance.random() < 0.7:
        return raw
    place = chance.randrange(len(raw))
    escape = chance.choice([b"\\u%04x", b"%%%02X", b"&#%d;"]) % raw[place]
    return raw[:place] + escape + raw[place + 1 :]


@pytest.mark.parametrize("name", SECRETS)
def test_a_piece_is_seen_wherever_it_stands(name: str) -> None:
    chance = random.Random(name)
    forms = forms_of(SECRETS[name])
    prefilter = SecretPrefilter(forms)
    for _ in range(50):
        form = chance.choice(forms)
        start = chance.randrange(len(form.text) - form.least + 1)
        piece = written(form.text[start : start + form.least], chance)
        body = chance.choice([embedding, several_embeddings])(chance)
        place = chance.choice([chance.randrange(len(body)), chance.randrange(200), len(body) - chance.randrange(100)])
        assert not prefilter.rules_out_secrets(body[:place] + piece + body[place:]), (form, piece, place)


@pytest.mark.parametrize("name", SECRETS)
def test_where_absence_is_certain_nothing_is_taken_out(name: str) -> None:
    chance = random.Random(name)
    prefilter, redactor = SecretPrefilter(forms_of(SECRETS[name])), Redactor({"key": SECRETS[name]})
    for number in range(20):
        body = embedding(chance, exponents=number % 2 == 0)
        assert prefilter.rules_out_secrets(body) or name == "account"  # half of its digits stand in a number by chance
        assert redactor.body(body) is body


def test_an_array_of_numbers_is_not_searched_byte_by_byte() -> None:
    body = embedding(random.Random(1))
    prefilter = SecretPrefilter(forms_of(SECRETS["key"]))
    searched: list[bytes] = []
    search = prefilter._search

    def count(data: bytes) -> object:
        searched.append(data)
        return search(data)

    prefilter._search = count
    assert prefilter.rules_out_secrets(body)
    assert sum(map(len, searched)) < 300


@pytest.mark.parametrize("between", sorted(chr(byte) for byte in SecretPrefilter(forms_of(SECRETS["key"]))._telling))
def test_what_is_searched_is_linear_in_the_number_of_arrays(between: str) -> None:
    prefilter = SecretPrefilter(forms_of(SECRETS["key"]))
    few, many = (CountedBytes((b"0.01234," * 150 + between.encode()) * number) for number in (20, 80))
    prefilter.rules_out_secrets(few)
    prefilter.rules_out_secrets(many)
    assert many.looked_at < 4.5 * few.looked_at


@pytest.mark.parametrize("name", ["key", "short", "passphrase"])
def test_what_is_searched_grows_with_the_body_however_many_arrays_are_in_it(name: str) -> None:
    array = embedding(random.Random(3))
    prefilter = SecretPrefilter(forms_of(SECRETS[name]))
    few, many = (CountedBytes(b'{"all":[%b]}' % b",".join([array] * number)) for number in (5, 20))
    assert prefilter.rules_out_secrets(few) and prefilter.rules_out_secrets(many)
    assert many.looked_at < 4.5 * few.looked_at


def test_without_secrets_only_escapes_are_looked_for() -> None:
    prefilter = SecretPrefilter([])
    assert prefilter.rules_out_secrets(b"x" * 5_000) and prefilter.rules_out_secrets(b"")
    assert not prefilter.rules_out_secrets(rb'{"a":"\u0041"}')


def test_very_long_secrets_are_searched_for_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(2)
    monkeypatch.setattr(redaction, "_MAX_FORM_BYTES", 10)
    prefilter = SecretPrefilter(forms_of(SECRETS["key"]))
    body = embedding(chance)
    assert prefilter.rules_out_secrets(body)
    assert not prefilter.rules_out_secrets(body[:9_000] + SECRETS["key"].encode() + body[9_000:])
