r"""Repair UTF-16 surrogate pairs that a provider splits over two events.

A server that counts in UTF-16 may end one token between the two halves of a surrogate pair and write `"...\ud83d"`
into one event, `"\ude00..."` into the next. Neither is a character by itself (RFC 8259, section 8.2); both are.
"""

import re
from itertools import islice

# An escape of a surrogate that has no partner beside it; escaped backslashes have been taken out of the way.
_HIGH_REST = rb"[89abAB][0-9a-fA-F]{2}"
_LOW_REST = rb"[c-fC-F][0-9a-fA-F]{2}"
_UNPAIRED = re.compile(
    rb"\\u[dD](?:(?P<high>%b)(?!\\u[dD]%b)|(?<!\\u[dD]%b\\u[dD])%b)" % (_HIGH_REST, _LOW_REST, _HIGH_REST, _LOW_REST)
)


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
        halves = list(islice(_UNPAIRED.finditer(data.replace(rb"\\", b"--")), 3))
        if not halves:
            return None
        first, last = halves[0], halves[-1]
        begins = first["high"] is None and data.endswith(b'"', 0, first.start())
        ends = last["high"] is not None and data.startswith(b'"', last.end())
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
