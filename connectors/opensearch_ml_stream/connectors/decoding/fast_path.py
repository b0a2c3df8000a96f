"""Fast path of decoding: once an SSE event has been parsed, events with identical bytes around the text skip parsing.

A provider that writes `data: {"id":"x",...,"delta":{"content":"Hel"},...}` writes the next token with the same bytes
around it. So an event that was parsed teaches its *frame*: the bytes before and after the text. Where events of that
frame follow one another, their texts are cut out as they are, JSON in and JSON out. Everything else takes the slow
path, the full decoder: framing, JSON parser, provider.

Both paths give the same chunks, and a property test holds them to it, because:

- to learn a frame, another text is put into it, and the full decoder must return exactly that text, of an event that
  is JSON as it stands;
- a padding at the end of an event, which differs from event to event, is no part of the frame, and another one is put
  into that event too;
- what is cut out must be the content of a valid JSON string in valid UTF-8;
- only specs in which a text-only difference changes nothing else (usage, model, finish reason) have a fast path
  (`StreamSpec.has_fast_path`).
"""

import re
from collections.abc import Callable, Sequence

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, ChunkParts, Chunks, TextRun
from opensearch_ml_stream.connectors.decoding.contract import EventReader, Framing, Outcome
from opensearch_ml_stream.connectors.decoding.decoder import Decoder
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming

# After this many attempts a stream whose frame keeps changing takes the slow path only, so that learning ends.
MAX_LEARNED_FRAMES = 8

MAX_FRAME_BYTES = 16 * 1024  # it is looked for in every read

# A first read of more bytes is split after a few events, so that the rest of it can take the fast path already. More
# than one, since the first event often holds only the role, and a first text may be wanted as it was sent.
LONG_READ_BYTES = 2048
EVENTS_TO_LEARN_FROM = 4

_PROBE = b"~probe~"
_EVENT_BOUNDARY = b"\n\n"
_END_OF_OBJECT = b"}\n\n"

# The last member of OpenAI's events and of Mistral's: a text of any length, so that the sizes of packets tell nothing.
_PADDING = re.compile(rb'(,"(?:obfuscation|p)":")[ !#-\[\]-~]*"(?=}\n\n)')

_PLAIN = rb'[^"\\\x00-\x1f]'
_SURROGATES = rb"[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_CODE_UNIT = rb"(?:[0-9a-cA-Ce-fE-F][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2}"
_ESCAPE = rb'\\(?:["\\/bfnrt]|u(?:%b|%b))' % (_CODE_UNIT, _SURROGATES)
_TEXT = rb"(?:%b+(?:%b%b*)*|(?:%b%b*)+)" % (_PLAIN, _ESCAPE, _PLAIN, _ESCAPE, _PLAIN)
# Matches a TextRun: the contents of JSON strings, none empty, a NUL between two.
_is_text_run = re.compile(rb"%b(?:\x00%b)*" % (_TEXT, _TEXT)).fullmatch
# ASCII characters that stand for themselves in a JSON string.
_ORDINARY = bytes(code for code in range(0x20, 0x7F) if code not in b'"\\')


class FastPathDecoder:
    """Decoder of one SSE stream that skips parsing where events repeat; its contract and results are Decoder's.

    `slow_path` makes the full decoder, which must tell events of text alone from others whatever their texts are.
    """

    __slots__ = (
        "_after_text", "_at_event_boundary", "_fast_chunk_count", "_framing", "_has_split_long_read", "_is_padded",
        "_learn_attempts", "_new_reader", "_prefix", "_prefix_length", "_slow_path", "_suffix", "_suffix_length",
        "is_ending", "outcome",
    )  # fmt: skip

    def __init__(
        self, new_reader: Callable[[], EventReader], slow_path: Callable[[Framing, EventReader], Decoder] = Decoder
    ) -> None:
        self._framing = SSEFraming()
        self._new_reader = new_reader
        self._slow_path = slow_path(self._framing, new_reader())
        self._learn_attempts = 0
        self._has_split_long_read = False
        self._at_event_boundary = True  # the bytes so far end where an event ends
        self._prefix = b""  # the frame: the bytes of an event before and after its text, empty before one is learned
        self._suffix = b""
        self._after_text = b""  # as much of the suffix as comes before a padding
        self._is_padded = False
        self._prefix_length = 0
        self._suffix_length = 0
        self._fast_chunk_count = 0
        self.is_ending = False
        self.outcome: Outcome | None = None

    @property
    def chunk_count(self) -> int:
        """Return the number of chunks returned so far."""
        return self._fast_chunk_count + self._slow_path.chunk_count

    def feed(self, data: bytes) -> Chunks:
        """Return the chunks of the events that end within `data`: a TextRun where all of them are text alone."""
        if self._prefix and self.outcome is None:
            plain = _PADDING.sub(b"", data) if self._is_padded else data
            if self._at_event_boundary and plain.startswith(self._prefix) and plain.endswith(self._suffix):
                text = plain[self._prefix_length : -self._suffix_length]
                if text and not text.translate(None, _ORDINARY):  # one event of ordinary text, as nearly all reads are
                    self._fast_chunk_count += 1
                    return TextRun(text)
                run = self._cut_texts(plain)
                if run is not None:
                    return run
            elif len(data) > 2 * (self._prefix_length + self._suffix_length):
                return self._feed_mixed(data)
        elif not self._has_split_long_read and len(data) > LONG_READ_BYTES:
            self._has_split_long_read = True
            end = _end_of_events(data, EVENTS_TO_LEARN_FROM)
            return _join([self._feed_slow_path(data[:end]), self.feed(data[end:])])
        return self._feed_slow_path(data)

    def close(self) -> Chunks:
        """Return the last chunks once the body has ended; set the outcome if no event did."""
        chunks = self._slow_path.close()
        self.outcome = self._slow_path.outcome
        self.is_ending = self._slow_path.is_ending
        return chunks

    def _cut_texts(self, data: bytes) -> TextRun | None:
        """Return the texts of `data` if it is nothing but whole events of the frame, else None."""
        if not (data.startswith(self._prefix) and data.endswith(self._suffix)):
            return None
        texts = data[len(self._prefix) : -len(self._suffix)].replace(self._suffix + self._prefix, TextRun.SEPARATOR)
        if TextRun.SEPARATOR in data or not _is_text_run(texts) or not _is_utf8(texts):
            return None
        run = TextRun(texts)
        self._fast_chunk_count += run.length
        return run

    def _feed_mixed(self, data: bytes) -> Chunks:
        """Feed a read that begins or ends within an event or with another event: only these take the slow path."""
        start = 0
        if not (self._at_event_boundary and data.startswith(self._prefix)):
            boundary = data.find(_EVENT_BOUNDARY)
            if boundary < 0:
                return self._feed_slow_path(data)
            start = boundary + len(_EVENT_BOUNDARY)
        last = data.rfind(self._after_text, start, data.rfind(_EVENT_BOUNDARY) + len(_EVENT_BOUNDARY))
        if not data.startswith(self._prefix, start) or last < 0:
            return self._feed_slow_path(data)
        end = data.find(_EVENT_BOUNDARY, last) + len(_EVENT_BOUNDARY)
        head = self._feed_slow_path(data[:start]) if start else []
        run = None
        if self._at_event_boundary and self.outcome is None:
            run = self._cut_texts(_PADDING.sub(b"", data[start:end]) if self._is_padded else data[start:end])
        if run is None:
            return _join([head, self._feed_slow_path(data[start:])])
        return _join([head, run, self._feed_slow_path(data[end:]) if end < len(data) else []])

    def _feed_slow_path(self, data: bytes) -> Chunks:
        chunks = self._slow_path.feed(data)
        self.outcome = self._slow_path.outcome
        self.is_ending = self._slow_path.is_ending
        self._at_event_boundary = self._framing.is_at_event_boundary and not self._slow_path.has_pending_half
        if chunks and self.outcome is None and self._learn_attempts < MAX_LEARNED_FRAMES:
            self._learn(data, chunks[-1])
        return chunks

    def _learn(self, data: bytes, chunk: Chunk) -> None:
        """Learn the frame of the last whole event of `data`, if `chunk` is its text and nothing else."""
        if chunk[1:] != ("", (), (), "", "", None):
            return
        end = data.rfind(_EVENT_BOUNDARY)
        start = data.rfind(_EVENT_BOUNDARY, 0, end)
        event = data[start + len(_EVENT_BOUNDARY) if start >= 0 else 0 : end + len(_EVENT_BOUNDARY)]
        text, padding, plain = orjson.dumps(chunk.text), _PADDING.search(event), _PADDING.sub(b"", event)
        if plain.count(text) != 1 or (self._is_of_frame(plain) and self._is_padded >= bool(padding)):
            return
        if len(plain) - len(text) > MAX_FRAME_BYTES:
            return
        self._learn_attempts += 1
        before, after = plain.split(text)
        prefix, suffix, after_text, rest = before + b'"', b'"' + after, b'"' + after, b""
        if padding is not None:
            after_text, rest = suffix.removesuffix(_END_OF_OBJECT) + padding[1], _PROBE + b'"' + _END_OF_OBJECT
        probe = Decoder(SSEFraming(), self._new_reader())
        read = probe.feed(prefix + _PROBE + after_text + rest)
        if read == [Chunk(_PROBE.decode())] and probe.outcome is None and not probe.has_repaired:
            self._prefix, self._suffix, self._after_text, self._is_padded = prefix, suffix, after_text, bool(rest)
            self._prefix_length, self._suffix_length = len(prefix), len(suffix)

    def _is_of_frame(self, event: bytes) -> bool:
        return bool(self._prefix) and event.startswith(self._prefix) and event.endswith(self._suffix)


def _end_of_events(data: bytes, count: int) -> int:
    """Return the position where the first `count` events of `data` end, its length if it holds fewer."""
    end = 0
    for _ in range(count):
        boundary = data.find(_EVENT_BOUNDARY, end)
        if boundary < 0:
            return len(data)
        end = boundary + len(_EVENT_BOUNDARY)
    return end


def _join(parts: Sequence[Chunks]) -> Chunks:
    """Return the chunks of all parts in order, as a TextRun if all of them are text alone."""
    parts = [part for part in parts if part]
    if len(parts) == 1:
        return parts[0]
    apart = [one for part in parts for one in (part if isinstance(part, ChunkParts) else [part])]
    if not apart:
        return []
    if any(chunk != Chunk(chunk.text) for part in apart if isinstance(part, list) for chunk in part):
        return ChunkParts(apart)
    return TextRun(TextRun.SEPARATOR.join([_encode(part) if isinstance(part, list) else part for part in apart]))


def _encode(chunks: list[Chunk]) -> bytes:
    return TextRun.SEPARATOR.join([orjson.dumps(chunk.text)[1:-1] for chunk in chunks])


def _is_utf8(texts: bytes) -> bool:
    if texts.isascii():
        return True
    try:
        texts.decode()
    except UnicodeDecodeError:
        return False
    return True
