"""How much work code does, counted and not timed: the same figure on any machine."""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(call: Callable[[], object]) -> int:
    """Return how many lines of Python ran and how many functions of C were called in `call`.

    What one function of C does, such as a search or a copy of bytes, is one step, however long it takes. Garbage is
    not collected meanwhile: what other tests have left would end here, with lines of its own.
    """
    count = 0

    def on_line(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return on_line

    def on_call(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "c_call"

    traced, profiled, collects = sys.gettrace(), sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.settrace(on_line)
    sys.setprofile(on_call)
    try:
        call()
    finally:
        sys.setprofile(profiled)
        sys.settrace(traced)
        if collects:
            gc.enable()
    return count


class CountedBytes(bytes):
    """Bytes that count those of them that searches looked at, without what is made of slices."""

    looked_at = 0

    def find(self, part: Any, start: Any = 0, end: Any = None) -> int:
        """Search as `bytes` does."""
        end = len(self) if end is None else end
        found = super().find(part, start, end)
        self.looked_at += (end if found < 0 else found) - start
        return found

    def rfind(self, part: Any, start: Any = 0, end: Any = None) -> int:
        """Search as `bytes` does."""
        end = len(self) if end is None else end
        found = super().rfind(part, start, end)
        self.looked_at += end - max(found, start)
        return found
