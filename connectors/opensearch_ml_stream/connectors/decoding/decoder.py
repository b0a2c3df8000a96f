"""Decode one provider stream: bytes to events by its framing, events to chunks and one outcome by its provider.

    decoder.feed(data) -> chunks     for every read, cut anywhere
    decoder.close()    -> chunks     once the body has ended; sets the outcome if no event did
    decoder.outcome                  None while the stream runs, then an Ending or an UpstreamError
    decoder.is_ending                whether a finish reason or the outcome has come

An event that cannot be read ends the stream as an error: what it held of the response would be missing without a word.
One that says nothing is passed over, and so is any that follows the finish reason. Nothing raises, since an error that
follows text within one read must not lose the text. After the outcome is set no more chunks come. The result does not
depend on how the bytes were cut.
"""

import re
from dataclasses import replace
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall
from opensearch_ml_stream.connectors.decoding.contract import (
    FINISHING,
    MAX_EVENT_VALUES,
    EventReader,
    Finishing,
    Framing,
    Outcome,
    has_too_many_values,
    too_complex,
    truncated,
)
from opensearch_ml_stream.connectors.decoding.finish_reasons import after_calls, after_refusal
from opensearch_ml_stream.connectors.decoding.surrogates import SplitPairs
from opensearch_ml_stream.connectors.errors import UnreadableEvent, UpstreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider_errors import error_without_result, read_error
from opensearch_ml_stream.connectors.syntax import provider_json

ERROR = "error"
"""The name of an event that is an error, whatever its data are, in any provider's stream."""

# What a provider raises for an event of the wrong shape (see contract.EventReader.read).
_MALFORMED = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)

# Names and data of events that servers and proxies send to keep a connection open, or to end it: no part of a response.
_NOTHING = r"[ \t\r\n!-/:-@\[-`{-~]*+"
_WORDS = "ping|pong|heartbeat|keep[-_ ]?alive|done|end|eof|null|ok"
_says_nothing = re.compile(rf"{_NOTHING}(?:(?:{_WORDS}){_NOTHING})?".encode(), re.IGNORECASE).fullmatch


# Of the arguments that are kept, to see at the end whether they are whole; more are taken for whole.
MAX_KEPT_ARGUMENTS = 4 * 1024 * 1024


class SaidOfTheEnd:
    """What an answer itself says of how it ends: its tool calls, and whether the model refuses in it."""

    __slots__ = ("_arguments", "_has_refused", "_ids", "_room")

    def __init__(self) -> None:
        self._arguments: dict[int, list[str] | None] = {}  # None for a text, which may end anywhere
        self._has_refused = False
        self._ids: dict[str, int] = {}  # of the calls
        self._room = MAX_KEPT_ARGUMENTS

    def add(self, chunk: Chunk) -> Chunk:
        """Note the fragments of calls, and the refusal, of a chunk; return it without ids that other calls have."""
        self._has_refused = self._has_refused or bool(chunk.refusal)
        for fragment in chunk.tool_calls:
            arguments = self._arguments.setdefault(fragment.index, None if fragment.is_text else [])
            self._room -= len(fragment.arguments)
            if self._room >= 0 and arguments is not None:
                arguments.append(fragment.arguments)
        if all(call.id is None or self._ids.setdefault(call.id, call.index) == call.index for call in chunk.tool_calls):
            return chunk
        return chunk._replace(tool_calls=tuple(map(self._with_own_id, chunk.tool_calls)))

    def _with_own_id(self, call: ToolCall) -> ToolCall:
        taken = call.id is not None and self._ids.setdefault(call.id, call.index) != call.index
        return replace(call, id=None) if taken else call

    def end(self, outcome: Outcome) -> Outcome:
        """Return the outcome of an answer that says this, by what its reader returned.

        Without a reason of the provider's, calls that are not whole say that the answer was cut off. With a reason they
        are the model's own.
        """
        if not isinstance(outcome, Ending):
            return outcome
        if outcome.native_finish_reason is None and self._room >= 0 and not self._has_whole_calls():
            return truncated("the end of a tool call's arguments")
        reason = after_calls(outcome.finish_reason) if self._arguments else outcome.finish_reason
        return replace(outcome, finish_reason=after_refusal(reason) if self._has_refused else reason)

    def _has_whole_calls(self) -> bool:
        try:
            for fragments in self._arguments.values():
                if fragments is not None:
                    provider_json.loads("".join(fragments).encode())
        except ValueError:
            return False
        return True


class Decoder:
    """Decoder of one provider stream. The module's docstring states the contract."""

    __slots__ = ("_framing", "_is_closing", "_pairs", "_reader", "_said", "chunk_count", "is_ending", "outcome")

    def __init__(self, framing: Framing, reader: EventReader) -> None:
        self._framing = framing
        self._reader = reader
        self._pairs: SplitPairs | None = None  # created by the first event that may need it
        self._said: SaidOfTheEnd | None = None  # created by the first tool call or refusal
        self._is_closing = False
        self.chunk_count = 0  # of the chunks returned so far
        self.is_ending = False
        self.outcome: Outcome | None = None

    @property
    def has_pending_half(self) -> bool:
        """Return whether the next text may begin with the second half of a surrogate pair (see `surrogates`)."""
        return self._pairs is not None and self._pairs.is_pending

    @property
    def has_repaired(self) -> bool:
        """Return whether an event was JSON only by what it means (see `syntax.provider_json`)."""
        return self._pairs is not None

    def feed(self, data: bytes) -> list[Chunk]:
        """Return the chunks of the events that end within `data`."""
        if self.outcome is not None:
            return []
        return self._read(self._framing.feed(data))

    def close(self) -> list[Chunk]:
        """Return the last chunks once the body has ended; set the outcome if no event did."""
        if self.outcome is not None:
            return []
        has_finished, self._is_closing = self.is_ending, True
        chunks = self._read(self._framing.close())
        if self.outcome is None or (has_finished and self.outcome is self._framing.error):
            self.outcome, self.is_ending = self._reader.end_of_input(), True
            last: list[Chunk] = []
            self._end_read(last)
            chunks += last
        return chunks

    def _read(self, events: list[Event]) -> list[Chunk]:
        chunks: list[Chunk] = []
        read = self._reader.read
        outcome: Outcome | Finishing | None = None
        for event in events:
            chunks_before, data = len(chunks), event.data
            try:
                large = len(data) > MAX_EVENT_VALUES and has_too_many_values(data)
                if large:
                    outcome = too_complex()
                else:
                    outcome = read(event, chunks) if event.name != ERROR else self._read_error(event)
            except _MALFORMED:
                outcome = self._unreadable(event)
            if event.data is not data or self._pairs is not None:
                self._join_halves(b"" if event.data is data else data, chunks, chunks_before)
            if outcome is None:
                continue
            self.is_ending = True
            if not isinstance(outcome, Finishing):
                self.outcome = outcome
                break
        self._end_read(chunks)
        return chunks

    def _end_read(self, chunks: list[Chunk]) -> None:
        if self.outcome is None and self._framing.error is not None:
            self.outcome, self.is_ending = self._framing.error, True
        if self.outcome is not None and self._pairs is not None:
            chunks += self._pairs.close()
        self.chunk_count += len(chunks)
        for place, chunk in enumerate(chunks):
            if chunk[2] or chunk[5]:  # tool calls, or a refusal
                self._said = self._said or SaidOfTheEnd()
                chunks[place] = self._said.add(chunk)
        if self.outcome is not None and self._said is not None:
            self.outcome = self._said.end(self.outcome)

    def _unreadable(self, event: Event) -> Outcome | Finishing | None:
        """Return the error for an event that may hold a part of the response; none once it is known to be complete."""
        goes_on = FINISHING if self.is_ending else None
        if _says_nothing(event.data) or (event.name and _says_nothing(event.name.encode())):
            return goes_on
        if (error := error_without_result(_json_or_text(event))) is not None:
            return error
        if self.is_ending:
            return goes_on
        if self._is_closing:
            return truncated("the end of an event")
        return UnreadableEvent("The provider sent an event that is not of the form its connector announces")

    def _read_error(self, event: Event) -> UpstreamError:
        """Return the error that an event is by its name: as its provider writes errors, else in whatever form."""
        try:
            outcome = self._reader.read(event, [])
        except _MALFORMED:
            outcome = None
        return outcome if isinstance(outcome, UpstreamError) else read_error(_json_or_text(event))

    def _join_halves(self, data: bytes, chunks: list[Chunk], start: int) -> None:
        """Join halves of characters in an event's chunks, those from `start` on; `data` is what was no JSON."""
        if self._pairs is None:
            self._pairs = SplitPairs()
        self._pairs.join(data, chunks, start)


def _json_or_text(event: Event) -> Any:
    try:
        return event.payload
    except ValueError:
        return event.data.decode("utf-8", "replace")
