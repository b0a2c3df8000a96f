"""Decode one provider stream: bytes to events by its framing, events to chunks and one outcome by its provider.

    decoder.feed(data) -> chunks     for every read, cut anywhere
    decoder.close()    -> chunks     once the body has ended; sets the outcome if no event did
    decoder.outcome                  None while the stream runs, then an Ending or an UpstreamError
    decoder.is_ending                whether a finish reason or the outcome has come

An event that cannot be read ends the stream as an error: otherwise its part of the response would be missing silently.
An event without content is skipped, and so is any that follows the finish reason. Nothing raises, since an error that
follows text within one read must not lose the text. After the outcome is set no more chunks come. The result does not
depend on how the bytes were cut.

`Decoder` parses every event. `FastPathDecoder` wraps it, and skips parsing for events that repeat.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, ChunkParts, Chunks, Ending, TextRun, ToolCall
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
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.errors import UnreadableEvent, UpstreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider_errors import error_without_result, read_error
from opensearch_ml_stream.connectors.syntax import provider_json
from opensearch_ml_stream.connectors.syntax.provider_json import HIGH, LOW, mask_escapes, unmask_escapes

_NO_CHARACTER = "\ufffd"
_HALF = rb"\ufffd"  # what `provider_json` makes of half a pair
_FIRST_HALF = re.compile(rb'\\u([dD]%b)"' % HIGH)
_SECOND_HALF = re.compile(rb'"\\u([dD]%b)' % LOW)
_NO_CHUNK = Chunk()


class SplitPairs:
    r"""Repairs UTF-16 surrogate pairs that a provider splits over two events.

    A server that counts in UTF-16 may write `"...\ud83d"` into one event and `"\ude00..."` into the next. Neither half
    is a character by itself (RFC 8259, section 8.2), so each is read as U+FFFD. The first half is held until the next
    text comes, and joined with the second. A half whose other half does not come is U+FFFD, in its place in the text.
    """

    __slots__ = ("_half", "_held")

    def __init__(self) -> None:
        self._half = 0  # the code unit of the first half that is held, 0 for none
        self._held = _NO_CHUNK  # what it is without the other one

    @property
    def is_pending(self) -> bool:
        """Return whether the next text may begin with the second half of a pair."""
        return self._half != 0

    def join(self, data: bytes, chunks: list[Chunk], start: int) -> None:
        """Join the halves in the chunks of one event, those from `start` on; `data` is what was no JSON, b"" if it was.

        A refusal, which is told apart in its text, stays as it is.
        """
        if len(chunks) == start or not (data or self._half):
            return
        data = mask_escapes(data)
        if self._half:
            chunk, second = chunks[start], _SECOND_HALF.search(data)
            pair = 0 if second is None else 0x10000 + (self._half - 0xD800) * 0x400 + int(second[1], 16) - 0xDC00
            joined = _with_beginning(chunk, self._held, chr(pair)) if pair and not chunk.refusal else None
            chunks[start : start + 1] = [*self.close(), chunk] if joined is None else [joined]
            self._half = 0
        halves, last = _FIRST_HALF.findall(data), chunks[-1]
        split = _without_end(last) if halves and not last.refusal else None
        if split is not None:
            self._half = int(halves[-1], 16)
            last, self._held = split
            chunks[-1:] = [] if last == _NO_CHUNK else [last]

    def close(self) -> list[Chunk]:
        """Return what is still held: no text follows."""
        if not self._half:
            return []
        self._half = 0
        return [self._held]


def _without_end(chunk: Chunk) -> tuple[Chunk, Chunk] | None:
    """Return a chunk without the U+FFFD at its end, and that as a chunk; None if there is none."""
    text, reasoning, calls = chunk.text, chunk.reasoning, chunk.tool_calls
    if text.endswith(_NO_CHARACTER):
        text, held = text[:-1], Chunk(_NO_CHARACTER)
    elif reasoning.endswith(_NO_CHARACTER):
        reasoning, held = reasoning[:-1], Chunk(reasoning=_NO_CHARACTER)
    elif len(calls) == 1 and calls[0].arguments.endswith(_NO_CHARACTER):
        call = replace(calls[0], arguments=calls[0].arguments[:-1])
        calls = (call,) if call.id or call.name or call.arguments else ()
        held = Chunk(tool_calls=(ToolCall(call.index, arguments=_NO_CHARACTER),))
    else:
        return None
    event = _edited(chunk.event, _HALF + b'"', b'"')
    return chunk._replace(text=text, reasoning=reasoning, tool_calls=calls, event=event), held


def _with_beginning(chunk: Chunk, held: Chunk, character: str) -> Chunk | None:
    """Return a chunk with a character for the U+FFFD with which it begins where `held` is; None if it does not."""
    text, reasoning, calls = chunk.text, chunk.reasoning, chunk.tool_calls
    if held.text and text.startswith(_NO_CHARACTER):
        text = character + text[1:]
    elif held.reasoning and reasoning.startswith(_NO_CHARACTER):
        reasoning = character + reasoning[1:]
    elif held.tool_calls and calls and _goes_on(calls[0], held.tool_calls[0]):
        calls = (replace(calls[0], arguments=character + calls[0].arguments[1:]), *calls[1:])
    else:
        return None
    event = _edited(chunk.event, b'"' + _HALF, b'"' + character.encode())
    return chunk._replace(text=text, reasoning=reasoning, tool_calls=calls, event=event)


def _goes_on(call: ToolCall, held: ToolCall) -> bool:
    return call.index == held.index and call.arguments.startswith(_NO_CHARACTER)


def _edited(event: Event | None, old: bytes, new: bytes) -> Event | None:
    """Return an event as it was sent with another text in it; None if its text is not the only one with the half."""
    data = b"" if event is None else mask_escapes(event.data)
    return None if event is None or data.count(old) != 1 else Event(event.name, unmask_escapes(data.replace(old, new)))


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


class CallTracker:
    """Tracks the tool calls and the refusal of an answer, which decide how it ends."""

    __slots__ = ("_arguments", "_has_refused", "_ids", "_room")

    def __init__(self) -> None:
        self._arguments: dict[int, list[str] | None] = {}  # None for a text, which may end anywhere
        self._has_refused = False
        self._ids: dict[str, int] = {}  # of the calls
        self._room = MAX_KEPT_ARGUMENTS

    def add(self, chunk: Chunk) -> Chunk:
        """Track a chunk; return it without the ids of calls that other calls have, too."""
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
        """Return the outcome, by the one that the reader returned.

        Calls with incomplete arguments mean that the answer was cut off, unless the provider gave a finish reason: then
        the model itself ended them.
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

    __slots__ = ("_framing", "_is_closing", "_pairs", "_reader", "_tracker", "chunk_count", "is_ending", "outcome")

    def __init__(self, framing: Framing, reader: EventReader) -> None:
        self._framing = framing
        self._reader = reader
        self._pairs: SplitPairs | None = None  # created by the first event that may need it
        self._tracker: CallTracker | None = None  # created by the first tool call or refusal
        self._is_closing = False
        self.chunk_count = 0  # of the chunks returned so far
        self.is_ending = False
        self.outcome: Outcome | None = None

    @property
    def has_pending_half(self) -> bool:
        """Return whether the next text may begin with the second half of a surrogate pair (see `SplitPairs`)."""
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
                self._tracker = self._tracker or CallTracker()
                chunks[place] = self._tracker.add(chunk)
        if self.outcome is not None and self._tracker is not None:
            self.outcome = self._tracker.end(self.outcome)

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

    A provider that writes `data: {"id":"x",...,"delta":{"content":"Hel"},...}` writes the next token with the same
    bytes around it. So an event that was parsed teaches its *frame*: the bytes before and after the text. Where events
    of that frame follow one another, their texts are cut out as they are, JSON in and JSON out. Everything else takes
    the slow path, the full decoder: framing, JSON parser, provider.

    Both paths give the same chunks, and a property test holds them to it, because:

    - to learn a frame, another text is put into it, and the full decoder must return exactly that text, of an event
      that is JSON as it stands;
    - a padding at the end of an event, which differs from event to event, is no part of the frame, and another one is
      put into that event too;
    - what is cut out must be the content of a valid JSON string in valid UTF-8;
    - only specs in which a text-only difference changes nothing else (usage, model, finish reason) have a fast path
      (`StreamSpec.has_fast_path`).
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
