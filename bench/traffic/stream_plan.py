"""What passes through every system unchanged: the plan of a stream, inside the prompt, and a marker in each chunk.

A marker is `~<number, 6 digits>t<CLOCK_MONOTONIC of its sending, ns, 19 digits>~`: characters that no JSON encoder
escapes, so that it is found in whatever a system makes of the stream. The clock is one for all processes.
"""

import re
from dataclasses import dataclass

MARKER = re.compile(rb"~(\d{6})t(\d{19})~")
MARKER_LENGTH = 28

_PLAN = re.compile(rb"\[\[chunks=(\d+) every=([\d.]+) text=(\d+) piece=(\d+)\]\]")


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """A stream of `chunks`, one each `every` seconds (0: as fast as it goes), each with a text of `text` bytes.

    `piece` is how many bytes the provider hands to the kernel at once; 0 is a whole chunk.
    """

    chunks: int
    every: float = 0
    text: int = 30
    piece: int = 0

    def prompt(self) -> str:
        return f"[[chunks={self.chunks} every={self.every:f} text={self.text} piece={self.piece}]]"


def plan_in(body: bytes) -> StreamPlan | None:
    """The plan in a prompt anywhere in a request's body; None if there is none."""
    match = _PLAN.search(body)
    if match is None:
        return None
    return StreamPlan(int(match[1]), float(match[2]), int(match[3]), int(match[4]))
