"""Events as their provider sent them, for clients that speak its dialect.

Events with nothing but text are left out: their text is enough, so they can take the fast path (`FastPathDecoder`).
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from opensearch_ml_stream.connectors.chunks import Chunk
from opensearch_ml_stream.connectors.conversation.answer import as_one
from opensearch_ml_stream.connectors.decoding.contract import EventReader, Finishing, Framing, Outcome
from opensearch_ml_stream.connectors.decoding.decoder import Decoder
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.connectors.event import Event

Redact = Callable[[bytes], bytes]
"""Returns what a provider sent without credentials: the very same bytes if there are none."""

_CANNOT_BE_SHOWN = "The provider sent an event that cannot be shown without a credential in it"


class ChooseEvent(Protocol):
    """Of a stream's events, chooses those that the client is to get as they were sent. It may keep state."""

    def __call__(self, event: Event, chunks: Sequence[Chunk], outcome: Outcome | Finishing | None) -> Event | None:
        """Return the event to send, its payload an object; None where the chunks that were read in it say all."""
        ...


class AsSent:
    """Reads events by `reader`, and adds those that `choose` returns to the chunks (`Chunk.event`).

    The first event of a stream only says that it has begun. It is held until the second, so that both are one write to
    the client, and dropped if the stream fails there.
    """

    __slots__ = ("_begins", "_choose", "_first", "_read", "end_of_input")

    def __init__(self, reader: EventReader, choose: ChooseEvent) -> None:
        self._read = reader.read
        self._choose = choose
        self._begins = True  # the first two events are still to come
        self._first: list[Chunk] = []  # that of the first event, while it waits
        self.end_of_input = reader.end_of_input

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        """Read an event; see `EventReader.read`."""
        own: list[Chunk] = []
        outcome = self._read(event, own)
        sent = self._choose(event, own, outcome)
        is_sent_alone = sent is not None and not own
        if is_sent_alone:
            own = [Chunk("", "", (), (), "", "", sent)]
        elif sent is not None:
            said = own[0] if len(own) == 1 else as_one(own)
            own = [Chunk(*said[:-1], sent)]
        if self._begins:
            if is_sent_alone and outcome is None and not self._first:
                self._first = own
                return None
            self._begins = False
            if not isinstance(outcome, UpstreamError):
                own = self._first + own
        chunks += own
        return outcome


class DecoderAsSent(Decoder):
    """A decoder that removes credentials from the events it passes on; the events of one read are searched together."""

    __slots__ = ("_redact",)

    def __init__(self, choose: ChooseEvent, redact: Redact, framing: Framing, reader: EventReader) -> None:
        super().__init__(framing, AsSent(reader, choose))
        self._redact = redact

    def _read(self, events: list[Event]) -> list[Chunk]:
        chunks = super()._read(events)
        sent = b"\n".join([chunk.event.data for chunk in chunks if chunk.event is not None])
        return chunks if not sent or self._redact(sent) is sent else self._redacted(chunks)

    def _redacted(self, chunks: list[Chunk]) -> list[Chunk]:
        """Return the chunks without credentials, up to an event of which too much is masked to be one still."""
        shown: list[Chunk] = []
        for chunk in chunks:
            if chunk.event is not None:
                event = Event(chunk.event.name, self._redact(chunk.event.data))
                if not isinstance(event.payload, dict):
                    self.outcome, self.is_ending = UpstreamError(_CANNOT_BE_SHOWN), True
                    break
                chunk = chunk._replace(event=event)
            shown.append(chunk)
        self.chunk_count -= len(chunks) - len(shown)
        return shown
