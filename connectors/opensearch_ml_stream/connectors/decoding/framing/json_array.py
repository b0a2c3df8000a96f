"""One JSON array, sent piece by piece: every object in it is an event, as soon as its last brace is there.

Gemini answers so without `alt=sse`. A single object instead of an array (an error, say) is one event.
"""

import re

from opensearch_ml_stream.connectors.decoding.contract import MAX_EVENT_BYTES, Event, too_large, truncated
from opensearch_ml_stream.connectors.errors import UpstreamError

_STRUCTURE = re.compile(rb'["{}\[\]]')
_IN_STRING = re.compile(rb'["\\]')
_OPENING = b"{["
_BETWEEN = b" \t\r\n,"


class JSONArrayFraming:
    """Looks at every byte once, however the bytes are cut."""

    __slots__ = ("_depth", "_escaped", "_in_string", "_parts", "_size", "_top", "error")

    def __init__(self) -> None:
        self._top = -1  # the depth at which events lie: 1 in an array, 0 for a single object, -1 not known
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._parts: list[bytes] = []  # the pieces of the event under way
        self._size = 0
        self.error: UpstreamError | None = None

    def feed(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        start = position = 0  # `start`: where the event under way goes on in `data`
        while self.error is None:
            found = self._next(data, position)
            if found is None:
                break
            position = found + 1
            if self._step(data[found]):
                if self._depth > self._top:
                    start = found
                else:
                    self._parts.append(data[start:position])
                    events.append(Event("", b"".join(self._parts)))
                    self._parts.clear()
                    self._size = 0
        if self._within():
            self._parts.append(data[start:])
            self._size += len(data) - start
            if self._size > MAX_EVENT_BYTES:
                self.error = too_large()
        return events

    def close(self) -> list[Event]:
        if self._depth and self.error is None:
            self.error = truncated("the end of its JSON")
        return []

    def _within(self) -> bool:
        return self._top >= 0 and self._depth > self._top

    def _next(self, data: bytes, position: int) -> int | None:
        """Where the next byte is that matters; None if there is none."""
        if self._escaped:
            if position >= len(data):
                return None
            self._escaped = False
            position += 1
        found = (_IN_STRING if self._in_string else _STRUCTURE).search(data, position)
        end = len(data) if found is None else found.start()
        if not self._in_string and not self._within() and data[position:end].strip(_BETWEEN):
            self.error = UpstreamError("The provider's answer is not a JSON array of objects")
            return None
        return None if found is None else end

    def _step(self, byte: int) -> bool:
        """Takes one such byte; whether an event starts or ends with it."""
        if byte == ord("\\"):
            self._escaped = True
            return False
        if byte == ord('"'):
            self._in_string = not self._in_string
            return False
        if byte in _OPENING:
            if self._top < 0:
                self._top = 1 if byte == ord("[") else 0
                self._depth = 1
                return self._top == 0
            self._depth += 1
            return self._depth == self._top + 1
        if self._depth == 0:
            self.error = UpstreamError("The provider's answer is not a JSON array of objects")
            return False
        self._depth -= 1
        return self._depth == self._top
