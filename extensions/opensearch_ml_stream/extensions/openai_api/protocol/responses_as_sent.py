"""Stream events of a provider with OpenAI's Responses API, passed on to clients of that API.

The last event is held back until the stream has ended as it says.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import (
    Chunk,
    ChunkParts,
    Chunks,
    Ending,
    TextRun,
    begins_as_sent,
    to_chunk_list,
)
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import MAX_EVENT_BYTES
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

_ITEMS = ("response.output_item.added", "response.output_item.done")
_DELTAS = frozenset(
    {"response.output_text.delta", "response.function_call_arguments.delta", "response.custom_tool_call_input.delta",
     "response.reasoning_summary_text.delta"}
)  # fmt: skip
_TEXTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "message": lambda text: {"content": [{"type": "output_text", "text": text, "annotations": []}]},
    "reasoning": lambda text: {"summary": [{"type": "summary_text", "text": text}]},
    "function_call": lambda text: {"arguments": text},
    "custom_tool_call": lambda text: {"input": text},
}
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


class ResponsesStream(WireFormat):
    """The format of one stream: events are passed on if it begins as a response does, else written here."""

    content_type = CONTENT_TYPE

    def __init__(self, response: ResponseObject) -> None:
        self._response = response
        self._ready: tuple[ResponsesEvents, bytes] | None = None  # for a stream of text: its format, its first events
        self._format: WireFormat | None = None

    def prepare(self) -> None:
        """Encode the beginning of a stream of text that is written here, ahead of time."""
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
        if begins_as_sent(first) and _is_created(first):
            self._format = SentEvents()
        elif self._ready is not None and _begin_with_text(first):
            self._format, begun = self._ready
        else:
            self._format = ResponsesEvents(self._response)
        return begun + self._format.chunks(first)


class SentEvents(WireFormat):
    """The format of one stream of events that are passed on as they were sent.

    What is missing is repaired: numbers count up, an item that is done has begun, and the response at the end has all
    items. A text without an event of its own is added to the part that was begun last.
    """

    content_type = CONTENT_TYPE

    def __init__(self) -> None:
        self._begun: Mapping[str, Any] = {}  # the response, as it began
        self._last: Event | None = None
        self._number: int | None = None  # of the next event; the first event sets it
        self._part: dict[str, Any] = {}
        self._items: dict[int, Any] = {}  # those that were sent, by their index
        self._deltas: dict[int, list[str]] = {}  # texts of those that are not done
        self._room = MAX_EVENT_BYTES  # bytes left for these texts

    @property
    def heartbeat(self) -> bytes:
        """A comment."""
        return COMMENT

    def chunks(self, chunks: Chunks) -> bytes:
        """Encode all chunks of one upstream read."""
        return b"".join([self._chunk(chunk) for chunk in to_chunk_list(chunks)]) or COMMENT

    def ending(self, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode the last event, with our own member."""
        last, own = self._last, items.own_member(ending, extra)
        if last is None:
            status = items.status(ending)
            members = {"status": status, "incomplete_details": items.incomplete_details(ending)}
            return event(
                f"response.{status}", self._next(), b'"response":' + self._response(members | self._output({}) | own)
            )
        sent = event_fields.mapping(last.payload.get("response"))
        id = {} if sent.get("id") == self._begun["id"] else {"id": self._begun["id"]}
        repaired = {**id, **self._output(sent), **own}
        return self._pass(last, {"response": {**sent, **repaired}} if repaired else {})

    def error(self, error: MLStreamError) -> bytes:
        """Encode the failure that the provider sent, else the error."""
        if self._last is not None and _type_of(self._last) == "response.failed":
            return self._pass(self._last, {})
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
        if kind == "error":  # the failure at the end says it, too
            return b""
        payload = sent.payload
        if not self._begun:
            self._begun, number = payload["response"], payload.get("sequence_number")
            self._number = number if isinstance(number, int) and number >= 0 else 0
        elif not kind.startswith("response."):
            return b""
        if kind == "response.content_part.added":
            self._part = {name: payload.get(name) for name in ("item_id", "output_index", "content_index")}
        if kind in _ITEMS:
            return self._item(sent, kind)
        if kind in _DELTAS and isinstance(delta := payload.get("delta"), str) and self._room >= 0:
            self._room -= len(delta)
            self._deltas.setdefault(event_fields.count(payload.get("output_index")) or 0, []).append(delta)
        return self._pass(sent, {})

    def _item(self, sent: Event, kind: str) -> bytes:
        """Return an event of an item, which begins it if none did."""
        item, index = sent.payload.get("item"), sent.payload.get("output_index")
        if not isinstance(item, dict):
            return b""
        repaired: dict[str, Any] = {}
        if not isinstance(index, int) or index < 0:
            known = [place for place, one in self._items.items() if "id" in item and one.get("id") == item["id"]]
            repaired["output_index"] = index = known[0] if known else max(self._items, default=-1) + 1
        begun = b""
        if kind == "response.output_item.done" and index not in self._items:
            members = b'"output_index":%d,"item":%b' % (index, orjson.dumps(item | {"status": "in_progress"}))
            begun = event("response.output_item.added", self._take_number(), members)
        self._items[index] = item
        if kind == "response.output_item.done":
            self._room += sum(map(len, self._deltas.pop(index, ())))
        return begun + self._pass(sent, repaired)

    def _text(self, text: str) -> bytes:
        members = orjson.dumps({**self._part, "delta": text, "logprobs": []})[1:-1]
        return event("response.output_text.delta", self._take_number(), members)

    def _take_number(self) -> int:
        number = self._next()
        self._number = number + 1
        return number

    def _next(self) -> int:
        """Return the number of the next event."""
        return self._number or 0

    def _pass(self, sent: Event, repaired: Mapping[str, Any]) -> bytes:
        """Return an event with what is repaired in it; its number is the next one."""
        number = self._take_number()
        if type(sent_number := sent.payload.get("sequence_number")) is not int or sent_number != number:
            repaired = {**repaired, "sequence_number": number}
        return _as_sent(Event.of({**sent.payload, **repaired}) if repaired else sent)

    def _output(self, response: Mapping[str, Any]) -> dict[str, Any]:
        """Return the output of a response at its end, if it lacks items that were sent."""
        output = response.get("output")
        if isinstance(output, list) and len(output) >= len(self._items):
            return {}
        whole = [_with_text(item, "".join(self._deltas.get(index, ()))) for index, item in sorted(self._items.items())]
        return {"output": whole}

    def _response(self, members: dict[str, Any]) -> bytes:
        """Return the response as it began, with these members."""
        return orjson.dumps({**self._begun, **members})


def _with_text(item: dict[str, Any], text: str) -> dict[str, Any]:
    """Return an item that is not done, with its text so far."""
    member = _TEXTS.get(str(item.get("type")))
    return {**item, **member(text)} if text and member is not None else item


def _is_created(chunks: Chunks) -> bool:
    """Return whether the first event has the id of the response, which clients need."""
    first = chunks[0] if isinstance(chunks, ChunkParts) else chunks
    sent = first[0].event if isinstance(first, list) else None
    if sent is None or sent.payload.get("type") != "response.created":
        return False
    id = event_fields.mapping(sent.payload.get("response")).get("id")
    return isinstance(id, str) and id != ""


def _begin_with_text(chunks: Chunks) -> bool:
    if isinstance(chunks, TextRun):
        return True
    return isinstance(chunks, list) and chunks[0].text != "" and chunks[0] == Chunk(chunks[0].text)


def _type_of(sent: Event) -> str:
    return str(sent.payload["type"])


def _as_sent(sent: Event) -> bytes:
    """Return an event as it was sent; its payload may have several lines."""
    name = _type_of(sent).encode("ascii", "replace").translate(None, b"\r\n")
    return b"event: %b\ndata: %b\n\n" % (name, sent.data.replace(b"\n", b"\ndata: "))
