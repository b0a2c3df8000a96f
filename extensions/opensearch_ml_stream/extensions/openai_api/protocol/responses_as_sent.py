"""The events of a response as its provider sent them, whose dialect the client speaks.

The last one waits until the stream has ended as it says.
"""

from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, TextRun, begins_as_sent, to_chunk_list
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.wire_format import WireFormat
from opensearch_ml_stream.extensions.openai_api.protocol import responses_items as items
from opensearch_ml_stream.extensions.openai_api.protocol.responses_events import (
    COMMENT,
    CONTENT_TYPE,
    ResponsesEvents,
    error_events,
    event,
)
from opensearch_ml_stream.extensions.openai_api.protocol.responses_items import ResponseObject

_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


class ResponsesStream(WireFormat):
    """The format of one stream: its events as they were sent if it begins with one that was, else written here."""

    content_type = CONTENT_TYPE

    def __init__(self, response: ResponseObject) -> None:
        self._response = response
        self._ready: tuple[ResponsesEvents, bytes] | None = None  # for a stream of text: its format, its first events
        self._format: WireFormat | None = None

    def prepare(self) -> None:
        """Make ready what a stream of text that is written here begins with."""
        events = ResponsesEvents(self._response)
        self._ready = events, events.begin_text()

    @property
    def heartbeat(self) -> bytes:
        """A comment."""
        return COMMENT

    def chunks(self, chunks: Chunks) -> bytes:
        """Encode all chunks of one upstream read."""
        if self._format is None:
            return self._begin(chunks)
        return self._format.chunks(chunks)

    def ending(self, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode the end."""
        return (self._format or ResponsesEvents(self._response)).ending(ending, extra)

    def error(self, error: MLStreamError) -> bytes:
        """Encode the error."""
        return (self._format or ResponsesEvents(self._response)).error(error)

    def _begin(self, first: Chunks) -> bytes:
        begun = b""
        if begins_as_sent(first):
            self._format = SentEvents()
        elif self._ready is not None and _begin_with_text(first):
            self._format, begun = self._ready
        else:
            self._format = ResponsesEvents(self._response)
        return begun + self._format.chunks(first)


class SentEvents(WireFormat):
    """The format of one stream of events that pass as they were sent.

    Text that came without its event goes to the part that was begun last.
    """

    content_type = CONTENT_TYPE

    def __init__(self) -> None:
        self._first: Event | None = None
        self._last: Event | None = None
        self._before: Event | None = None  # the event before, unless the next number is counted here
        self._number = 0
        self._part: dict[str, Any] = {}

    @property
    def heartbeat(self) -> bytes:
        """A comment."""
        return COMMENT

    def chunks(self, chunks: Chunks) -> bytes:
        """Encode all chunks of one upstream read."""
        return b"".join([self._chunk(chunk) for chunk in to_chunk_list(chunks)]) or COMMENT

    def ending(self, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode the last event, with what is to be said beside it."""
        last, own = self._last, items.own_member(ending, extra)
        if last is None:
            status = items.status(ending)
            said = {"status": status, "incomplete_details": items.incomplete_details(ending)}
            return event(f"response.{status}", self._next(), b'"response":' + self._response(said | own))
        if own:
            last = Event.of({**last.payload, "response": {**last.payload["response"], **own}})
        return _as_sent(last)

    def error(self, error: MLStreamError) -> bytes:
        """Encode the failure that the provider sent, else the error."""
        if self._last is not None and _type_of(self._last) == "response.failed":
            return _as_sent(self._last)
        failed = self._response({"status": "failed", "error": items.response_error(error)})
        return error_events(self._next(), error, failed)

    def _chunk(self, chunk: Chunk) -> bytes:
        sent = chunk.event
        if sent is None:
            return self._text(chunk.text) if chunk.text else b""
        kind = _type_of(sent)
        if kind in _ENDS:
            self._last = sent
            return b""
        if kind == "error":  # which is told with the end that it is
            return b""
        if self._first is None:
            self._first = sent
        if kind == "response.content_part.added":
            self._part = {name: sent.payload.get(name) for name in ("item_id", "output_index", "content_index")}
        self._before = sent
        return _as_sent(sent)

    def _text(self, text: str) -> bytes:
        members = orjson.dumps({**self._part, "delta": text, "logprobs": []})[1:-1]
        number = self._next()
        self._before, self._number = None, number + 1
        return event("response.output_text.delta", number, members)

    def _next(self) -> int:
        """Return the number of the next event."""
        if self._before is None:
            return self._number
        number = self._before.payload.get("sequence_number")
        return number + 1 if isinstance(number, int) else 0

    def _response(self, members: dict[str, Any]) -> bytes:
        """Return the response as it began, with these members."""
        begun = self._first.payload["response"] if self._first is not None else {}
        return orjson.dumps({**begun, **members})


def _begin_with_text(chunks: Chunks) -> bool:
    if isinstance(chunks, TextRun):
        return True
    return isinstance(chunks, list) and chunks[0].text != "" and chunks[0] == Chunk(chunks[0].text)


def _type_of(sent: Event) -> str:
    return str(sent.payload["type"])


def _as_sent(sent: Event) -> bytes:
    """Return an event, whose payload may have several lines."""
    name = _type_of(sent).encode("ascii", "replace").translate(None, b"\r\n")
    return b"event: %b\ndata: %b\n\n" % (name, sent.data.replace(b"\n", b"\ndata: "))
