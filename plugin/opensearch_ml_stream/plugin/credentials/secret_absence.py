"""Proves of most bodies that no secret is in them, without a look at each byte of an array of numbers.

An embedding is some 20 kB of digits. A stretch of it is passed over at the speed of `memchr`, some fifty times that of
a search: where none of a few telling characters stands, of which each piece of a secret has one, there is no piece. For
pieces of digits alone, which the hex form of a key often has, the stretch is searched.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import re2

from opensearch_ml_stream.plugin.credentials.written_forms import MAY_BE_ESCAPE, Form, anchors

_IN_NUMBERS = frozenset(b"0123456789e+.,: []")  # of JSON, folded as forms are
_IN_HEX_NUMBERS = frozenset(b"0123456789e")
_LONGEST_ESCAPE = 5  # bytes of MAY_BE_ESCAPE
_MAX_FORM_BYTES = 16_384  # of all forms: of more, which takes 30 ms, no telling characters are found
_LEAST_STRETCH = 1024  # bytes
_FEW_DIGITS = 3  # pieces of digits that are sought one by one: a long key may have 30, which RE2 seeks in the same pass


class SecretAbsence:
    """Knows of bodies that none of some secrets, given in all their forms, is in them."""

    __slots__ = ("_digits", "_has_telling", "_overlap", "_search", "_search_digits", "_telling")

    def __init__(self, forms: Sequence[Form]) -> None:
        self._search = _compile({anchor for form in forms for _, anchor in anchors(form)})
        self._overlap = max([_LONGEST_ESCAPE, *[form.least for form in forms]]) - 1
        self._telling = b""
        self._digits: list[bytes] = []  # of which each piece of digits alone has one
        self._has_telling = sum(len(form.text) for form in forms) <= _MAX_FORM_BYTES and self._find_telling(forms)
        self._search_digits = re2.compile(b"|".join(self._digits)).search if len(self._digits) > _FEW_DIGITS else None

    def is_certain(self, data: bytes) -> bool:
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
        """Find the telling characters, which no number has; whether there are such for all pieces."""
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
    """Return where the stretch behind the position begins and ends in which no telling character stands.

    It is looked for a little behind the position: an array begins soon, or there is none. Shorter than _LEAST_STRETCH
    if it is not all of it.
    """
    start, inside, end = position, position + _LEAST_STRETCH, len(data)
    for character in telling:
        start = data.rfind(character, start, inside) + 1 or start
        if (found := data.find(character, inside, end)) >= 0:
            end = found
        if end - start < _LEAST_STRETCH:
            break
    return start, end


def _compile(secrets: Iterable[bytes]) -> Any:
    """Return the search for any of the anchors in a text that is not folded, or for what may be an escape."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.case_sensitive = False
    options.max_mem = 64 * 1024 * 1024
    written = [b"".join(b"[%b]" % re.escape(_unfolded(byte)) for byte in anchor) for anchor in sorted(secrets)]
    return re2.compile(b"|".join([MAY_BE_ESCAPE, *written]), options).search


def _unfolded(byte: int) -> bytes:
    """Return the bytes that are folded to this one."""
    character = bytes((byte,))
    return {b"+": b"+-", b"/": b"/_"}.get(character) or bytes({byte, *character.upper()})
