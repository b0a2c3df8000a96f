r"""Repair UTF-16 surrogate pairs that a provider splits over two events.

A server that counts in UTF-16 may end one token between the two halves of a surrogate pair and write `"...\ud83d"`
into one event, `"\ude00..."` into the next. Neither is a character by itself (RFC 8259, section 8.2); both are.
"""

import re
from collections.abc import Iterator

_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
_HIGH = range(0xD800, 0xDC00)
_LOW = range(0xDC00, 0xE000)


class SurrogateRepair:
    """Repair state of one stream: the pending first half of a split pair, and the number of halves that were lost."""

    __slots__ = ("lost", "pending")

    def __init__(self) -> None:
        self.lost = 0
        self.pending = b""  # an escape such as `\ud83d`, empty for none

    def repair(self, data: bytes) -> tuple[bytes, bytes] | None:
        """Return the JSON of an event without unpaired surrogates, and the half cut from the end of one of its strings.

        A pending half is put in front of the string that begins with its second half. The half that is returned, empty
        for none, is for `keep`. Return None if nothing is unpaired, or if an unpaired half is not at a string's edge,
        or is a second half while no first half is pending.
        """
        halves = list(_unpaired(data))
        if not halves:
            return None
        first, last = halves[0], halves[-1]
        begins = int(first[1], 16) in _LOW and data[: first.start()].endswith(b'"')
        ends = int(last[1], 16) in _HIGH and data.startswith(b'"', last.end())
        if len(halves) != begins + ends or (begins and not self.pending):
            return None
        if ends:
            data = data[: last.start()] + data[last.end() :]
        if begins:
            data = data[: first.start()] + self.pending + data[first.start() :]
            self.pending = b""
        return data, last[0] if ends else b""

    def keep(self, half: bytes) -> None:
        """Set the pending half, b"" for none. One that is still pending is counted as lost."""
        self.lost += bool(self.pending)
        self.pending = half


def _unpaired(data: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the surrogate escapes of `data` that have no partner beside them."""
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
