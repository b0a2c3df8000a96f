"""The clock for the times in documents: milliseconds since 1970."""

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Returns the time now in milliseconds since 1970."""


def now_millis() -> int:
    """Return the time now in milliseconds since 1970: the Clock of a server."""
    return time.time_ns() // 1_000_000
