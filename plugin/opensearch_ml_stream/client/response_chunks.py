"""The bytes of a `_predict/stream` answer become chunks, in either of its two formats.

One JSON object a line (`application/x-ndjson`), or the same behind `data:` (`text/event-stream`). Blank lines and
comments are heartbeats. JSON itself never holds a raw line break, so lines may be cut anywhere.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from opensearchpy.exceptions import OpenSearchException


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one event adds to the answer. The last one has `is_last`, and how and at what cost the answer ended.

    `tool_calls` are fragments with `index`, `arguments` and, once each, `id` and `name`; `usage` counts tokens;
    `raw` is the whole object as it came.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    is_last: bool = False
    finish_reason: str | None = None
    usage: Mapping[str, int] | None = None
    model: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)


class StreamError(OpenSearchException):
    """The answer broke off after it had begun. `status` is the status it would have had before that.

    `type` is OpenSearch's snake-case name, `provider_status` the HTTP status of the provider where it is known.
    """

    def __init__(self, status: int, type: str, reason: str, provider_status: int | None = None) -> None:
        super().__init__(status, type, reason)
        self.status = status
        self.type = type
        self.reason = reason
        self.provider_status = provider_status

    def __str__(self) -> str:
        return f"{self.reason} ({self.type}, status {self.status})"


class ChunkReader:
    """Feed it bytes as they come, then `close` it; StreamError if the stream says so or is cut short."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of a line that has not ended
        self.ended = False  # the last chunk has come; whatever follows is nothing of the answer

    def feed(self, data: bytes) -> Iterator[Chunk]:
        """To be read to its end before the next call. What came before an error is yielded before it is raised."""
        self._parts.append(data)
        if b"\n" in data:
            *lines, rest = b"".join(self._parts).split(b"\n")
            self._parts = [rest]
            for line in lines:
                yield from self._read(line)

    def close(self) -> Iterator[Chunk]:
        """What was left of a last line without its end."""
        yield from self._read(b"".join(self._parts))
        if not self.ended:
            raise cut_short("the server closed the connection before the last chunk")

    def _read(self, line: bytes) -> Iterator[Chunk]:
        line = line.strip().removeprefix(b"data:").lstrip()
        # Of the other SSE fields (event, id, retry) none is ever an object.
        if line.startswith(b"{") and not self.ended:
            chunk = _read_object(line)
            self.ended = chunk.is_last
            yield chunk


def cut_short(why: str) -> StreamError:
    return StreamError(424, "stream_truncated_exception", f"The answer is incomplete: {why}")


def _read_object(line: bytes) -> Chunk:
    try:
        answer = orjson.loads(line)
        if "error" in answer:
            raise _stream_error(answer)
        data = answer["inference_results"][0]["output"][0]["dataAsMap"]
        return Chunk(
            text=data.get("response") or data.get("content") or "",
            reasoning=data.get("reasoning") or "",
            tool_calls=tuple(data.get("tool_calls") or ()),
            is_last=data.get("is_last") is True,
            finish_reason=data.get("finish_reason"),
            usage=data.get("usage"),
            model=data.get("model"),
            raw=answer,
        )
    except (orjson.JSONDecodeError, LookupError, TypeError, AttributeError):
        raise StreamError(
            424, "invalid_stream_exception", "The server sent something that is no inference result; is it the sidecar?"
        ) from None


def _stream_error(answer: Mapping[str, Any]) -> StreamError:
    """`{"error": {"type", "reason"}, "status"}`, or `{"error": "reason", "type", "status"}` as ML Commons sends it."""
    error = answer["error"]
    named = error if isinstance(error, dict) else {**answer, "reason": error}
    return StreamError(
        status=int(answer.get("status", 500)),
        type=str(named.get("type", "status_exception")),
        reason=str(named.get("reason", "")),
        provider_status=named.get("provider_status"),
    )
