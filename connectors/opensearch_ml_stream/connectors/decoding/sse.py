"""SSE framing: server-sent events, https://html.spec.whatwg.org/multipage/server-sent-events.html.

It reads bytes, not text: a line ends at CR, LF or CRLF only (U+2028 and the like are text), and UTF-8 may be cut
anywhere. One deliberate divergence: a last event without its blank line is delivered, since some providers omit it.
"""

from opensearch_ml_stream.connectors.decoding.contract import LINE_BYTES, MAX_EVENT_BYTES, too_large
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.syntax.provider_json import BYTE_ORDER_MARK


class SSEFraming:
    """Server-sent events by name and data. `feed` takes time linear in the bytes, also when they come one by one."""

    __slots__ = ("_data", "_data_bytes", "_data_counted", "_line", "_name", "_skip_lf", "_started", "error")

    def __init__(self) -> None:
        self._line = bytearray()  # the unfinished line
        self._data: list[bytes] = []  # the data lines of the unfinished event
        self._data_bytes = 0  # the cost of the first `_data_counted` data lines
        self._data_counted = 0
        self._name = ""
        self._skip_lf = False  # the last byte was a CR: an LF that follows belongs to the same line end
        self._started = False  # a line has ended: no byte order mark can follow
        self.error: UpstreamError | None = None

    @property
    def is_at_event_boundary(self) -> bool:
        """Return whether the bytes so far end with a blank line, so that no event is unfinished."""
        return self._started and self._is_between_events()

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that end within `data`."""
        if self._is_between_events() and (whole := _whole_events(data)) is not None:
            self._started = True
            return whole
        return self._feed_lines(data)

    def _feed_lines(self, data: bytes) -> list[Event]:
        if self._skip_lf and data:
            self._skip_lf = False
            if data[:1] == b"\n":
                data = data[1:]
        if b"\r" in data:
            self._skip_lf = data[-1:] == b"\r"
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = data.split(b"\n")
        rest = lines.pop()
        events: list[Event] = []
        if lines:
            if self._line:
                self._line += lines[0]
                lines[0] = bytes(self._line)
                self._line.clear()
            if not self._started:
                self._started = True
                lines[0] = lines[0].removeprefix(BYTE_ORDER_MARK)
            self._read_lines(lines, events)
            if self._data or self._data_counted:
                self._count_data(new_event=bool(events))
        if rest:
            self._line += rest
        if len(self._line) + self._data_bytes > MAX_EVENT_BYTES:
            self.error = too_large()
        return events

    def close(self) -> list[Event]:
        """Return the last event, if it did not end with a blank line."""
        return self.feed(b"\n\n")

    def _is_between_events(self) -> bool:
        return not (self._line or self._data or self._name or self._skip_lf)

    def _count_data(self, *, new_event: bool) -> None:
        if new_event:
            self._data_bytes = self._data_counted = 0
        new_lines = self._data[self._data_counted :]
        self._data_bytes += sum(map(len, new_lines)) + LINE_BYTES * len(new_lines)
        self._data_counted = len(self._data)

    def _read_lines(self, lines: list[bytes], events: list[Event]) -> None:
        data = self._data
        for line in lines:
            if line[:6] == b"data: ":
                data.append(line[6:])
            elif not line:
                if data:
                    events.append(Event(self._name, data[0] if len(data) == 1 else b"\n".join(data)))
                    data.clear()
                self._name = ""
            elif line[:5] == b"data:":
                data.append(line[5:])
            elif line[:6] == b"event:":
                self._name = line[6:].removeprefix(b" ").decode("utf-8", "replace")
            elif line == b"data":
                data.append(b"")
            elif line == b"event":
                self._name = ""
            # Anything else is a comment, an id, a retry time or a field that the specification says to ignore.


def _whole_events(data: bytes) -> list[Event] | None:
    """Return the events of a read in which each is one line of data, behind its name if it has one.

    So nearly all providers send all events. None for any other read.
    """
    if data[-2:] != b"\n\n" or b"\r" in data:
        return None
    events: list[Event] = []
    for event in data[:-2].split(b"\n\n"):
        name = ""
        if event[:7] == b"event: ":
            line, _, event = event.partition(b"\n")
            name = line[7:].decode("utf-8", "replace")
        if event[:6] != b"data: " or b"\n" in event:
            return None
        events.append(Event(name, event[6:]))
    return events
