"""Most events of an answer differ from the one before in nothing but their text; those need no parsing.

A provider that writes `data: {"id":"x",...,"delta":{"content":"Hel"},...}` writes the next token with the same bytes
around it. So from an event that was parsed, its *frame* is learned: the bytes before and after the text. When whole
reads are such events, the text is cut out. Everything else goes the long way, through framing, JSON and provider.

Why both ways are equal (and a property test holds them to it): the frame is learned only if parsing the frame with
another text in it gives exactly that text and nothing else; the text that is cut out must be plain, that is a JSON
string without escapes, quotes or control characters, and valid UTF-8; and a spec says that it repeats only if an
event that differs from the one before in its text alone changes nothing else (usage, model, finish reason).
"""

import re
from collections.abc import Callable

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk
from opensearch_ml_stream.connectors.decoding import Decoder, Outcome, Provider
from opensearch_ml_stream.connectors.sse import SSEFraming

# A stream whose events never look alike is not looked at for ever.
MAX_LESSONS = 8

_PROBE = "~probe~"
_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*').fullmatch


class RepeatingDecoder:
    """A Decoder (same contract, same results) that is quick where events repeat."""

    __slots__ = (
        "_between", "_boundary", "_framing", "_lessons", "_long_way", "_new_provider", "_prefix", "_suffix", "outcome",
    )  # fmt: skip

    def __init__(self, new_provider: Callable[[], Provider]) -> None:
        self._framing = SSEFraming()
        self._new_provider = new_provider
        self._long_way = Decoder(self._framing, new_provider())
        self._lessons = 0
        self._boundary = True  # no event is under way
        self._prefix = b""
        self._suffix = b""
        self._between = b""  # what stands between the texts of two such events
        self.outcome: Outcome | None = None

    @property
    def skipped_events(self) -> int:
        return self._long_way.skipped_events

    def feed(self, data: bytes) -> list[Chunk]:
        if self._boundary and self._prefix and data.startswith(self._prefix) and data.endswith(self._suffix):
            chunks = self._cut_out(data)
            if chunks is not None:
                return chunks
        return self._parse(data)

    def close(self) -> list[Chunk]:
        chunks = self._long_way.close()
        self.outcome = self._long_way.outcome
        return chunks

    def _cut_out(self, data: bytes) -> list[Chunk] | None:
        """The chunks of a read that is nothing but such events, else None."""
        end = len(data) - len(self._suffix)
        start = len(self._prefix)
        if start > end or self.outcome is not None:
            return None
        texts = data[start:end]
        try:
            if _PLAIN(texts):
                return [Chunk(texts.decode())] if texts else []
            pieces = texts.split(self._between)
            if not all(map(_PLAIN, pieces)):
                return None
            return [Chunk(piece.decode()) for piece in pieces if piece]
        except UnicodeDecodeError:
            return None

    def _parse(self, data: bytes) -> list[Chunk]:
        whole_events = self._boundary
        chunks = self._long_way.feed(data)
        self.outcome = self._long_way.outcome
        self._boundary = self._framing.idle
        if whole_events and self._boundary and len(chunks) == 1 and self._lessons < MAX_LESSONS:
            self._learn(data, chunks[0])
        return chunks

    def _learn(self, data: bytes, chunk: Chunk) -> None:
        if self.outcome is not None or chunk != Chunk(chunk.text):
            return
        text = orjson.dumps(chunk.text)
        if data.count(text) != 1 or data.count(b"\n\n") != 1:  # one event, its text in it once
            return
        self._lessons += 1
        prefix, suffix = data.split(text)
        prefix, suffix = prefix + b'"', b'"' + suffix
        probe = Decoder(SSEFraming(), self._new_provider())
        if probe.feed(prefix + _PROBE.encode() + suffix) == [Chunk(_PROBE)] and probe.outcome is None:
            self._prefix, self._suffix, self._between = prefix, suffix, suffix + prefix
