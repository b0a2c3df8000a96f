"""Parse the body of a `_predict/stream` response into chunks, in either of its two formats.

One JSON object a line (`application/x-ndjson`), or the same behind `data:` (`text/event-stream`). Blank lines and
comments are heartbeats. JSON itself never holds a raw line break, so the body may be cut anywhere.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson

from opensearch_ml_stream.client.errors import not_the_sidecar, server_error, truncated


@dataclass(frozen=True, slots=True)
class Chunk:
    """One event of a streamed response: what it adds, and in the last one (`is_last`) how the response ended.

    Attributes:
        text: The next piece of the text.
        reasoning: The next piece of the model's reasoning, which is not part of the text.
        tool_calls: Fragments of tool calls with `index`, `arguments` and, once each, `id` and `name`.
        is_last: Whether this is the last chunk.
        finish_reason: In the last chunk one of stop, length, tool_calls, content_filter, error.
        usage: In the last chunk the counts `input_tokens`, `output_tokens`, `total_tokens`, if the provider gives any.
        model: In the last chunk the model's name, if the provider gives it.
        raw: The whole JSON object as it came.
    """

    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    is_last: bool = False
    finish_reason: str | None = None
    usage: Mapping[str, int] | None = None
    model: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)


class ChunkReader:
    """Parser of a response body: `feed` it bytes as they come, then `close` it.

    Both raise SidecarError if the stream holds an error object, something unreadable, or ends too early.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of a line that has not ended
        self.ended = False  # the last chunk has come; whatever follows is not part of the response

    def feed(self, data: bytes) -> Iterator[Chunk]:
        """Yield the chunks that `data` completes, and those before an error before it is raised.

        The iterator must be exhausted before the next call.
        """
        self._parts.append(data)
        if b"\n" in data:
            *lines, rest = b"".join(self._parts).split(b"\n")
            self._parts = [rest]
            try:
                for line in lines:
                    yield from self._parse_line(line)
            except orjson.JSONDecodeError:
                raise not_the_sidecar() from None

    def close(self) -> Iterator[Chunk]:
        """Yield the chunk of a last line without line break; StreamTruncated if the last chunk has not come by then."""
        with suppress(orjson.JSONDecodeError):  # of an object that was cut
            yield from self._parse_line(b"".join(self._parts))
        if not self.ended:
            raise truncated("the server closed the connection before the last chunk")

    def _parse_line(self, line: bytes) -> Iterator[Chunk]:
        line = line.strip().removeprefix(b"data:").lstrip()
        # Of the other SSE fields (event, id, retry) none is ever an object.
        if line.startswith(b"{") and not self.ended:
            chunk = _parse_object(line)
            self.ended = chunk.is_last
            yield chunk


def _parse_object(line: bytes) -> Chunk:
    event = orjson.loads(line)
    try:
        if "error" in event:
            # Without a status it is of ML Commons itself, whose streams fail if the provider does.
            raise server_error(event, 424)
        data = event["inference_results"][0]["output"][0]["dataAsMap"]
        return Chunk(
            text=data.get("response") or data.get("content") or "",
            reasoning=data.get("reasoning") or "",
            tool_calls=tuple(data.get("tool_calls") or ()),
            is_last=data.get("is_last") is True,
            finish_reason=data.get("finish_reason"),
            usage=data.get("usage"),
            model=data.get("model"),
            raw=event,
        )
    except (LookupError, TypeError, AttributeError):
        raise not_the_sidecar() from None
