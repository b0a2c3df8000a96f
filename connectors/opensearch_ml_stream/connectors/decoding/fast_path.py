"""Most events of an answer differ from the one before in nothing but their text; those need no parsing.

A provider that writes `data: {"id":"x",...,"delta":{"content":"Hel"},...}` writes the next token with the same bytes
around it. So from an event that was parsed, its *frame* is learned: the bytes before and after the text. Where events
of that frame follow one another, their texts are cut out as they are, JSON in and JSON out. Everything else goes the
long way, through framing, JSON and provider.

Why both ways are equal (and a property test holds them to it): the frame is learned only if parsing the frame with
another text in it gives exactly that text and nothing else; what is cut out must be the content of a valid JSON
string in valid UTF-8; and a spec says that it repeats only if an event that differs from the one before in its text
alone changes nothing else (usage, model, finish reason).
"""

import re
from collections.abc import Callable, Sequence

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, TextRun, as_list
from opensearch_ml_stream.connectors.decoding.contract import Outcome, Provider
from opensearch_ml_stream.connectors.decoding.decoder import Decoder
from opensearch_ml_stream.connectors.decoding.framing.sse import SSEFraming

# A stream whose events never look alike is not looked at for ever.
MAX_LEARNED_FRAMES = 8

# A first read that is long is learned from before all of it has gone the long way. The first event may be one that
# only says who speaks.
LONG_READ_BYTES = 2048
EVENTS_TO_LEARN_FROM = 3

_PROBE = "~probe~"
_END_OF_EVENT = b"\n\n"

_PLAIN = rb'[^"\\\x00-\x1f]'
_SURROGATES = rb"[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_CODE_UNIT = rb"(?:[0-9a-cA-Ce-fE-F][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2}"
_ESCAPE = rb'\\(?:["\\/bfnrt]|u(?:%b|%b))' % (_CODE_UNIT, _SURROGATES)
_TEXT = rb"(?:%b+(?:%b%b*)*|(?:%b%b*)+)" % (_PLAIN, _ESCAPE, _PLAIN, _ESCAPE, _PLAIN)
# Characters that stand for themselves in a JSON string, whatever surrounds them.
_ORDINARY = bytes(code for code in range(0x20, 0x7F) if code not in b'"\\')

# The contents of JSON strings, none empty, a NUL between two.
_TEXTS = re.compile(rb"%b(?:\x00%b)*" % (_TEXT, _TEXT)).fullmatch


class FastPathDecoder:
    """A Decoder (same contract, same results) that is quick where events repeat."""

    __slots__ = (
        "_boundary", "_framing", "_lessons", "_long_way", "_looked", "_new_provider", "_prefix",
        "_run_chunks", "_suffix", "_suffix_length", "_text", "outcome",
    )  # fmt: skip

    def __init__(self, new_provider: Callable[[], Provider]) -> None:
        self._framing = SSEFraming()
        self._new_provider = new_provider
        self._long_way = Decoder(self._framing, new_provider())
        self._lessons = 0
        self._looked = False  # whether a long read was learned from
        self._boundary = True  # no event is under way
        self._prefix = b""
        self._suffix = b""
        self._text = 0  # where the text of such an event begins
        self._suffix_length = 0
        self._run_chunks = 0  # those that were cut out
        self.outcome: Outcome | None = None

    @property
    def chunks(self) -> int:
        return self._run_chunks + self._long_way.chunks

    @property
    def skipped_events(self) -> int:
        return self._long_way.skipped_events

    def feed(self, data: bytes) -> Chunks:
        if self._prefix and self.outcome is None:
            if self._boundary and data.startswith(self._prefix) and data.endswith(self._suffix):
                text = data[self._text : -self._suffix_length]
                if text and not text.translate(None, _ORDINARY):  # as nearly all are
                    self._run_chunks += 1
                    return TextRun(text)
                run = self._run(data)
                if run is not None:
                    return run
            elif len(data) > 2 * (self._text + self._suffix_length):
                return self._in_parts(data)
        elif not self._looked and len(data) > LONG_READ_BYTES:
            self._looked = True
            end = _end_of_events(data, EVENTS_TO_LEARN_FROM)
            return _joined([self._parse(data[:end]), self.feed(data[end:])])
        return self._parse(data)

    def close(self) -> Chunks:
        chunks = self._long_way.close()
        self.outcome = self._long_way.outcome
        return chunks

    def _run(self, data: bytes) -> TextRun | None:
        """The texts of `data` if it is nothing but events of the frame."""
        if not (data.startswith(self._prefix) and data.endswith(self._suffix)):
            return None
        texts = data[len(self._prefix) : -len(self._suffix)].replace(self._suffix + self._prefix, TextRun.SEPARATOR)
        if TextRun.SEPARATOR in data or not _TEXTS(texts) or not _is_utf8(texts):
            return None
        run = TextRun(texts)
        self._run_chunks += run.length
        return run

    def _in_parts(self, data: bytes) -> Chunks:
        """A read that begins or ends within an event, or with another one: the long way only for those."""
        start = 0
        if not (self._boundary and data.startswith(self._prefix)):
            start = data.find(_END_OF_EVENT) + len(_END_OF_EVENT)
        end = data.rfind(self._suffix) + len(self._suffix)
        if (start < len(_END_OF_EVENT) and start) or not data.startswith(self._prefix, start) or end <= start:
            return self._parse(data)
        head = self._parse(data[:start]) if start else []
        run = self._run(data[start:end]) if self._boundary and self.outcome is None else None
        if run is None:
            return _joined([head, self._parse(data[start:])])
        return _joined([head, run, self._parse(data[end:]) if end < len(data) else []])

    def _parse(self, data: bytes) -> Chunks:
        chunks = self._long_way.feed(data)
        self.outcome = self._long_way.outcome
        self._boundary = self._framing.idle and not self._long_way.half_waits
        if chunks and self.outcome is None and self._lessons < MAX_LEARNED_FRAMES:
            self._learn(data, chunks[-1])
        return chunks

    def _learn(self, data: bytes, chunk: Chunk) -> None:
        """Learns the frame of the last whole event of `data`, if `chunk` is its text."""
        end = data.rfind(_END_OF_EVENT)
        start = data.rfind(_END_OF_EVENT, 0, end)
        event = data[start + len(_END_OF_EVENT) if start >= 0 else 0 : end + len(_END_OF_EVENT)]
        text = orjson.dumps(chunk.text)
        if chunk != Chunk(chunk.text) or event.count(text) != 1 or self._is_of_the_frame(event):
            return
        self._lessons += 1
        before, after = event.split(text)
        prefix, suffix = before + b'"', b'"' + after
        probe = Decoder(SSEFraming(), self._new_provider())
        if probe.feed(prefix + _PROBE.encode() + suffix) == [Chunk(_PROBE)] and probe.outcome is None:
            self._prefix, self._suffix = prefix, suffix
            self._text, self._suffix_length = len(prefix), len(suffix)

    def _is_of_the_frame(self, event: bytes) -> bool:
        return bool(self._prefix) and event.startswith(self._prefix) and event.endswith(self._suffix)


def _end_of_events(data: bytes, count: int) -> int:
    """Where the first `count` events end, or the data."""
    end = 0
    for _ in range(count):
        found = data.find(_END_OF_EVENT, end)
        if found < 0:
            return len(data)
        end = found + len(_END_OF_EVENT)
    return end


def _joined(parts: Sequence[Chunks]) -> Chunks:
    """All chunks of the parts in turn; texts alone stay a run."""
    parts = [part for part in parts if part]
    if len(parts) == 1:
        return parts[0]
    lists = [part for part in parts if isinstance(part, list)]
    if not parts or any(chunk.reasoning or chunk.tool_calls for chunks in lists for chunk in chunks):
        return [chunk for part in parts for chunk in as_list(part)]
    return TextRun(TextRun.SEPARATOR.join([_json(part) if isinstance(part, list) else part for part in parts]))


def _json(chunks: list[Chunk]) -> bytes:
    return TextRun.SEPARATOR.join([orjson.dumps(chunk.text)[1:-1] for chunk in chunks])


def _is_utf8(texts: bytes) -> bool:
    if texts.isascii():
        return True
    try:
        texts.decode()
    except UnicodeDecodeError:
        return False
    return True
