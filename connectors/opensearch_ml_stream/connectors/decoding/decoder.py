"""Decode one provider stream: bytes to events by its framing, events to chunks and one outcome by its provider.

    decoder.feed(data) -> chunks     for every read, cut anywhere
    decoder.close()    -> chunks     once the body has ended; sets the outcome if no event did
    decoder.outcome                  None while the stream runs, then an Ending or an UpstreamError
    decoder.is_ending                whether a finish reason or the outcome has come

Nothing raises, since an error that follows text within one read must not lose the text. After the outcome is set no
more chunks come. The result does not depend on how the bytes were cut.
"""

from collections.abc import Iterable
from dataclasses import replace

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall
from opensearch_ml_stream.connectors.decoding.contract import (
    MAX_EVENT_VALUES,
    EventReader,
    Finishing,
    Framing,
    Outcome,
    has_too_many_values,
    too_complex,
    truncated,
)
from opensearch_ml_stream.connectors.decoding.finish_reasons import after_calls
from opensearch_ml_stream.connectors.decoding.surrogates import SurrogateRepair
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.event import Event

# One malformed event should not cost a long response; more of them mean that the connector's stream spec is wrong.
# The terminal object reports how many were skipped ("skipped_events").
MAX_SKIPPED_EVENTS = 3

# What a provider raises for an event of the wrong shape (see contract.EventReader.read).
_MALFORMED = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)


# Of the arguments that are kept, to see at the end whether they are whole; more are taken for whole.
MAX_KEPT_ARGUMENTS = 4 * 1024 * 1024


class Calls:
    """The tool calls of one answer, which have a say in how it ends."""

    __slots__ = ("_arguments", "_room")

    def __init__(self) -> None:
        self._arguments: dict[int, list[str]] = {}
        self._room = MAX_KEPT_ARGUMENTS

    def add(self, fragments: Iterable[ToolCall]) -> None:
        """Note fragments of calls."""
        for fragment in fragments:
            self._room -= len(fragment.arguments)
            if self._room >= 0:
                self._arguments.setdefault(fragment.index, []).append(fragment.arguments)

    def end(self, outcome: Outcome) -> Outcome:
        """Return the outcome of an answer that holds these calls.

        Without a reason of the provider's, calls that are not whole say that the answer was cut off. With a reason they
        are the model's own.
        """
        if not isinstance(outcome, Ending):
            return outcome
        if outcome.native_finish_reason is None and self._room >= 0 and not self._are_whole():
            return truncated("the end of a tool call's arguments")
        return replace(outcome, finish_reason=after_calls(outcome.finish_reason))

    def _are_whole(self) -> bool:
        try:
            for fragments in self._arguments.values():
                orjson.loads("".join(fragments))
        except ValueError:
            return False
        return True


class Decoder:
    """Decoder of one provider stream. The module's docstring states the contract."""

    __slots__ = (
        "_calls", "_framing", "_has_read_event", "_reader", "_skipped", "_surrogates", "chunk_count", "is_ending",
        "outcome",
    )  # fmt: skip

    def __init__(self, framing: Framing, reader: EventReader) -> None:
        self._framing = framing
        self._reader = reader
        self._surrogates: SurrogateRepair | None = None  # created by the first event that may need it
        self._calls: Calls | None = None  # created by the first tool call
        self._has_read_event = False
        self._skipped = 0
        self.chunk_count = 0  # of the chunks returned so far
        self.is_ending = False
        self.outcome: Outcome | None = None

    @property
    def skipped_events(self) -> int:
        """Return the number of events that were skipped or lost half a character."""
        surrogates = self._surrogates
        return self._skipped + (0 if surrogates is None else surrogates.lost + bool(surrogates.pending))

    @property
    def has_pending_half(self) -> bool:
        """Return whether the next text may begin with the second half of a surrogate pair (see `surrogates`)."""
        return self._surrogates is not None and bool(self._surrogates.pending)

    def feed(self, data: bytes) -> list[Chunk]:
        """Return the chunks of the events that end within `data`."""
        if self.outcome is not None:
            return []
        return self._read(self._framing.feed(data))

    def close(self) -> list[Chunk]:
        """Return the last chunks once the body has ended; set the outcome if no event did."""
        if self.outcome is not None:
            return []
        skipped, has_finished = self._skipped, self.is_ending
        chunks = self._read(self._framing.close())
        if self.outcome is None or (has_finished and self.outcome is self._framing.error):
            ended_within_event = self._skipped > skipped and not has_finished
            outcome = truncated("the end of an event") if ended_within_event else self._reader.end_of_input()
            self.outcome = outcome if self._calls is None else self._calls.end(outcome)
            self.is_ending = True
        return chunks

    def _read(self, events: list[Event]) -> list[Chunk]:
        chunks: list[Chunk] = []
        read = self._reader.read
        outcome: Outcome | Finishing | None = None
        for event in events:
            chunks_before = len(chunks)
            try:
                large = len(event.data) > MAX_EVENT_VALUES and has_too_many_values(event.data)
                outcome = too_complex() if large else read(event, chunks)
            except _MALFORMED:
                outcome = self._read_repaired(event, chunks)
            else:
                self._has_read_event = True
                if self._surrogates is not None and len(chunks) > chunks_before:
                    self._surrogates.keep(b"")
            if outcome is None:
                continue
            self.is_ending = True
            if not isinstance(outcome, Finishing):
                self.outcome = outcome
                break
        self._end_read(chunks)
        return chunks

    def _end_read(self, chunks: list[Chunk]) -> None:
        self.chunk_count += len(chunks)
        for chunk in chunks:
            if chunk[2]:  # tool calls
                self._calls = self._calls or Calls()
                self._calls.add(chunk[2])
        if self.outcome is None and self._framing.error is not None:
            self.outcome, self.is_ending = self._framing.error, True
        elif self.outcome is not None and self._calls is not None:
            self.outcome = self._calls.end(self.outcome)

    def _read_repaired(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        if self._surrogates is None:
            self._surrogates = SurrogateRepair()
        repaired = self._surrogates.repair(event.data)
        if repaired is None:
            return self._skip()
        data, half = repaired
        try:
            outcome = self._reader.read(Event(event.name, data), chunks)
        except _MALFORMED:
            return self._skip()
        self._has_read_event = True
        self._surrogates.keep(half)
        return outcome

    def _skip(self) -> UpstreamError | None:
        self._skipped += 1
        if self._has_read_event and self._skipped <= MAX_SKIPPED_EVENTS:
            return None
        return UpstreamError("The provider sent an event that is not of the form its connector announces")
