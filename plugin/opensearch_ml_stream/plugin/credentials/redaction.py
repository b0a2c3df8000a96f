"""Redact credentials from what a provider sends, in any encoding, and cut error texts.

Provider bodies, error texts and the fields of a stream's end are searched. The text of a stream's chunks is not: a key
comes in several tokens, so no single chunk would hold it, and providers are responsible for their own text.

Texts and secrets are compared without their escapes (`unescape`), and without regard to case and to base64's alphabet
(`fold`). That leaves a few forms of each secret: as it is, in hex, and in base64. Most bodies hold none, which
`SecretPrefilter` proves without reading each byte of an array of numbers.
"""

import base64
import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import re2

from opensearch_ml_stream.connectors.syntax import jsontext

MAX_TEXT_BYTES = 2048
SHORTEST_IN_RESULTS = 8  # a good response may well hold "demo" or "test", which are common credentials of test servers
MAX_FINDINGS = 1000  # a text that seems to hold more pieces of secrets is not shown at all: the search stays linear
BYTES_OF_FINDING = 64  # of a text in which a prompt is looked for: for as many of them it may have one finding more
MAX_PLACES = 8  # of one anchor in all forms: more has only a secret that repeats itself

_MASK = b"***"
_MAX_CLEAN_VALUES = 256
_MAX_CLEAN_CHARACTERS = 200
_BEARER = re.compile(r"(?i)\b(bearer|basic|api-key)\s+[A-Za-z0-9._~+/=-]{8,}")

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

_IN_NUMBERS = frozenset(b"0123456789e+.,: []")  # of JSON, folded as forms are
_IN_HEX_NUMBERS = frozenset(b"0123456789e")
_LONGEST_ESCAPE = 5  # bytes of MAY_BE_ESCAPE
_MAX_FORM_BYTES = 16_384  # of all forms: of more, which takes 30 ms, no telling characters are found
_LEAST_STRETCH = 1024  # bytes
_FEW_DIGITS = 3  # pieces of digits that are sought one by one: a long key may have 30, which RE2 seeks in the same pass


class Form(NamedTuple):
    """One way to write a secret: its folded text, and how many characters in a row give the secret away."""

    text: bytes
    least: int
    secret_length: int


class Redactor:
    """Redacts the secrets of one credential; made once for each version of a connector."""

    __slots__ = ("_anchors", "_clean_values", "_lengths", "_prefilter", "_search")

    def __init__(self, credential: Mapping[str, str]) -> None:
        self._anchors: dict[bytes, list[tuple[Form, int]]] = {}
        forms = secret_forms(credential)
        self._prefilter = SecretPrefilter([form for form in forms if form.secret_length >= SHORTEST_IN_RESULTS])
        for form in forms:
            for position, anchor in anchors(form):
                places = self._anchors.setdefault(anchor, [])
                if len(places) < MAX_PLACES:
                    places.append((form, position))
        self._lengths = sorted({len(anchor) for anchor in self._anchors})
        self._search = _search_for(re.escape(anchor) for anchor in sorted(self._anchors))
        self._clean_values: set[str] = set()  # that were searched: most are the same few words and models' names

    def error(self, text: str) -> str:
        """Return an error's text without credentials and authorization headers, cut at MAX_TEXT_BYTES."""
        shown = _BEARER.sub(r"\1 ***", self._redact(text, SHORTEST))
        data = shown.encode("utf-8", "replace")
        return shown if len(data) <= MAX_TEXT_BYTES else data[:MAX_TEXT_BYTES].decode("utf-8", "ignore") + "..."

    def value(self, text: str) -> str:
        """Return a string of a good response without credentials."""
        if text in self._clean_values:
            return text
        redacted = self._redact(text, SHORTEST_IN_RESULTS)
        if redacted is text and len(text) <= _MAX_CLEAN_CHARACTERS and len(self._clean_values) < _MAX_CLEAN_VALUES:
            self._clean_values.add(text)
        return redacted

    def body(self, body: bytes) -> bytes:
        """Return a good response's body without credentials; JSON stays JSON."""
        if self._prefilter.rules_out_secrets(body):
            return body
        redacted = self._redact_bytes(body, SHORTEST_IN_RESULTS)
        return redacted if redacted is body or _is_json(redacted) or not _is_json(body) else b'"%b"' % _MASK

    def hide(self, text: str, shortest: int) -> str:
        """Return the text, as long as before, with a `*` for each character of a secret's piece.

        Escapes are not decoded, so the text must have been parsed. `shortest` is how many characters a secret must
        have.
        """
        data = text.encode("utf-8", "replace")
        spans = self._spans(data, shortest, MAX_FINDINGS + len(data) // BYTES_OF_FINDING)
        if spans is None:
            return "*" * len(text)
        parts: list[str] = []
        position = 0
        for start, end in spans:
            start, end = max(position, _at_character(data, start, -1)), _at_character(data, end, 1)
            parts += [data[position:start].decode(), "*" * len(data[start:end].decode())]
            position = end
        return "".join([*parts, data[position:].decode()]) if parts else text

    def _redact(self, text: str, shortest: int) -> str:
        data = text.encode("utf-8", "replace")
        redacted = self._redact_bytes(data, shortest)
        return text if redacted is data else redacted.decode("utf-8", "replace")

    def _redact_bytes(self, data: bytes, shortest: int) -> bytes:
        """Return `data` itself if it holds no secret, else masked and without its escapes. JSON stays JSON."""
        plain = unescape(data)
        masked = self._mask(plain, shortest)
        return data if masked is plain else masked

    def _mask(self, data: bytes, shortest: int) -> bytes:
        """Return `data` with each piece of a secret of at least `shortest` characters masked."""
        spans = self._spans(data, shortest)
        if spans is None:
            return _MASK
        parts: list[bytes] = []
        position = 0
        for start, end in spans:
            parts += [data[position:start], _MASK]
            position = end
        return b"".join([*parts, data[position:]]) if parts else data

    def _spans(self, data: bytes, shortest: int, most: int = MAX_FINDINGS) -> list[tuple[int, int]] | None:
        """Return where the pieces of secrets stand, in order and apart; None for more than `most` findings."""
        folded = fold(data)
        spans: list[tuple[int, int]] = []
        end = position = findings = 0
        while (match := self._search(folded, position)) is not None:
            findings += 1
            if findings > most:
                return None
            span = self._span(folded, match.start(), end, shortest)
            if span is None:
                position = match.start() + 1
                continue
            spans.append(span)
            end = position = span[1]
        return spans

    def _span(self, folded: bytes, start: int, floor: int, shortest: int) -> tuple[int, int] | None:
        """Return the longest piece of a secret around an anchor that begins at `start`, None if none is long enough."""
        best: tuple[int, int] | None = None
        for length in self._lengths:
            for form, position in self._anchors.get(folded[start : start + length], ()):
                if form.secret_length < shortest:
                    continue
                before = _common_suffix(folded[floor:start], form.text[:position])
                after = _common_prefix(folded[start : start + len(form.text)], form.text[position:])
                if before + after >= form.least and (best is None or before + after > best[1] - best[0]):
                    best = (start - before, start + after)
        return best


def _at_character(data: bytes, position: int, step: int) -> int:
    """Return the nearest position in that direction at which a character of UTF-8 begins, or the text ends."""
    while 0 < position < len(data) and data[position] & 0xC0 == 0x80:
        position += step
    return position


def _common_prefix(one: bytes, other: bytes) -> int:
    length = min(len(one), len(other))
    return next((index for index in range(length) if one[index] != other[index]), length)


def _common_suffix(one: bytes, other: bytes) -> int:
    length = min(len(one), len(other))
    return next((index for index in range(length) if one[-1 - index] != other[-1 - index]), length)


def _is_json(body: bytes) -> bool:
    return jsontext.is_json(body.decode("utf-8", "replace"))


def _search_for(patterns: Iterable[bytes], *, case_sensitive: bool = True) -> Any:
    """Return the search for any of the patterns: one pass over the text, however many there are."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.case_sensitive = case_sensitive
    options.max_mem = 64 * 1024 * 1024
    either = b"|".join(patterns)
    return re2.compile(either, options).search if either else lambda data, position: None


class SecretPrefilter:
    """Rules out quickly that a body holds any of some secrets, given in all their forms.

    An embedding is some 20 kB of digits, which are skipped at the speed of `memchr`, some fifty times that of a search.
    Every piece of a secret has one of a few telling characters that no number has, so a stretch without those holds no
    piece. Only pieces of digits alone, which the hex form of a key often has, are searched for in the stretch.
    """

    __slots__ = ("_digits", "_has_telling", "_overlap", "_search", "_search_digits", "_telling")

    def __init__(self, forms: Sequence[Form]) -> None:
        unfolded = map(_unfolded_pattern, sorted({anchor for form in forms for _, anchor in anchors(form)}))
        self._search = _search_for([MAY_BE_ESCAPE, *unfolded], case_sensitive=False)
        self._overlap = max([_LONGEST_ESCAPE, *[form.least for form in forms]]) - 1
        self._telling = b""
        self._digits: list[bytes] = []  # of which each piece of digits alone has one
        self._has_telling = sum(len(form.text) for form in forms) <= _MAX_FORM_BYTES and self._find_telling(forms)
        self._search_digits = re2.compile(b"|".join(self._digits)).search if len(self._digits) > _FEW_DIGITS else None

    def rules_out_secrets(self, data: bytes) -> bool:
        """Whether there is certainly no piece of a secret, and no escape that could hide one."""
        position = 0
        telling = self._telling
        while self._has_telling and len(data) - position > 2 * _LEAST_STRETCH:
            start, end = _stretch(data, position, telling)
            if end - start < _LEAST_STRETCH or data.find(b"E", start, end) >= 0:
                break
            if self._search(data[position : start + self._overlap]) is not None:
                return False
            if self._has_digits(data, start, end):
                return False
            position = end - self._overlap
            last = data[end : end + 1]
            telling = last + telling.replace(last, b"")  # likely to end the next one too: others are not sought beyond
        return self._search(data[position:]) is None

    def _has_digits(self, data: bytes, start: int, end: int) -> bool:
        """Whether a piece of a secret that is of digits alone may be there."""
        if self._search_digits is None:
            return any(data.find(digits, start, end) >= 0 for digits in self._digits)
        return self._search_digits(data, start, end) is not None

    def _find_telling(self, forms: Iterable[Form]) -> bool:
        """Find characters that no number has, one in each piece of a secret; return whether there are such."""
        telling: set[int] = set(b"\\%&")  # with which escapes begin
        common = Counter(byte for form in forms for byte in form.text)
        for form in forms:
            for start in range(len(form.text) - form.least + 1):
                piece = frozenset(form.text[start : start + form.least])
                if piece <= _IN_NUMBERS:
                    if not piece <= _IN_HEX_NUMBERS:
                        return False
                elif not piece & telling:
                    telling.add(max(piece - _IN_NUMBERS, key=lambda byte: common[byte]))
            for run in re.findall(rb"[0-9e]{%d,}" % form.least, form.text):
                self._digits += [anchor for _, anchor in anchors(form._replace(text=run))]
        self._telling = b"".join(_unfolded(byte) for byte in telling)
        return True


def _stretch(data: bytes, position: int, telling: bytes) -> tuple[int, int]:
    """Return start and end of the stretch behind the position that has none of the telling characters.

    Its start is searched for only a little behind the position: an array begins soon, or there is none. A result
    shorter than _LEAST_STRETCH may not be all of it.
    """
    start, inside, end = position, position + _LEAST_STRETCH, len(data)
    for character in telling:
        start = data.rfind(character, start, inside) + 1 or start
        if (found := data.find(character, inside, end)) >= 0:
            end = found
        if end - start < _LEAST_STRETCH:
            break
    return start, end


def _unfolded_pattern(anchor: bytes) -> bytes:
    """Return the pattern of an anchor in a text that is not folded."""
    return b"".join(b"[%b]" % re.escape(_unfolded(byte)) for byte in anchor)


def _unfolded(byte: int) -> bytes:
    """Return the bytes that are folded to this one."""
    character = bytes((byte,))
    return {b"+": b"+-", b"/": b"/_"}.get(character) or bytes({byte, *character.upper()})


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
