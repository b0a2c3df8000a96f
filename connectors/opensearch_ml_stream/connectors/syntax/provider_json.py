r"""Read what providers send as JSON but a strict parser refuses, as it is meant.

- A byte that is not of UTF-8 is U+FFFD, as in every text of the web; a byte order mark before the JSON is nothing.
- An escape of half a surrogate pair (`"\ud83d"`), which is no character, is U+FFFD.
- NaN and the infinities, which are no numbers, are null.
- A control character that stands in a string as it is, such as a line break, is itself.

Within strings such words are text. All else is as strict as ever: nesting, numbers beyond what a float can be. A text
that is JSON is parsed once and costs nothing more; any other takes time linear in its length.
"""

import re
from typing import Any

import orjson

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MIN_BYTES_OF_QUOTE = 8  # of a text with many quotes: the strings between them are taken apart
MAX_QUOTES = 100_000  # of a text with fewer bytes for each

# Bytes that UTF-8 does not have stand for an escaped backslash and an escaped quote, while strings are told apart.
_MARKS = ((rb"\\", b"\xfe\xfe"), (rb"\"", b"\xfe\xff"))
HIGH = rb"[89abAB][0-9a-fA-F]{2}"  # of a pair's first half, behind `\ud`
LOW = rb"[c-fC-F][0-9a-fA-F]{2}"
_UNPAIRED = re.compile(rb"\\u[dD](?:%b(?!\\u[dD]%b)|(?<!\\u[dD]%b\\u[dD])%b)" % (HIGH, LOW, HIGH, LOW))
_NOT_CONTROL = bytes(range(0x20, 0x100))
_NO_NUMBER = re.compile(rb"(?<![\w.+-])-?(?:[Nn]a[Nn]|[Ii]nf(?:inity)?)(?![\w.+-])")


def loads(data: bytes) -> Any:
    """Parse JSON of a provider. orjson.JSONDecodeError, a ValueError, if it is none however it is read."""
    return read(data)[1]


def read(data: bytes) -> tuple[bytes, Any]:
    """Return the JSON that is meant by a text of a provider, and its value; errors as of `loads`."""
    try:
        return data, orjson.loads(data)
    except orjson.JSONDecodeError as error:
        repaired = repair(data)
        try:
            return repaired, orjson.loads(repaired)
        except orjson.JSONDecodeError:
            raise error from None


def repair(data: bytes) -> bytes:
    """Return the JSON that is meant by a text which the strict parser refuses, if it is any."""
    text = data if data.isascii() else data.decode("utf-8", "replace").encode().removeprefix(BYTE_ORDER_MARK)
    text = mask_escapes(text)
    quotes = text.count(b'"')
    if quotes > MAX_QUOTES and quotes * MIN_BYTES_OF_QUOTE > len(text):
        return unmask_escapes(text)
    parts = text.split(b'"')
    if len(parts) > 1:
        parts[1::2] = _repair_strings(b'"'.join(parts[1::2])).split(b'"')
    parts[0::2] = _NO_NUMBER.sub(b"null", b'"'.join(parts[0::2])).split(b'"')
    return unmask_escapes(b'"'.join(parts))


def mask_escapes(text: bytes) -> bytes:
    """Return JSON in which each quote begins or ends a string, and each backslash an escape of another character."""
    for escape, mark in _MARKS:
        text = text.replace(escape, mark)
    return text


def unmask_escapes(text: bytes) -> bytes:
    """Return the JSON that `mask_escapes` was given."""
    for escape, mark in _MARKS:
        text = text.replace(mark, escape)
    return text


def _repair_strings(strings: bytes) -> bytes:
    """Return the contents of strings, a quote between two, with nothing in them that JSON's strings do not have."""
    strings = _UNPAIRED.sub(rb"\\ufffd", strings)
    for control in set(strings.translate(None, _NOT_CONTROL)):
        strings = strings.replace(bytes((control,)), rb"\u%04x" % control)
    return strings
