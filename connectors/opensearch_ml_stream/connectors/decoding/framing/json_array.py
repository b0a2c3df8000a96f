"""JSON-array framing: the body is one JSON array, and every object in it is an event as soon as its last brace comes.

Gemini streams like this without `alt=sse`. A single object instead of an array (an error, say) is one event.
"""

import re

from opensearch_ml_stream.connectors.decoding.contract import MAX_EVENT_BYTES, Event, too_large, truncated
from opensearch_ml_stream.connectors.errors import UpstreamError

_STRUCTURE = re.compile(rb'["{}\[\]]')
_IN_STRING = re.compile(rb'["\\]')
_OPENING = b"{["
_BETWEEN = b" \t\r\n,"


class JSONArrayFraming:
    """The objects of a JSON array as events. Every byte is read once, however the bytes are cut."""

    __slots__ = ("_depth", "_escaped", "_event_depth", "_in_string", "_parts", "_size", "error")

    def __init__(self) -> None:
        self._event_depth = -1  # of the value around the events: 1 in an array, 0 for a single object, -1 not known
        self._depth = 0  # number of open braces and brackets
        self._in_string = False
        self._escaped = False  # the last byte was a backslash within a string
        self._parts: list[bytes] = []  # the pieces of the unfinished event
        self._size = 0
        self.error: UpstreamError | None = None

    def feed(self, data: bytes) -> list[Event]:
        """Return the objects that end within `data`."""
        events: list[Event] = []
        start = position = 0  # `start`: where the unfinished event begins or goes on in `data`
        while self.error is None:
            at = self._next_structural(data, position)
            if at is None:
                break
            position = at + 1
            if self._read_structural(data[at]):
                if self._depth > self._event_depth:
                    start = at
                else:
                    self._parts.append(data[start:position])
                    events.append(Event("", b"".join(self._parts)))
                    self._parts.clear()
                    self._size = 0
        if self._is_within_event():
            self._parts.append(data[start:])
            self._size += len(data) - start
            if self._size > MAX_EVENT_BYTES:
                self.error = too_large()
        return events

    def close(self) -> list[Event]:
        """Set `error` if the body ended within the array or object."""
        if self._depth and self.error is None:
            self.error = truncated("the end of its JSON")
        return []

    def _is_within_event(self) -> bool:
        return self._event_depth >= 0 and self._depth > self._event_depth

    def _next_structural(self, data: bytes, position: int) -> int | None:
        """Return the position of the next quote, backslash, brace or bracket that counts, None if there is none."""
        if self._escaped:
            if position >= len(data):
                return None
            self._escaped = False
            position += 1
        match = (_IN_STRING if self._in_string else _STRUCTURE).search(data, position)
        end = len(data) if match is None else match.start()
        if not self._in_string and not self._is_within_event() and data[position:end].strip(_BETWEEN):
            self.error = _not_an_array()
            return None
        return None if match is None else end

    def _read_structural(self, byte: int) -> bool:
        """Update the state by one such byte; return whether an event begins or ends with it."""
        if byte == ord("\\"):
            self._escaped = True
            return False
        if byte == ord('"'):
            self._in_string = not self._in_string
            return False
        if byte in _OPENING:
            if self._event_depth < 0:
                self._event_depth = 1 if byte == ord("[") else 0
                self._depth = 1
                return self._event_depth == 0
            self._depth += 1
            return self._depth == self._event_depth + 1
        if self._depth == 0:
            self.error = _not_an_array()
            return False
        self._depth -= 1
        return self._depth == self._event_depth


def _not_an_array() -> UpstreamError:
    return UpstreamError("The provider's response is not a JSON array of objects")
