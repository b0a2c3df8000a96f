"""Recordings: a provider's response, read by read with its times, as a file of JSON Lines.

    {"format": "opensearch-ml-stream recording", "version": 1, "status": 200, "headers": [["content-type", "..."]]}
    {"ms": 12.3, "text": "data: ..."}
    {"ms": 14.0, "base64": "..."}                       a read that is not UTF-8 text
    {"ms": 15.1, "end": "complete"}                     or "broken": the connection broke, or was silent for too long

Times are milliseconds after the request was sent. A recording holds no secrets: `recording_privacy` removes
them first.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from opensearch_ml_stream.connectors.errors import InvalidRequest

FORMAT = "opensearch-ml-stream recording"
VERSION = 1
MAX_BYTES = 4 * 1024 * 1024  # of a recorded body
MAX_RECORDED_READS = 100_000
MAX_FILE_BYTES = 4 * MAX_BYTES  # JSON's escapes included
MAX_MILLISECONDS = 24 * 3600 * 1000.0

# Headers about the body; none tells who called.
HARMLESS_HEADERS = frozenset({"content-type", "cache-control", "retry-after", "x-accel-buffering"})

End = Literal["complete", "broken"]


@dataclass(frozen=True, slots=True)
class Read:
    """Bytes of the body as one read of the connection gave them, `milliseconds` after the request was sent."""

    milliseconds: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Recording:
    """A provider's response: status, harmless headers (names in lower case), the reads of its body, and its end."""

    status: int
    headers: tuple[tuple[str, str], ...]
    reads: tuple[Read, ...]
    end: End
    end_milliseconds: float

    @property
    def body(self) -> bytes:
        """The whole body."""
        return b"".join(read.data for read in self.reads)

    def to_lines(self) -> list[dict[str, Any]]:
        """Return the lines of the file as JSON objects: as the route `_diagnose` sends them."""
        head = {"format": FORMAT, "version": VERSION, "status": self.status, "headers": [*map(list, self.headers)]}
        last = {"ms": round(self.end_milliseconds, 1), "end": self.end}
        return [head, *map(_read_to_line, self.reads), last]

    def to_file(self) -> bytes:
        """Return the file."""
        return b"".join(orjson.dumps(line) + b"\n" for line in self.to_lines())


def harmless_headers(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the headers of a response that a recording may hold."""
    return tuple((name, value) for name, value in headers.items() if name.lower() in HARMLESS_HEADERS)


def read_recording_file(data: bytes) -> Recording:
    """Read a file. InvalidRequest, with the line's number, for what is no recording or over the bounds."""
    if len(data) > MAX_FILE_BYTES:
        raise InvalidRequest(f"A recording has at most {MAX_FILE_BYTES} bytes, this file has {len(data)}")
    lines = [line for line in data.split(b"\n") if line.strip()]
    documents: list[Any] = []
    for number, line in enumerate(lines, 1):
        try:
            documents.append(orjson.loads(line))
        except orjson.JSONDecodeError:
            raise InvalidRequest(f"Line {number} of the recording is not JSON") from None
    return read_recording(documents)


def read_recording(lines: Sequence[Any]) -> Recording:
    """Read the lines of a recording. InvalidRequest, with the line's number, for what is none or over the bounds."""
    status, headers = _read_head(lines[0] if lines else None)
    if not 2 <= len(lines) <= MAX_RECORDED_READS + 2:
        raise InvalidRequest(f"A recording has 0 to {MAX_RECORDED_READS} reads between its first and its last line")
    reads: list[Read] = []
    size, milliseconds = 0, 0.0
    for number, line in enumerate(lines[1:], 2):
        milliseconds = _read_time(line, number, milliseconds)
        if number == len(lines):
            break
        data = _read_data(line, number)
        size += len(data)
        if size > MAX_BYTES:
            raise InvalidRequest(f"Line {number} of the recording: the body has more than {MAX_BYTES} bytes")
        reads.append(Read(milliseconds, data))
    end = lines[-1].get("end")
    if end != "complete" and end != "broken":
        raise InvalidRequest(f"Line {len(lines)} of the recording, the last, must have [end]: complete or broken")
    return Recording(status, headers, tuple(reads), end, milliseconds)


def _read_to_line(read: Read) -> dict[str, Any]:
    milliseconds = round(read.milliseconds, 1)
    try:
        return {"ms": milliseconds, "text": read.data.decode()}
    except UnicodeDecodeError:
        return {"ms": milliseconds, "base64": base64.b64encode(read.data).decode()}


def _read_head(line: Any) -> tuple[int, tuple[tuple[str, str], ...]]:
    if not isinstance(line, dict) or line.get("format") != FORMAT:
        raise InvalidRequest(f'This is no recording: its first line lacks "format": "{FORMAT}"')
    if line.get("version") != VERSION:
        raise InvalidRequest(f"The recording has version {line.get('version')}; this program reads version {VERSION}")
    status, headers = line.get("status"), line.get("headers")
    if not isinstance(status, int) or not 200 <= status <= 599:
        raise InvalidRequest("Line 1 of the recording: [status] must be an integer from 200 to 599")
    if not isinstance(headers, list) or not all(_is_harmless(header) for header in headers):
        names = ", ".join(sorted(HARMLESS_HEADERS))
        raise InvalidRequest(f"Line 1 of the recording: [headers] must be a list of [name, value], of {names}")
    return status, tuple((name.lower(), value) for name, value in headers)


def _is_harmless(header: Any) -> bool:
    match header:
        case [str(name), str(value)]:
            return name.lower() in HARMLESS_HEADERS and value.isascii() and value.isprintable()
        case _:
            return False


def _read_time(line: Any, number: int, earliest: float) -> float:
    match line:
        case {"ms": bool()}:
            pass
        case {"ms": int(milliseconds) | float(milliseconds)} if earliest <= milliseconds <= MAX_MILLISECONDS:
            return float(milliseconds)
        case _:
            pass
    raise InvalidRequest(f"Line {number} of the recording: [ms] must be a number, not less than in the line before")


def _read_data(line: Mapping[str, Any], number: int) -> bytes:
    try:
        match line:
            case {"text": str(text)}:
                return text.encode()
            case {"base64": str(text)}:
                return base64.b64decode(text, validate=True)
            case _:
                pass
    except (UnicodeEncodeError, binascii.Error, ValueError):
        pass
    raise InvalidRequest(f"Line {number} of the recording: it needs [text], or [base64] that can be decoded")
