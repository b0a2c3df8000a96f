"""Wire format of streams of `/v1/messages`: https://docs.claude.com/en/docs/build-with-claude/streaming.

    message_start, (content_block_start, content_block_delta ..., content_block_stop) ..., message_delta, message_stop

One block is open at a time, and blocks are numbered in order. A provider with Anthropic's dialect has its own events
passed on if they are well formed and in order, and text is added to the block that they have opened. Of any other
event, what was read of it is written, as for providers with other dialects.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import msgspec
import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, ChunkParts, Chunks, Ending, TextRun, ToolCall, to_chunk_list
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.syntax import provider_json
from opensearch_ml_stream.connectors.wire_format import ChunkFormat
from opensearch_ml_stream.extensions.anthropic_api.protocol.errors import error_body
from opensearch_ml_stream.extensions.anthropic_api.protocol.messages_response import (
    said_beside,
    stop_reason,
    tool_id,
    usage_fields,
)
from opensearch_ml_stream.extensions.anthropic_api.protocol.schemas import (
    SENT_EVENT,
    BlockStart,
    BlockStop,
    Count,
    MessageDelta,
    MessageStart,
    Name,
    is_of,
)

_PING = b'event: ping\ndata: {"type": "ping"}\n\n'
_BLOCK_START = (
    b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,"content_block":{"type":"%b",%b}}\n\n'
)
_TEXT_START, _TEXT_END = '{"input":"', '"}'
_NOTHING_TO_SAY = b":\n\n"  # a comment
_KNOWN_EVENTS = frozenset(
    {"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
     "message_stop", "error", "ping"}
)  # fmt: skip
_MADE = frozenset({"type", "role", "content", "stop_reason", "stop_sequence"})  # the same in every beginning


class MessageEvents(ChunkFormat):
    """The format of one stream. `model` is the client's name of the model, `message_id` the message's id.

    A closed block cannot be opened again. So while the arguments of a tool call are incomplete, anything else waits,
    with all that follows it, until the call or the stream ends.
    """

    content_type = "text/event-stream"
    _heartbeat: ClassVar[bytes] = _PING

    def __init__(self, model: str, message_id: str) -> None:
        super().__init__(b"", b"")
        self._model = model
        self._message_id = message_id
        self._has_begun = False
        self._beginning = b""  # `message_start`, once it is ready
        self._has_reason = False  # the first event had the stop reason
        self._ends = b""  # events with the stop reason, as they were sent
        self._index = -1  # of the block that was begun last
        self._open = ""  # its type while it is open
        self._source: int | None = None  # the provider's index of it, if its start was passed on
        self._call: int | None = None  # the index of the call that is open
        self._arguments: list[str] = []  # its arguments so far
        self._ended_calls: set[int] = set()
        self._texts: set[int] = set()  # calls whose arguments are a text
        self._waiting: list[Chunk | ToolCall] = []

    def prepare(self) -> None:
        """Encode `message_start` ahead of time."""
        self._beginning = self._message_start()

    def chunks(self, chunks: Chunks) -> bytes:
        """Encode all chunks of one upstream read."""
        if isinstance(chunks, TextRun) and self._call is None:
            return self._start_text() + chunks.wrap_each(self._opening, self._between, self._closing)
        return self._mixed(chunks) or _NOTHING_TO_SAY

    def last(self, chunks: Chunks, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode the chunks that came with the ending, and the ending."""
        return self._mixed(chunks) + self.ending(ending, extra)

    def ending(self, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode what waited, `message_delta` unless the provider's was passed on, and `message_stop`."""
        try:
            reason = stop_reason(ending)
        except MLStreamError as error:
            return self._flush() + self._close() + self.error(error)
        parts = [self._begin(), self._flush() if self._waiting else b"", self._close() if self._open else b""]
        if self._ends and ending.guardrail is None:
            parts.append(self._ends)
        elif not self._has_reason or ending.guardrail is not None:
            delta = {"stop_reason": reason, "stop_sequence": None}
            parts.append(_event("message_delta", {"delta": delta, "usage": usage_fields(ending.usage)}))
        if beside := said_beside(ending, extra):
            parts.append(b": opensearch_ml_stream %b\n\n" % orjson.dumps(beside))
        return b"".join([*parts, _event("message_stop", {})])

    def error(self, error: MLStreamError) -> bytes:
        """Encode what waited, and the error; no `message_stop` follows it."""
        return self._flush() + b"event: error\ndata: %b\n\n" % error_body(error)

    def _mixed(self, chunks: Chunks) -> bytes:
        """Encode chunks; the result may be empty."""
        if isinstance(chunks, ChunkParts):
            return b"".join(map(self._mixed, chunks))
        if isinstance(chunks, TextRun) and self._call is None:
            return self.chunks(chunks)
        return b"".join([self._chunk(chunk) for chunk in to_chunk_list(chunks)])

    def _chunk(self, chunk: Chunk) -> bytes:
        if self._open != "text" or chunk != (chunk[0], "", (), (), "", "", None) or not chunk[0]:
            return self._mixed_chunk(chunk)
        return self._text_prefix + orjson.dumps(chunk[0]) + self._text_suffix

    def _mixed_chunk(self, chunk: Chunk) -> bytes:
        if chunk.event is not None:
            return self._pass(chunk, chunk.event)
        contents: list[Chunk | ToolCall] = [chunk] if chunk.text or chunk.reasoning or chunk.signature else []
        return b"".join([self._in_turn(one) for one in [*contents, *chunk.tool_calls]])

    def _in_turn(self, one: Chunk | ToolCall) -> bytes:
        """Encode what belongs to the open call, or may close it; everything else waits."""
        if isinstance(one, ToolCall):
            if one.index in self._ended_calls:  # its arguments are complete
                return b""
            if one.is_text or one.index in self._texts:
                one = self._as_json(one)
            if one.index == self._call:
                return self._arguments_delta(one.arguments)
        if self._has_to_wait():
            self._waiting.append(one)
            return b""
        return self._encode(one)

    def _as_json(self, one: ToolCall) -> ToolCall:
        """Return a fragment of a text as one of a JSON object that holds the text; the end of the block closes it."""
        begin = "" if one.index in self._texts else _TEXT_START
        self._texts.add(one.index)
        return replace(one, arguments=begin + orjson.dumps(one.arguments)[1:-1].decode())

    def _has_to_wait(self) -> bool:
        return bool(self._waiting) or (self._call is not None and not _is_object("".join(self._arguments)))

    def _go_on(self) -> bytes:
        """Encode what waited for the end of the block, as far as another call does not hold it back."""
        waiting, self._waiting = self._waiting, []
        return b"".join(map(self._in_turn, waiting))

    def _flush(self) -> bytes:
        """Encode what waited, in order, with the fragments of a call joined."""
        waiting, self._waiting = self._waiting, []
        arguments: dict[int, list[str]] = {}
        for one in waiting:
            if isinstance(one, ToolCall):
                arguments.setdefault(one.index, []).append(one.arguments)
        parts: list[bytes] = []
        for one in waiting:
            if not isinstance(one, ToolCall):
                parts.append(self._encode(one))
            elif (fragments := arguments.pop(one.index, None)) is not None:
                parts.append(self._encode(replace(one, arguments="".join(fragments))))
        return b"".join(parts)

    def _encode(self, one: Chunk | ToolCall) -> bytes:
        if isinstance(one, ToolCall):
            return self._start_call(one) + self._arguments_delta(one.arguments)
        return self._reasoning(one.reasoning) + self._signature(one.signature) + self._text(one.text)

    def _text(self, text: str) -> bytes:
        if not text:
            return b""
        return self._start_text() + self._text_prefix + orjson.dumps(text) + self._text_suffix

    def _start_text(self) -> bytes:
        return b"" if self._open == "text" else self._start("text", b'"text":""')

    def _start_thinking(self) -> bytes:
        return b"" if self._open == "thinking" else self._start("thinking", b'"thinking":"","signature":""')

    def _reasoning(self, text: str) -> bytes:
        if not text:
            return b""
        return self._start_thinking() + self._delta({"type": "thinking_delta", "thinking": text})

    def _signature(self, signature: str) -> bytes:
        """Encode the signature of the reasoning before it, which ends the block; the block may have no text."""
        if not signature:
            return b""
        delta = {"type": "signature_delta", "signature": signature}
        return self._start_thinking() + self._delta(delta) + self._close()

    def _start_call(self, call: ToolCall) -> bytes:
        id = call.id or tool_id(self._message_id, call.index)
        start = self._start("tool_use", orjson.dumps({"id": id, "name": call.name or "", "input": {}})[1:-1])
        self._call, self._arguments = call.index, []
        return start

    def _arguments_delta(self, text: str) -> bytes:
        if not text:
            return b""
        self._arguments.append(text)
        return self._delta({"type": "input_json_delta", "partial_json": text})

    def _begin(self) -> bytes:
        if self._has_begun:
            return b""
        self._has_begun = True
        return self._beginning or self._message_start()

    def _message_start(self) -> bytes:
        return _event("message_start", {"message": self._empty_message()})

    def _empty_message(self) -> dict[str, Any]:
        return {
            "id": self._message_id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_fields(None),
        }

    def _start(self, kind: str, members: bytes) -> bytes:
        """Open a block, and close the one before it; a `ping` follows the first, as in Anthropic's streams."""
        before = self._begin() + self._close()
        self._opened(self._index + 1, kind)
        start = _BLOCK_START % (self._index, kind.encode(), members)
        return before + start + (_PING if self._index == 0 else b"")

    def _opened(self, index: int, kind: str, source: int | None = None) -> None:
        self._index, self._open, self._call, self._source = index, kind, None, source
        if kind == "text":
            prefix = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,' % index
            self._set_text_frame(prefix + b'"delta":{"type":"text_delta","text":', b"}}\n\n")

    def _close(self) -> bytes:
        if not self._open:
            return b""
        end = self._delta({"type": "input_json_delta", "partial_json": _TEXT_END}) if self._call in self._texts else b""
        self._closed()
        return end + _event("content_block_stop", {"index": self._index})

    def _closed(self) -> None:
        if self._call is not None:
            self._ended_calls.add(self._call)
        self._open, self._call = "", None

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return _event("content_block_delta", {"index": self._index, "delta": delta})

    def _pass(self, chunk: Chunk, event: Event) -> bytes:
        """Return an event as it was sent, else what was read of it; the stop reason waits for the outcome."""
        try:
            form = msgspec.convert(event.payload, SENT_EVENT)
        except msgspec.ValidationError:
            return self._repair(chunk, event)
        kind = type(form)
        if kind is MessageDelta:
            self._ends += b"event: message_delta\ndata: %b\n\n" % _in_one_line(event)
            return b""
        if kind is MessageStart:
            if self._has_begun or not all(block.is_whole for block in form.message.content):
                return self._repair(chunk, event)
            self._has_begun, self._index = True, len(form.message.content) - 1
            self._has_reason = form.message.stop_reason is not None
            return b"event: message_start\ndata: %b\n\n" % _in_one_line(event)
        if kind is BlockStart:
            return self._pass_start(form, chunk, event)
        if form.index != self._source or not self._open:
            return self._write(chunk)
        data = _in_one_line(event if form.index == self._index else self._renumbered(event))
        if kind is BlockStop:
            self._closed()
            stop = b"event: content_block_stop\ndata: %b\n\n" % data
            return stop + self._go_on() if self._waiting else stop
        if form.delta.block != self._open:
            return self._write(chunk)
        self._arguments += [call.arguments for call in chunk.tool_calls]
        return b"event: content_block_delta\ndata: %b\n\n" % data

    def _pass_start(self, form: BlockStart, chunk: Chunk, event: Event) -> bytes:
        """Return an event that opens a block, after closing the one before it if that is still open."""
        block = form.content_block
        is_known = block.type == "tool_use" and any(
            call.id is None for call in chunk.tool_calls
        )  # by the id of another
        if not block.is_whole or is_known or ((self._waiting or self._call is not None) and self._has_to_wait()):
            if form.index == self._source:  # it is the index of another block from here on
                self._source = None
            return self._write(chunk)
        before = b"" if self._has_begun and not self._open else self._begin() + self._close()
        self._opened(self._index + 1, "tool_use" if block.type.endswith("tool_use") else block.type, form.index)
        if block.type == "tool_use" and chunk.tool_calls:
            self._call = chunk.tool_calls[0].index
            self._arguments = [orjson.dumps(block.input).decode()] if block.input else []
        data = _in_one_line(event if form.index == self._index else self._renumbered(event))
        return b"%bevent: content_block_start\ndata: %b\n\n" % (before, data)

    def _renumbered(self, event: Event) -> Event:
        return Event.of({**event.payload, "index": self._index})

    def _write(self, chunk: Chunk) -> bytes:
        """Encode what was read of an event that is not passed on."""
        return self._mixed_chunk(chunk._replace(event=None))

    def _repair(self, chunk: Chunk, event: Event) -> bytes:
        """Encode what was read of an event that is not well formed; of the first event, well-formed members are kept.

        Events of unknown types are passed on: clients skip them.
        """
        payload = event.payload
        kind = payload.get("type")
        if kind == "message_start" and not self._has_begun:
            self._has_begun = True
            message = self._empty_message() | _kept(event_fields.mapping(payload.get("message")))
            return _event("message_start", {"message": message}) + self._write(chunk)
        if isinstance(kind, str) and kind.isidentifier() and kind not in _KNOWN_EVENTS:
            return self._begin() + b"event: %b\ndata: %b\n\n" % (kind.encode(), _in_one_line(event))
        return self._write(chunk)


def _kept(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of `message_start` that are passed on as they were sent."""
    kept = {name: value for name, value in message.items() if name not in _MADE}
    kept = {name: value for name, value in kept.items() if name not in ("id", "model") or is_of(value, Name)}
    sent = event_fields.mapping(message.get("usage"))
    usage = usage_fields(None)
    return kept | {"usage": usage | {name: sent[name] for name in usage if is_of(sent.get(name), Count)}}


def _in_one_line(event: Event) -> bytes:
    """Return the data of an event, which may have white space between its members."""
    data = event.data
    return data.replace(b"\n", b" ").replace(b"\r", b" ") if b"\n" in data or b"\r" in data else data


def _event(name: str, members: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps({"type": name, **members}))


def _is_object(text: str) -> bool:
    try:
        return isinstance(provider_json.loads(text.encode()), dict)
    except ValueError:
        return False
