"""Redacts credentials from what a provider sends, in whatever way they are written, and cuts error texts.

Provider bodies, error texts and the fields of a stream's end are searched. The text of a stream's chunks is not: a key
comes in several tokens, so no single chunk would hold it, and the providers' own text is for them to answer for.
"""

import re
from collections.abc import Mapping
from typing import Any

import re2

from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.plugin.credentials.secret_absence import SecretAbsence
from opensearch_ml_stream.plugin.credentials.written_forms import SHORTEST, Form, anchors, fold, secret_forms, unescape

MAX_TEXT_BYTES = 2048
SHORTEST_IN_RESULTS = 8  # a good response may well hold "demo" or "test", which are common credentials of test servers
MAX_FINDINGS = 1000  # a text that seems to hold more pieces of secrets is not shown at all: the search stays linear
BYTES_OF_FINDING = 64  # of a text in which a prompt is looked for: for as many of them it may have one finding more
MAX_PLACES = 8  # of one anchor in all forms: more has only a secret that repeats itself

_MASK = b"***"
_MAX_CLEAN_VALUES = 256
_MAX_CLEAN_CHARACTERS = 200
_BEARER = re.compile(r"(?i)\b(bearer|basic|api-key)\s+[A-Za-z0-9._~+/=-]{8,}")


class Redactor:
    """Takes the secrets of one credential out of texts; made once for each version of a connector."""

    __slots__ = ("_absence", "_anchors", "_clean_values", "_lengths", "_search")

    def __init__(self, credential: Mapping[str, str]) -> None:
        self._anchors: dict[bytes, list[tuple[Form, int]]] = {}
        forms = secret_forms(credential)
        self._absence = SecretAbsence([form for form in forms if form.secret_length >= SHORTEST_IN_RESULTS])
        for form in forms:
            for position, anchor in anchors(form):
                places = self._anchors.setdefault(anchor, [])
                if len(places) < MAX_PLACES:
                    places.append((form, position))
        self._lengths = sorted({len(anchor) for anchor in self._anchors})
        self._search = _compile(self._anchors)
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
        if self._absence.is_certain(body):
            return body
        redacted = self._redact_bytes(body, SHORTEST_IN_RESULTS)
        return redacted if redacted is body or _is_json(redacted) or not _is_json(body) else b'"%b"' % _MASK

    def hide(self, text: str, shortest: int) -> str:
        """Return the text with a `*` for each character of a secret's piece, as long as before.

        Escapes are not looked through: for a text that has been parsed. `shortest` is how many characters a secret
        must have.
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


def _compile(anchors: Mapping[bytes, object]) -> Any:
    """Return the search for any of the anchors: one pass over the text, however many there are."""
    if not anchors:
        return lambda data, position: None
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 64 * 1024 * 1024
    return re2.compile(b"|".join(re.escape(anchor) for anchor in sorted(anchors)), options).search


def _common_prefix(one: bytes, other: bytes) -> int:
    length = min(len(one), len(other))
    return next((index for index in range(length) if one[index] != other[index]), length)


def _common_suffix(one: bytes, other: bytes) -> int:
    length = min(len(one), len(other))
    return next((index for index in range(length) if one[-1 - index] != other[-1 - index]), length)


def _is_json(body: bytes) -> bool:
    return jsontext.is_json(body.decode("utf-8", "replace"))
