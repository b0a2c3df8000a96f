"""The ways in which a secret may be written in what a provider sends.

Texts and secrets are compared without their escapes (`unescape`) and without regard to case and to base64's alphabet
(`fold`). What is left are a few forms: the secret itself, in hex, and in base64.
"""

import base64
import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote

import re2

# Of a secret with at least LONG characters, PIECE in a row are enough to be taken out. Fewer meet by chance: prefixes
# that all keys of a provider share (`sk-proj-`), words of a passphrase. What may remain, 11 characters, says too little
# about a key of 14 or more to guess the rest. A shorter secret must be there as a whole.
PIECE = 12
LONG = 14
_HEX_PIECE = 2 * PIECE
_BASE64_PIECE = 8 * PIECE // 6 - 1  # the characters that PIECE bytes fill for certain, wherever they begin
SHORTEST = 4  # a dummy credential such as "x" is no secret, and its redaction would shred the text
SHORTEST_ENCODED = 6
MAX_ENCODED = 4096  # characters of a credential that is looked for in hex and base64, too: a private key has 3,300
MAX_SEARCHED = 64 * 1024  # characters of a credential that are looked for at all; it takes 40 ms once for so many

# Names of credentials that are no secrets, and stand in good responses (an ARN holds the region).
_NOT_SECRET = frozenset({"region", "service_name", "rolearn", "role_arn", "client_cert_pem", "ca_cert_pem"})

MAX_LAYERS = 3  # of escapes in different languages around each other
# Escapes of printable ASCII characters, which hardly anybody needs, however often they are escaped themselves: of JSON
# and programs, of URLs, of HTML. The groups are the `/` of `\\/`, and a code of HTML in hex and decimal.
_ESCAPE = re.compile(
    rb"(?<!\\)\\++(?:(?:u00|x)[2-7][0-9a-fA-F]|(/))|%(?:25)*[2-7][0-9a-fA-F]"
    rb"|&(?:amp;)*+#(?:[xX]0*+([2-7][0-9a-fA-F])|0*+([3-9][0-9]|1[01][0-9]|12[0-6]));"
)
MAY_BE_ESCAPE = rb"\\(?:u00|x)[2-7]|\\/|%[2-7]|&#|&amp;"  # what each of them has
_SEARCH_ESCAPE = re2.compile(MAY_BE_ESCAPE).search
_KEPT = b'"\\'  # unescaped they would end a JSON string, or begin an escape in it
_BY_HEX = {
    digits.encode(): bytes((code,))
    for code in range(0x20, 0x7F)
    if code not in _KEPT
    for digits in (f"{code:02x}", f"{code:02X}")
}

_FOLD = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ-_", b"abcdefghijklmnopqrstuvwxyz+/")


class Form(NamedTuple):
    """One way to write a secret: its folded text, and how much of it in a row gives the secret away."""

    text: bytes
    least: int
    secret_length: int


def unescape(data: bytes) -> bytes:
    """Return the bytes with escapes of printable ASCII characters replaced. JSON text stays JSON text."""
    for _ in range(MAX_LAYERS):
        if not _SEARCH_ESCAPE(data):  # RE2, which is quicker where there is none
            return data
        data = _ESCAPE.sub(_unescape, data)
    return data


def fold(data: bytes) -> bytes:
    """Return the bytes in the alphabet of `Form.text`; every position stays what it was."""
    return data.translate(_FOLD)


def anchors(form: Form) -> list[tuple[int, bytes]]:
    """Return stretches of a form, with their positions, of which every `form.least` characters hold one."""
    length = max(SHORTEST, form.least // 2)
    step = form.least - length + 1
    positions = range(0, len(form.text) - length + 1, step)
    return [(position, form.text[position : position + length]) for position in positions]


def secret_forms(credential: Mapping[str, str]) -> list[Form]:
    """Return all forms of a connector's credential."""
    secrets = list(_secrets(credential))
    is_encoded = sum(map(len, secrets)) <= MAX_ENCODED
    return list(dict.fromkeys(form for secret in secrets for form in _forms(secret, is_encoded)))


def _secrets(credential: Mapping[str, str]) -> Iterator[str]:
    """Yield the secrets of a credential, line by line: a PEM file's first and last line are no secret."""
    rest = MAX_SEARCHED
    for name, value in credential.items():
        for line in [] if name.lower() in _NOT_SECRET else value.splitlines():
            secret = line.strip()[:rest]
            if len(secret) >= SHORTEST and not secret.startswith("-----"):
                rest -= len(secret)
                yield secret


def _forms(secret: str, is_encoded: bool) -> Iterator[Form]:
    is_long = len(secret) >= LONG
    data = secret.encode("utf-8", "replace")
    in_json = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    for text in (secret, *in_json, html.escape(secret), quote(secret, safe="")):
        folded = fold(unescape(text.encode("utf-8", "replace")))
        if len(folded) >= SHORTEST:
            yield Form(folded, min(PIECE, len(folded)) if is_long else len(folded), len(secret))
    if not is_encoded:
        return
    encoded = [(data.hex().encode(), _HEX_PIECE), *((text, _BASE64_PIECE) for text in _base64(data))]
    for form, least in encoded:
        if len(form) >= SHORTEST_ENCODED:
            yield Form(fold(form), least if is_long else len(form), len(secret))


def _base64(data: bytes) -> Iterator[bytes]:
    """Yield the base64 text of the bytes behind 0, 1 and 2 others, without what depends on their neighbours."""
    for before in range(3):
        text = base64.b64encode(b"\0" * before + data)
        yield text[-(-8 * before // 6) : 8 * (before + len(data)) // 6]


def _unescape(match: re.Match[bytes]) -> bytes:
    plain = _BY_HEX.get(match[0][-2:])
    if plain is not None:
        return plain
    slash, html_hex, decimal = match.groups()
    code = ord("/") if slash else int(decimal) if decimal else int(html_hex, 16) if html_hex else 0
    return bytes((code,)) if code and code not in _KEPT else match[0]
