"""The decoder contract: the protocols of decoders, framings and providers, and the outcome of a stream.

A framing turns bytes into events, a provider turns events into chunks and one outcome. Both are pure: no I/O, no
clock, no logger.
"""

import re
from enum import Enum
from typing import Final, Protocol

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending
from opensearch_ml_stream.connectors.errors import StreamTruncated, UpstreamError
from opensearch_ml_stream.connectors.event import Event

# Of one event; each line of an SSE event counts LINE_BYTES more. While an event is decoded there are up to 25 bytes of
# memory for each of its own (the line, its data, the text in Unicode, its encoded form), and nothing else is done. The
# largest events of providers repeat a whole response, which has up to some 128,000 tokens: half of a MiB.
MAX_EVENT_BYTES = 4 * 1024 * 1024
LINE_BYTES = 64

# Values of one event, objects and arrays counted twice: it is parsed and read at once, while nothing else is done.
MAX_EVENT_VALUES = 160_000

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)

Outcome = Ending | UpstreamError


class Finishing(Enum):
    """The state of a stream whose finish reason has come: what is still to come is its usage and its terminator."""

    FINISHING = "finishing"


FINISHING: Final = Finishing.FINISHING


class Framing(Protocol):
    """Bytes to events. Neither method raises: an unreadable stream sets `error` and gives no more events."""

    error: UpstreamError | None

    def feed(self, data: bytes) -> list[Event]:
        """Return the events that end within `data`, which may be cut anywhere."""
        ...

    def close(self) -> list[Event]:
        """Return the last events once the body has ended; set `error` if it ended within an event."""
        ...


class EventReader(Protocol):
    """Events to chunks. One object per stream, so it may keep state (usage, model, tool call ids)."""

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        """Append the event's chunks to `chunks`; return the outcome if the event ends the stream.

        FINISHING says that the finish reason has come, so that nobody need wait long for what may follow it.

        Raises ValueError, KeyError, TypeError, IndexError or AttributeError for an event that does not have the
        provider's shape: the stream ends there, unless the event says nothing.
        """
        ...

    def end_of_input(self) -> Outcome:
        """Return the outcome of a body that ended before any event ended the stream."""
        ...


class StreamDecoder(Protocol):
    """Bytes to chunks and one outcome; the docstring of `decoder` states the contract."""

    is_ending: bool
    outcome: Outcome | None

    @property
    def chunk_count(self) -> int:
        """The number of chunks returned so far."""
        ...

    def feed(self, data: bytes) -> Chunks:
        """Return the chunks of the events that end within `data`."""
        ...

    def close(self) -> Chunks:
        """Return the last chunks once the body has ended; set the outcome if no event did."""
        ...


def truncated(missing: str = "its terminator") -> StreamTruncated:
    """Return the outcome of a stream that the provider closed before `missing` came."""
    return StreamTruncated(f"The provider closed the stream before {missing}; the response is incomplete")


def too_large() -> UpstreamError:
    """Return the error of a framing whose event grows over MAX_EVENT_BYTES."""
    return UpstreamError(f"The provider sent an event of more than {MAX_EVENT_BYTES} bytes")


def too_complex() -> UpstreamError:
    """Return the error for an event that holds too many values."""
    return UpstreamError(f"The provider sent an event of more than {MAX_EVENT_VALUES} values")


def has_too_many_values(data: bytes, limit: int = MAX_EVENT_VALUES, container: int = 2) -> bool:
    """Return whether JSON holds more than `limit` values; an object or array counts as `container` of them."""
    if _count_values(data, container) <= limit:
        return False
    if data.count(b'"') - data.count(b'\\"') > 4 * limit:
        return True
    return _count_values(_STRING.sub(b"", data), container) > limit


def _count_values(data: bytes, container: int) -> int:
    return data.count(b",") + container * (data.count(b"{") + data.count(b"["))
