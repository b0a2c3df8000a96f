"""Warnings that a client could cause thousands of times a second, logged now and then."""

import logging
from time import monotonic

PAUSE_SECONDS = 10.0

log = logging.getLogger("opensearch_ml_stream")


class OccasionalLog:
    """A log that writes each text once in PAUSE_SECONDS at most. The texts must be few."""

    def __init__(self) -> None:
        self._silent_until: dict[str, float] = {}

    def warn(self, text: str) -> None:
        """Log the text, if it was not logged of late."""
        now = monotonic()
        if now >= self._silent_until.get(text, 0.0):
            self._silent_until[text] = now + PAUSE_SECONDS
            log.warning(text)
