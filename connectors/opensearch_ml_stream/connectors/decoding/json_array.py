"""JSON-array framing: the body is one JSON array, and every object in it is an event as soon as its last brace comes.

Gemini streams like this without `alt=sse`. A single object instead of an array (an error, say) is one event.
"""

import re

from opensearch_ml_stream.connectors.decoding.contract import (
    MAX_EVENT_BYTES,
    too_complex,
    too_large,
    truncated,
)
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.event import Event

MAX_DEPTH = 1024  # the JSON parser's
LEAST_EVENT_BYTES = len(b'{"":0}')  # an object without members is no event: one read can hold 20,000 of them

# Possessive and unrolled: what lies between two brackets is skipped at once, whole strings included.
_STRING_REST = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_TO_BRACKET = re.compile(rb'[^"{}\[\]]*+(?:"%b"[^"{}\[\]]*+)*+' % _STRING_REST.pattern, re.DOTALL)
_BETWEEN = re.compile(rb"(?:[ \t\r\n,]++|\{[ \t\r\n]*+\})*+")  # between two events, empty objects included
_BEFORE = re.compile(rb"[ \t\r\n\xef\xbb\xbf]*+")  # the array, with the bytes of a byte order mark
_OPENING = b"{["
_BRACKETS = b"{}[]"


class JSONArrayFraming:
    """The objects of a JSON array as events. Every byte is read once, however the bytes are cut."""

    __slots__ = ("_depth", "_escaped", "_event", "_event_depth", "_in_string", "error")

    def __init__(self) -> None:
        self._event_depth = -1  # of the value around the events: 1 in an array, 0 for a single object, -1 not known
        self._depth = 0  # number of open braces and brackets
        self._in_string = False
        self._escaped = False  # the last byte was a backslash within a string
        self._event = bytearray()  # the unfinished event
        self.error: UpstreamError | None = None

    def feed(self, data: bytes) -> list[Event]:
        """Return the objects that end within `data`."""
        events: list[Event] = []
        if self.error is not None:
            return events
        start = 0  # where the unfinished event begins or goes on in `data`
        position = self._skip_string(data, 0) if self._in_string else 0
        while (at := self._next_bracket(data, position)) is not None:
            position = at + 1
            if self._read_bracket(data[at]):
                if self._depth > self._event_depth:
                    start = at
                else:
                    event = data[start:position]
                    if self._event:
                        event = bytes(self._event + event)
                        self._event.clear()
                    if len(event) >= LEAST_EVENT_BYTES:
                        events.append(Event("", event))
            if self.error is not None:
                return events
        if self._is_within_event():
            self._event += data[start:]
            if len(self._event) > MAX_EVENT_BYTES:
                self.error = too_large()
        return events

    def close(self) -> list[Event]:
        """Set `error` if the body ended within the array or object."""
        if self._depth and self.error is None:
            self.error = truncated("the end of its JSON")
        return []

    def _is_within_event(self) -> bool:
        return self._event_depth >= 0 and self._depth > self._event_depth

    def _skip_string(self, data: bytes, position: int) -> int:
        """Return the position after the string that goes on at `position`, the length of `data` if it does not end."""
        if self._escaped and position < len(data):
            self._escaped = False
            position += 1
        rest = _STRING_REST.match(data, position)
        position = len(data) if rest is None else rest.end()
        self._escaped = self._escaped or data.startswith(b"\\", position)
        self._in_string = not data.startswith(b'"', position)
        return len(data) if self._in_string else position + 1

    def _next_bracket(self, data: bytes, position: int) -> int | None:
        """Return the position of the next brace or bracket that is not in a string, None if there is none."""
        between = _BEFORE if self._event_depth < 0 else _BETWEEN
        skipped = (_TO_BRACKET if self._is_within_event() else between).match(data, position)
        end = len(data) if skipped is None else skipped.end()
        if end == len(data):
            return None
        if data[end] in _BRACKETS:
            return end
        if self._is_within_event():
            self._skip_string(data, end + 1)
        else:
            self.error = _not_an_array()
        return None

    def _read_bracket(self, byte: int) -> bool:
        """Update the state by a bracket; return whether an event begins or ends with it."""
        if byte in _OPENING:
            if self._event_depth < 0:
                self._event_depth = 1 if byte == ord("[") else 0
                self._depth = 1
                return self._event_depth == 0
            self._depth += 1
            if self._depth > MAX_DEPTH:
                self.error = too_complex()
            return self._depth == self._event_depth + 1
        if self._depth == 0:
            self.error = _not_an_array()
            return False
        self._depth -= 1
        return self._depth == self._event_depth


def _not_an_array() -> UpstreamError:
    return UpstreamError("The provider's response is not a JSON array of objects")
