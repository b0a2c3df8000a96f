"""A provider's bytes become chunks and one outcome: a framing (bytes to events) and a provider (events to chunks).

    decoder.feed(data) -> chunks     as often as bytes come, cut anywhere
    decoder.close()    -> chunks     when the body has ended; sets the outcome if nothing did before
    decoder.outcome                  None while the stream runs, then an Ending or an UpstreamError, once

Nothing raises: an error that follows text in the same read must not lose the text. After the outcome is set
no more chunks come. The result does not depend on how the bytes were cut.
"""

from opensearch_ml_stream.connectors.chunks import Chunk
from opensearch_ml_stream.connectors.decoding.contract import Event, Framing, Outcome, Provider, truncated
from opensearch_ml_stream.connectors.decoding.surrogates import SurrogateRepair
from opensearch_ml_stream.connectors.errors import UpstreamError

# One broken event in a long answer should not cost the answer; more of them mean that the framing is not what
# we think it is. What was skipped is told in the terminal object ("skipped_events").
MAX_SKIPPED_EVENTS = 3

# What reading an event of the wrong shape raises; MalformedEvent is a ValueError.
_UNREADABLE = (ValueError, KeyError, TypeError, IndexError, AttributeError)


class Decoder:
    """One provider stream. See the module's docstring for the contract."""

    __slots__ = ("_framing", "_halves", "_provider", "_read_any", "_skipped", "chunks", "outcome")

    def __init__(self, framing: Framing, provider: Provider) -> None:
        self._framing = framing
        self._provider = provider
        self._halves: SurrogateRepair | None = None
        self._read_any = False
        self._skipped = 0
        self.chunks = 0  # that it has given so far
        self.outcome: Outcome | None = None

    @property
    def skipped_events(self) -> int:
        """Events of which something was lost."""
        halves = self._halves
        return self._skipped + (0 if halves is None else halves.lost + bool(halves.waiting))

    @property
    def half_waits(self) -> bool:
        """Whether the next text may begin with the other half of a character (see `surrogates`)."""
        return self._halves is not None and bool(self._halves.waiting)

    def feed(self, data: bytes) -> list[Chunk]:
        return self._read(self._framing.feed(data))

    def close(self) -> list[Chunk]:
        if self.outcome is not None:
            return []
        skipped = self._skipped
        chunks = self._read(self._framing.close())
        if self.outcome is None:
            cut_off = self._skipped > skipped  # what came last was half an event
            self.outcome = truncated("the end of an event") if cut_off else self._provider.end_of_input()
        return chunks

    def _read(self, events: list[Event]) -> list[Chunk]:
        chunks: list[Chunk] = []
        if self.outcome is not None:
            return chunks
        read = self._provider.read
        outcome: Outcome | None = None
        for event in events:
            known = len(chunks)
            try:
                outcome = read(event, chunks)
            except _UNREADABLE:
                outcome = self._read_mended(event, chunks)
            else:
                self._read_any = True
                if self._halves is not None and len(chunks) > known:
                    self._halves.wait(b"")
            if outcome is not None:
                break
        self.chunks += len(chunks)
        self.outcome = outcome or self._framing.error
        return chunks

    def _read_mended(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        if self._halves is None:
            self._halves = SurrogateRepair()
        mended = self._halves.mended(event.data)
        if mended is None:
            return self._skip()
        data, half = mended
        try:
            outcome = self._provider.read(Event(event.name, data), chunks)
        except _UNREADABLE:
            return self._skip()
        self._read_any = True
        self._halves.wait(half)
        return outcome

    def _skip(self) -> UpstreamError | None:
        self._skipped += 1
        if self._read_any and self._skipped <= MAX_SKIPPED_EVENTS:
            return None
        return UpstreamError("The provider sent an event that is not of the form its connector announces")
