"""The events of a streamed response, in OpenAI's order: items of the output one by one, each with its parts.

https://platform.openai.com/docs/api-reference/responses-streaming. The last events repeat the whole text, so it is kept
here, encoded for a JSON string.

A provider may interleave the fragments of parallel calls, so calls are completed when the stream ends. The input of a
free-form tool is sent then, since it is part of the arguments of a function. Reasoning is written as the summary of a
reasoning item, which every client reads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, TextRun, ToolCall, to_chunk_list
from opensearch_ml_stream.connectors.decoding.contract import MAX_EVENT_BYTES
from opensearch_ml_stream.connectors.errors import MLStreamError, UpstreamError
from opensearch_ml_stream.connectors.wire_format import WireFormat
from opensearch_ml_stream.extensions.openai_api.protocol import responses_items as items
from opensearch_ml_stream.extensions.openai_api.protocol.envelope import with_refusal
from opensearch_ml_stream.extensions.openai_api.protocol.responses_items import ResponseObject
from opensearch_ml_stream.extensions.openai_api.protocol.responses_tools import ClientTool

CONTENT_TYPE = "text/event-stream; charset=utf-8"
COMMENT = b": ping\n\n"

_DELTA = b'event: %b\ndata: {"type":"%b","sequence_number":%%d,%b,"delta":"%%b"%b}\n\n'
_ITEM_BYTES = 512  # counted for an item beside its text, so that endless empty items are refused, too


def event(kind: str, number: int, members: bytes) -> bytes:
    """Return an event with its members beside type and number."""
    name = kind.encode()
    return b'event: %b\ndata: {"type":"%b","sequence_number":%d,%b}\n\n' % (name, name, number, members)


def error_events(number: int, error: MLStreamError, failed: bytes) -> bytes:
    """Return the events of a failure: one of its own and the end of the response, since clients read either."""
    members = orjson.dumps({**items.response_error(error), "param": error.provider.param})[1:-1]
    return event("error", number, members) + event("response.failed", number + 1, b'"response":' + failed)


class _Kind(NamedTuple):
    """A kind of text: its events, their members, and the part of an item that it is."""

    event: str
    member: bytes
    beside: bytes
    part_event: str
    number: bytes
    part: Callable[[bytes], bytes]


_ANSWER = _Kind("output_text", b"text", b',"logprobs":[]', "content_part", b"content_index", items.output_text)
_REFUSAL = _Kind("refusal", b"refusal", b"", "content_part", b"content_index", items.refusal)
_REASONING = _Kind(
    "reasoning_summary_text", b"text", b"", "reasoning_summary_part", b"summary_index", items.summary_text
)


@dataclass(slots=True)
class _Text:
    """A message, or reasoning, whose text is still coming."""

    kind: _Kind
    index: int
    id: bytes
    part: bytes  # members that locate its text
    delta: bytes  # the event of a delta, with its number and text to be filled in
    text: bytearray = field(default_factory=bytearray)
    signature: str = ""


@dataclass(slots=True)
class _Call:
    """A call whose arguments are still coming."""

    index: int
    id: bytes
    place: bytes  # members that identify its item
    delta: bytes
    call_id: str
    tool: ClientTool
    arguments: bytearray = field(default_factory=bytearray)


class ResponsesEvents(WireFormat):
    """The format of one stream.

    An answer of more than `max_bytes` fails: its last events would be larger than clients accept.
    """

    content_type = CONTENT_TYPE

    def __init__(self, response: ResponseObject, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._response = response
        self._room = max_bytes
        self._number = 0  # of the next event
        self._items: list[bytes] = []  # by their index, empty until they are done
        self._open: _Text | None = None
        self._calls: dict[int, _Call] = {}
        self._is_over = self._has_refused = False

    def begin_text(self) -> bytes:
        """Encode the events before a first text, for a stream that begins with one."""
        return self._in_text(_ANSWER)[0]

    @property
    def heartbeat(self) -> bytes:
        """A comment."""
        return COMMENT

    def chunks(self, chunks: Chunks) -> bytes:
        """Encode all chunks of one upstream read."""
        if self._is_over:
            return COMMENT
        if isinstance(chunks, TextRun):
            events = self._run(chunks)
        else:
            events = b"".join([self._chunk(chunk) for chunk in to_chunk_list(chunks)])
        return (events or COMMENT) if self._room >= 0 else events + self.error(too_long())

    def ending(self, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode the end of everything that is open, and of the response."""
        if self._is_over:
            return b""
        self._is_over = True
        if self._has_refused:
            ending = with_refusal(ending)
        status = items.status(ending)
        is_whole = status == "completed"
        done = self._begin() + self._end_text(is_whole=is_whole) + self._end_calls(is_whole=is_whole)
        return done + self._of_response(f"response.{status}", self._response.ended(self._items, ending, extra))

    def error(self, error: MLStreamError) -> bytes:
        """Encode the error; items that were not done are not part of the response."""
        if self._is_over:
            return b""
        self._is_over = True
        begun = self._begin()
        failed = self._response.failed([item for item in self._items if item], error)
        return begun + error_events(self._number, error, failed)

    def _run(self, run: TextRun) -> bytes:
        opening, message = b"", self._open
        if message is None or message.kind is not _ANSWER:
            opening, message = self._in_text(_ANSWER)
        number, delta = self._number, message.delta
        self._room -= len(run)
        if run.find(TextRun.SEPARATOR) < 0:  # one text, as in nearly all reads
            message.text += run
            self._number = number + 1
            return opening + delta % (number, run)
        texts = run.split(TextRun.SEPARATOR)
        message.text += b"".join(texts)
        self._number = number + len(texts)
        return opening + (delta * len(texts)) % tuple(chain.from_iterable(enumerate(texts, number)))

    def _chunk(self, chunk: Chunk) -> bytes:
        parts: list[bytes] = []
        if chunk.reasoning or chunk.signature:
            parts += self._reasoning(chunk.reasoning, chunk.signature)
        for kind, text in ((_ANSWER, chunk.text.removesuffix(chunk.refusal)), (_REFUSAL, chunk.refusal)):
            if text:
                opening, message = self._in_text(kind)
                parts += (opening, self._delta(message.delta, message.text, text))
        self._has_refused = self._has_refused or bool(chunk.refusal)
        for call in chunk.tool_calls:
            parts += self._fragment(call)
        return b"".join(parts)

    def _reasoning(self, text: str, signature: str) -> Sequence[bytes]:
        """Encode reasoning. A text after a signature is not covered by it, and so another item."""
        is_signed = self._open is not None and bool(self._open.signature)
        ended = self._end_text() if text and is_signed else b""
        opening, reasoning = self._in_text(_REASONING)
        part = self._part_event("added", reasoning) if text and not reasoning.text else b""
        delta = self._delta(reasoning.delta, reasoning.text, text) if text else b""
        reasoning.signature += signature
        self._room -= len(signature)
        return ended, opening, part, delta

    def _fragment(self, fragment: ToolCall) -> Sequence[bytes]:
        call = self._calls.get(fragment.index)
        if call is not None:
            return (self._arguments(call, fragment.arguments),)
        before = self._begin() + self._end_text()
        call = self._calls[fragment.index] = self._new_call(fragment)
        item = items.call(call.id, "in_progress", call.call_id, call.tool, b"")
        added = self._item_event("added", call.index, item)
        return before, added, self._arguments(call, fragment.arguments)

    def _arguments(self, call: _Call, text: str) -> bytes:
        if not text:
            return b""
        if not call.tool.is_free_form:
            return self._delta(call.delta, call.arguments, text)
        encoded = orjson.dumps(text)[1:-1]
        call.arguments += encoded
        self._room -= len(encoded)
        return b""

    def _delta(self, delta: bytes, so_far: bytearray, text: str) -> bytes:
        encoded = orjson.dumps(text)[1:-1]
        so_far += encoded
        self._room -= len(encoded)
        self._number += 1
        return delta % (self._number - 1, encoded)

    def _in_text(self, kind: _Kind) -> tuple[bytes, _Text]:
        """Return the message, or reasoning, that a text belongs to, and the events that begin it if it is new."""
        if self._open is not None and self._open.kind is kind:
            return b"", self._open
        before = self._begin() + self._end_text()
        index, is_message = self._new_item(), kind is not _REASONING
        self._open = open = _new_text(self._id("msg" if is_message else "rs", index), index, kind)
        item = items.message(open.id, "in_progress", b"") if is_message else items.reasoning(open.id, b"", "")
        added = self._item_event("added", index, item)
        return before + added + (self._part_event("added", open) if is_message else b""), open

    def _new_call(self, fragment: ToolCall) -> _Call:
        index = self._new_item()
        id = self._id("fc", index)
        place, tool = b'"item_id":"%b","output_index":%d' % (id, index), self._response.tool(fragment.name or "")
        kind = b"response.%b.delta" % _called_with(tool)
        call_id = fragment.id or self._id("call", index).decode()
        return _Call(index, id, place, _DELTA % (kind, kind, place, b""), call_id, tool)

    def _new_item(self) -> int:
        self._items.append(b"")
        self._room -= _ITEM_BYTES
        return len(self._items) - 1

    def _id(self, prefix: str, index: int) -> bytes:
        return f"{prefix}_{self._response.token}_{index}".encode()

    def _begin(self) -> bytes:
        """Encode the first two events, unless they have been sent."""
        if self._number:
            return b""
        begun = self._response.begun()
        return self._of_response("response.created", begun) + self._of_response("response.in_progress", begun)

    def _end_text(self, *, is_whole: bool = True) -> bytes:
        """Encode the end of the message, or reasoning, that is open."""
        open, self._open = self._open, None
        if open is None:
            return b""
        text, kind, done = bytes(open.text), open.kind, b""
        if text or kind is not _REASONING:
            members = b'%b,"%b":"%b"%b' % (open.part, kind.member, text, kind.beside)
            done = self._event(f"response.{kind.event}.done", members) + self._part_event("done", open, text)
        if kind is _REASONING:
            item = items.reasoning(open.id, text, open.signature)
        else:
            item = items.message(open.id, "completed" if is_whole else "incomplete", kind.part(text))
        return done + self._done(open.index, item)

    def _end_calls(self, *, is_whole: bool) -> bytes:
        """Encode the end of all calls. The last one of an incomplete answer may be cut off."""
        events: list[bytes] = []
        calls = list(self._calls.values())
        for call in calls:
            is_done = is_whole or call is not calls[-1]
            if call.tool.is_free_form:
                arguments = items.free_form_text(bytes(call.arguments))
                events.append(call.delta % (self._number, arguments))
                self._number += 1
                members = b'%b,"input":"%b"' % (call.place, arguments)
            else:
                if is_done and not call.arguments:  # clients parse the arguments
                    events.append(self._delta(call.delta, call.arguments, "{}"))
                arguments = bytes(call.arguments)
                members = b'%b,"name":%b,"arguments":"%b"' % (call.place, orjson.dumps(call.tool.name), arguments)
            events.append(self._event(f"response.{_called_with(call.tool).decode()}.done", members))
            item = items.call(call.id, "completed" if is_done else "incomplete", call.call_id, call.tool, arguments)
            events.append(self._done(call.index, item))
        return b"".join(events)

    def _done(self, index: int, item: bytes) -> bytes:
        self._items[index] = item
        return self._item_event("done", index, item)

    def _item_event(self, what: str, index: int, item: bytes) -> bytes:
        return self._event(f"response.output_item.{what}", b'"output_index":%d,"item":%b' % (index, item))

    def _part_event(self, what: str, open: _Text, text: bytes = b"") -> bytes:
        kind = open.kind
        return self._event(f"response.{kind.part_event}.{what}", b'%b,"part":%b' % (open.part, kind.part(text)))

    def _of_response(self, kind: str, response: bytes) -> bytes:
        return self._event(kind, b'"response":' + response)

    def _event(self, kind: str, members: bytes) -> bytes:
        self._number += 1
        return event(kind, self._number - 1, members)


def _called_with(tool: ClientTool) -> bytes:
    return b"custom_tool_call_input" if tool.is_free_form else b"function_call_arguments"


def _new_text(id: bytes, index: int, kind: _Kind) -> _Text:
    name = f"response.{kind.event}.delta".encode()
    part = b'"item_id":"%b","output_index":%d,"%b":0' % (id, index, kind.number)
    return _Text(kind, index, id, part, _DELTA % (name, name, part, kind.beside))


def too_long() -> UpstreamError:
    """Return the error for an answer that no event could repeat."""
    return UpstreamError(
        f"The answer is longer than {MAX_EVENT_BYTES} bytes, and the last events of a response repeat it; use"
        " /v1/chat/completions",
        type="response_too_long_exception",
    )
