"""The decoder contract: what framings and providers implement, and how a stream ends.

A framing turns bytes into events, a provider turns events into chunks and one outcome. Both are pure: no I/O, no
clock, no logger.
"""

from typing import NamedTuple, Protocol

from opensearch_ml_stream.connectors.chunks import Chunk, Ending
from opensearch_ml_stream.connectors.errors import StreamTruncated, UpstreamError

MAX_EVENT_BYTES = 16 * 1024 * 1024

Outcome = Ending | UpstreamError


class Event(NamedTuple):
    """One framed event: its name ("" where the framing has none) and its payload."""

    name: str
    data: bytes


class Framing(Protocol):
    """Bytes to events. `feed` and `close` never raise; an unreadable stream sets `error` and ends."""

    error: UpstreamError | None

    def feed(self, data: bytes) -> list[Event]: ...

    def close(self) -> list[Event]: ...


class Provider(Protocol):
    """Events to chunks: one object per stream, so it may keep what it has seen (usage, model, tool ids)."""

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        """Append what the event adds; return the outcome if it ends the stream.

        Raises MalformedEvent (any ValueError, KeyError, TypeError, IndexError or AttributeError counts) for
        an event that is not of the provider's shape.
        """
        ...

    def end_of_input(self) -> Outcome:
        """What it means that the provider closed here. Called only when no event ended the stream."""
        ...


def truncated(what: str = "its terminator") -> StreamTruncated:
    """The outcome of a stream that the provider closed too early."""
    return StreamTruncated(f"The provider closed the stream before {what}; the answer is incomplete")


def too_large() -> UpstreamError:
    """What a framing says when an event does not end."""
    return UpstreamError(f"The provider sent an event of more than {MAX_EVENT_BYTES} bytes")
