"""Characters that a provider cut in half.

A server that counts in UTF-16 may end one token between the two halves of a surrogate pair and write `"...\\ud83d"`
into one event, `"\\ude00..."` into the next. Neither is a text by itself (RFC 8259, section 8.2), together they are.
"""

import re
from collections.abc import Iterator

_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_HIGH = range(0xD800, 0xDC00)
_LOW = range(0xDC00, 0xE000)


class SurrogateRepair:
    """The half that waits for the rest of its character, and how many waited in vain."""

    __slots__ = ("lost", "waiting")

    def __init__(self) -> None:
        self.lost = 0
        self.waiting = b""

    def mended(self, data: bytes) -> tuple[bytes, bytes] | None:
        """JSON whose strings hold no half: one that waits is put before the string that begins with its other half.

        With it the half at a string's end, which shall wait from now on. None if that is not what is wrong with `data`.
        """
        halves = list(_halves(data))
        if not halves:
            return None
        first, last = halves[0], halves[-1]
        begins = int(first[1], 16) in _LOW and data[: first.start()].endswith(b'"')
        ends = int(last[1], 16) in _HIGH and data.startswith(b'"', last.end())
        if len(halves) != begins + ends or (begins and not self.waiting):
            return None
        if ends:
            data = data[: last.start()] + data[last.end() :]
        if begins:
            data = data[: first.start()] + self.waiting + data[first.start() :]
            self.waiting = b""
        return data, last[0] if ends else b""

    def wait(self, half: bytes) -> None:
        """Keeps `half`; one that still waits is lost, and so it is when `half` is empty."""
        self.lost += bool(self.waiting)
        self.waiting = half


def _halves(data: bytes) -> Iterator[re.Match[bytes]]:
    """The escapes of surrogates that have no partner beside them."""
    high: re.Match[bytes] | None = None
    for escape in _ESCAPE.finditer(data):
        code = int(escape[1], 16) if escape[1] else 0
        if high is not None:
            if code in _LOW and escape.start() == high.end():
                high = None
                continue
            yield high
        high = escape if code in _HIGH else None
        if code in _LOW:
            yield escape
    if high is not None:
        yield high
