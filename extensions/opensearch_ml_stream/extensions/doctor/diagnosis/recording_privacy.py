"""Remove credentials and the prompt from a recording, even if the provider echoes them one token at a time.

A provider's body is taken as lines, which all framings but AWS' are made of. The strings in the lines' JSON are put
together, those under the same names one after the other: so a secret is found that comes in many events. Each of its
characters becomes a `*`. What is no JSON is searched line by line. Times and reads stay what they were, as do the
bytes of a line that holds no secret.

Pieces of a secret count (`redaction`: 12 characters in a row; a secret of less than 14 only as a whole). A prompt
is searched for without regard to white space, and a string of it of less than SHORTEST_PROMPT characters is none: a
provider's own words are no secret.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, NamedTuple
from zlib import crc32

import orjson

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.syntax import jsontext
from opensearch_ml_stream.extensions.doctor.diagnosis.recording import Read, Recording
from opensearch_ml_stream.plugin.credentials.redaction import MAX_SEARCHED, SHORTEST, SHORTEST_IN_RESULTS, Redactor

SHORTEST_PROMPT = SHORTEST_IN_RESULTS
MAX_LINES = 100_000  # of a body; an event of a token has one or two
MAX_ALL_HIDDEN = 1_000  # characters: a longer text that is hidden as a whole was not searched to its end
MAX_MASK_BYTES = 5  # of what a Redactor returns for a text that seems to hold too many pieces of a secret
EVENT_STREAM = "application/vnd.amazon.eventstream"  # see connectors.decoding.framing.aws_eventstream
_PRELUDE = struct.Struct(">III")
_CRC = struct.Struct(">I")

# Strings of a request under these names are the provider's own words.
_NOT_PROMPT = frozenset({"role", "type", "model", "object", "anthropic_version"})

_Path = tuple[str, ...]


def without_secrets(recording: Recording, credential: Mapping[str, str], request_body: bytes) -> Recording:
    """Return the recording without the credential and without what the request said.

    InvalidRequest if the request's strings are too long, all together, to be looked for.
    """
    prompts = dict(_prompts(request_body))
    if sum(map(len, prompts.values())) > MAX_SEARCHED:
        raise InvalidRequest(
            f"The request has more than {MAX_SEARCHED} characters of text, too many to remove from a recording. "
            "Record a shorter prompt"
        )
    hiding = _Hiding(Redactor(credential), Redactor(prompts))
    body = recording.body
    if any(name == "content-type" and value.startswith(EVENT_STREAM) for name, value in recording.headers):
        frames = split_frames(body)
        changed = join_frames(frames, hiding.lines([frame.payload for frame in frames]))
        lengths = [frame.size for frame in frames]
    else:
        lines = body.splitlines(keepends=True)
        changed = hiding.lines(lines)
        lengths = [len(line) for line in lines]
    headers = tuple((name, hiding.text(value)) for name, value in recording.headers)
    return replace(recording, headers=headers, reads=_cut(recording.reads, lengths, changed))


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of JSON: what stands around its value, and whether the value is one member of an object of many lines."""

    prefix: bytes
    value: Any
    suffix: bytes
    is_member: bool = False

    def with_value(self, value: Any) -> bytes:
        """Return the line with another value."""
        data = orjson.dumps(value)
        return self.prefix + (data[1:-1] if self.is_member else data) + self.suffix


class _Hiding:
    """Hides the secrets of two redactors, of which the prompt's takes longer strings only."""

    def __init__(self, credential: Redactor, prompt: Redactor) -> None:
        self._credential = credential
        self._prompt = prompt

    def text(self, text: str) -> str:
        """Return a text with a `*` for each character of a secret."""
        text = self._credential.hide(text, SHORTEST)
        compact = "".join(text.split())
        hidden = self._prompt.hide(compact, SHORTEST_PROMPT)
        if hidden == compact:
            return text
        following = iter(hidden)
        return "".join([character if character.isspace() else next(following) for character in text])

    def lines(self, lines: list[bytes]) -> list[bytes]:
        """Return as many lines without the secrets. InvalidRequest for too many lines, or too many secrets."""
        if len(lines) > MAX_LINES:
            raise InvalidRequest(f"The response has more than {MAX_LINES} lines, which are too many for a recording")
        parsed = [_parse(line) for line in lines]
        texts: dict[_Path | None, list[str]] = {None: []}  # None: of lines that are no JSON
        for line, known in zip(lines, parsed, strict=True):
            for path, text in [(None, _decode(line)[0])] if known is None else _strings(known.value, ()):
                texts.setdefault(path, []).append(text)
        hidden = self._hide_together(texts)
        return self._without_names([_line(*pair, hidden) for pair in zip(lines, parsed, strict=True)])

    def _hide_together(self, texts: Mapping["_Path | None", list[str]]) -> dict["_Path | None", Iterator[str]]:
        """Return the texts, as long as before, without the secrets; those of one path are searched as one text.

        All are searched at once, so that the bounds of a search hold for all.
        """
        found = "\n".join("".join(of_path) for of_path in texts.values())
        together = self.text(found)
        if len(found) > MAX_ALL_HIDDEN and not together.strip("* \n"):
            raise InvalidRequest("The response holds what may be a secret too often to be recorded")
        hidden: dict[_Path | None, Iterator[str]] = {}
        position = 0
        for path, of_path in texts.items():
            ends = list(accumulate(map(len, of_path), initial=position))
            hidden[path] = iter([together[start:end] for start, end in pairwise(ends)])
            position = ends[-1] + 1
        return hidden

    def _without_names(self, lines: list[bytes]) -> list[bytes]:
        """Return the lines without a credential that stands in a name of JSON's, or is escaped twice."""
        together = b"".join(lines)
        redacted = self._credential.body(together)
        if redacted is together:
            return lines
        if len(redacted) <= MAX_MASK_BYTES < len(together):
            raise InvalidRequest("The response holds what may be the credential too often to be recorded")
        return [self._credential.body(line) for line in lines]


def _line(line: bytes, known: _Line | None, hidden: Mapping[_Path | None, Iterator[str]]) -> bytes:
    """Return a line with the next hidden texts in place of its own; itself if they are the same."""
    if known is None:
        text, codec = _decode(line)
        changed = next(hidden[None])
        return line if changed == text else changed.encode(codec)
    value = _replace(known.value, (), hidden)
    return line if value == known.value else known.with_value(value)


def _decode(line: bytes) -> tuple[str, str]:
    """Return a line's text and its codec: Latin-1, in which each byte is a character, for what is not UTF-8."""
    try:
        return line.decode(), "utf-8"
    except UnicodeDecodeError:
        return line.decode("latin-1"), "latin-1"


def _prompts(body: bytes) -> Iterator[tuple[str, str]]:
    """Yield the strings of a request that may hold the prompt, each under a name of its own."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = body.decode("utf-8", "replace")
    for number, (path, text) in enumerate(_strings(value, ())):
        compact = "".join(text.split())
        if len(compact) >= SHORTEST_PROMPT and not (path and path[-1] in _NOT_PROMPT):
            yield str(number), compact


def _parse(line: bytes) -> _Line | None:
    """Return the JSON of a line: behind a prefix such as `data: `, or one member of an object; None without any."""
    text = line.strip()
    start = min((place for place in (line.find(b"{"), line.find(b"[")) if place >= 0), default=-1)
    if text.startswith(b'"'):
        start = line.index(b'"')
        end = start + len(text.rstrip(b","))
        return _parsed(line[:start], b"{" + line[start:end] + b"}", line[end:], is_member=True)
    end = len(line.rstrip())
    return None if start < 0 else _parsed(line[:start], line[start:end], line[end:], is_member=False)


def _parsed(prefix: bytes, data: bytes, suffix: bytes, *, is_member: bool) -> _Line | None:
    try:
        value = orjson.loads(data)
        jsontext.check_depth(value)
    except (orjson.JSONDecodeError, RecursionError):
        return None
    return _Line(prefix, value, suffix, is_member)


def _strings(value: Any, path: _Path) -> Iterator[tuple[_Path, str]]:
    """Yield the strings of a JSON value in their order, each with the names that lead to it."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from _strings(member, (*path, name))
    elif isinstance(value, list):
        for element in value:
            yield from _strings(element, path)


def _replace(value: Any, path: _Path, hidden: Mapping[_Path | None, Iterator[str]]) -> Any:
    """Return the value with the next hidden string in place of each of its strings."""
    if isinstance(value, str):
        return next(hidden[path])
    if isinstance(value, dict):
        return {name: _replace(member, (*path, name), hidden) for name, member in value.items()}
    if isinstance(value, list):
        return [_replace(element, path, hidden) for element in value]
    return value


def _cut(reads: tuple[Read, ...], lengths: list[int], lines: list[bytes]) -> tuple[Read, ...]:
    """Cut the changed lines into the same reads; `lengths` are those of the lines as they were.

    A cut inside of a line stands where it stood, or at the line's end if that comes before.
    """
    cut: list[Read] = []
    pending = b""  # of the line that is cut, what no read has yet
    rest = 0  # bytes of that line, as it was, that no read has yet
    following = iter(zip(lengths, lines, strict=True))
    for read in reads:
        size, parts = len(read.data), []
        while size:
            if not rest:
                rest, pending = next(following)
            taken = min(size, rest)
            size, rest = size - taken, rest - taken
            part = pending if not rest else pending[:taken]
            pending = pending[len(part) :]
            parts.append(part)
        cut.append(Read(read.milliseconds, b"".join(parts)))
    return tuple(cut)


class Frame(NamedTuple):
    """A frame: its headers as they are, its payload, and how many bytes it had; `headers` is None for other bytes."""

    headers: bytes | None
    payload: bytes
    size: int


def split_frames(body: bytes) -> list[Frame]:
    """Return the frames of a body; what is no whole frame, at the end or where the stream is damaged, is the last."""
    frames: list[Frame] = []
    position = 0
    while position + _PRELUDE.size + _CRC.size <= len(body):
        total, headers, checksum = _PRELUDE.unpack_from(body, position)
        end, payload = position + total, position + _PRELUDE.size + headers
        if crc32(body[position : position + 8]) != checksum or end > len(body) or payload > end - _CRC.size:
            break
        frames.append(Frame(body[position + _PRELUDE.size : payload], body[payload : end - _CRC.size], total))
        position = end
    if position < len(body):
        frames.append(Frame(None, body[position:], len(body) - position))
    return frames


def join_frames(frames: Sequence[Frame], payloads: Sequence[bytes]) -> list[bytes]:
    """Return the bytes of each frame with another payload, its checksums right."""
    return [_frame(frame.headers, payload) for frame, payload in zip(frames, payloads, strict=True)]


def _frame(headers: bytes | None, payload: bytes) -> bytes:
    if headers is None:
        return payload
    prelude = struct.pack(">II", _PRELUDE.size + len(headers) + len(payload) + _CRC.size, len(headers))
    frame = prelude + _CRC.pack(crc32(prelude)) + headers + payload
    return frame + _CRC.pack(crc32(frame))
