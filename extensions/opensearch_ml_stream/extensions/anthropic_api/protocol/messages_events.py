"""Wire format of streams of `/v1/messages`: https://docs.claude.com/en/docs/build-with-claude/streaming.

    message_start, (content_block_start, content_block_delta ..., content_block_stop) ..., message_delta, message_stop

One block is open at a time, and its index is the next one. Where the provider speaks Anthropic's dialect, its own
events pass as they were sent, and text is put into the block that they have opened.
"""

from dataclasses import replace
from typing import Any, ClassVar

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, ChunkParts, Chunks, Ending, TextRun, ToolCall, to_chunk_list
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.syntax import provider_json
from opensearch_ml_stream.connectors.wire_format import ChunkFormat
from opensearch_ml_stream.extensions.anthropic_api.protocol.endings import said_beside, stop_reason, usage_fields
from opensearch_ml_stream.extensions.anthropic_api.protocol.errors import error_body
from opensearch_ml_stream.extensions.anthropic_api.protocol.ids import tool_id

_PING = b'event: ping\ndata: {"type": "ping"}\n\n'
_BLOCK_START = (
    b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,"content_block":{"type":"%b",%b}}\n\n'
)
_TEXT_START, _TEXT_END = '{"input":"', '"}'
_NOTHING_TO_SAY = b":\n\n"  # a comment
_SAID_BY_THE_OUTCOME = frozenset({"message_stop", "error"})


class MessageEvents(ChunkFormat):
    """The format of one stream. `model` is as the client asked for it, `message_id` is the message's.

    A block that was closed stays so. So what comes while the arguments of the open tool call are not whole yet, and is
    not of that call, waits for the end of the stream, with all that follows it.
    """

    content_type = "text/event-stream"
    _heartbeat: ClassVar[bytes] = _PING

    def __init__(self, model: str, message_id: str) -> None:
        super().__init__(b"", b"")
        self._model = model
        self._message_id = message_id
        self._has_begun = False
        self._beginning = b""  # `message_start`, once it is ready
        self._has_reason = False  # a stop reason was passed as it was sent
        self._index = -1  # of the block that was begun last
        self._open = ""  # its type while it is open
        self._call: int | None = None  # the index of the call that is open
        self._arguments: list[str] = []  # what it has so far
        self._ended_calls: set[int] = set()
        self._texts: set[int] = set()  # calls with a text in place of arguments
        self._waiting: list[Chunk | ToolCall] = []

    def prepare(self) -> None:
        """Make `message_start` ready."""
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
        """Encode the end: what waited, `message_delta` unless it was passed as it was sent, and `message_stop`."""
        try:
            reason = stop_reason(ending)
        except MLStreamError as error:
            return self._flush() + self._close() + self.error(error)
        parts = [self._begin(), self._flush()]
        if not self._has_reason or ending.guardrail is not None:
            parts.append(self._close())
            delta = {"stop_reason": reason, "stop_sequence": None}
            parts.append(_event("message_delta", {"delta": delta, "usage": usage_fields(ending.usage)}))
        if beside := said_beside(ending, extra):
            parts.append(b": opensearch_ml_stream %b\n\n" % orjson.dumps(beside))
        return b"".join([*parts, _event("message_stop", {})])

    def error(self, error: MLStreamError) -> bytes:
        """Encode what waited, and the error; no `message_stop` follows it."""
        return self._flush() + b"event: error\ndata: %b\n\n" % error_body(error)

    def _mixed(self, chunks: Chunks) -> bytes:
        """Encode chunks of which there may be nothing to say."""
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
            return self._pass(chunk.event)
        said: list[Chunk | ToolCall] = [chunk] if chunk.text or chunk.reasoning or chunk.signature else []
        return b"".join([self._in_turn(one) for one in [*said, *chunk.tool_calls]])

    def _in_turn(self, one: Chunk | ToolCall) -> bytes:
        """Encode what is of the open call, or may close it; all else waits."""
        if isinstance(one, ToolCall):
            if one.index in self._ended_calls:  # there is nothing to add to whole arguments
                return b""
            if one.is_text or one.index in self._texts:
                one = self._as_json(one)
            if one.index == self._call:
                return self._arguments_delta(one.arguments)
        if self._waiting or (self._call is not None and not _is_object("".join(self._arguments))):
            self._waiting.append(one)
            return b""
        return self._encode(one)

    def _as_json(self, one: ToolCall) -> ToolCall:
        """Return a fragment of a text as that of a JSON object with the text in it, which the end of the block ends."""
        begin = "" if one.index in self._texts else _TEXT_START
        self._texts.add(one.index)
        return replace(one, arguments=begin + orjson.dumps(one.arguments)[1:-1].decode())

    def _flush(self) -> bytes:
        """Encode what waited: in the order in which it came, the fragments of a call together."""
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
        """Encode the proof of the reasoning before it, which ends the block: it may stand without a text as well."""
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
        message: dict[str, Any] = {
            "id": self._message_id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_fields(None),
        }
        return _event("message_start", {"message": message})

    def _start(self, kind: str, members: bytes) -> bytes:
        """Open a block, after the one before it; a `ping` follows the first, as it does in Anthropic's streams."""
        before = self._begin() + self._close()
        self._opened(self._index + 1, kind)
        start = _BLOCK_START % (self._index, kind.encode(), members)
        return before + start + (_PING if self._index == 0 else b"")

    def _opened(self, index: int, kind: str) -> None:
        self._index, self._open, self._call = index, kind, None
        if kind == "text":
            prefix = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,' % index
            self._set_text_frame(prefix + b'"delta":{"type":"text_delta","text":', b"}}\n\n")

    def _close(self) -> bytes:
        if not self._open:
            return b""
        end = self._delta({"type": "input_json_delta", "partial_json": _TEXT_END}) if self._call in self._texts else b""
        if self._call is not None:
            self._ended_calls.add(self._call)
        self._open, self._call = "", None
        return end + _event("content_block_stop", {"index": self._index})

    def _delta(self, delta: dict[str, Any]) -> bytes:
        return _event("content_block_delta", {"index": self._index, "delta": delta})

    def _pass(self, event: Event) -> bytes:
        """Return an event as it was sent; the end and errors are said by the outcome."""
        payload, data = event.payload, event.data
        if b"\n" in data or b"\r" in data:  # white space between members
            data = data.replace(b"\n", b" ").replace(b"\r", b" ")
        kind = payload.get("type")
        if not isinstance(kind, str) or not kind.isidentifier() or kind in _SAID_BY_THE_OUTCOME:
            return b""
        self._has_begun = True
        if kind == "content_block_start":
            index = event_fields.count(payload.get("index"))
            block_type = event_fields.name(event_fields.mapping(payload.get("content_block")).get("type"))
            self._opened(self._index + 1 if index is None else index, block_type or "block")
        elif kind == "content_block_stop":
            self._open = ""
        elif kind == "message_delta":
            self._has_reason = True
        elif kind == "message_start":  # which may hold all of the message
            self._has_reason = bool(event_fields.mapping(payload.get("message")).get("stop_reason"))
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), data)


def _event(name: str, members: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), orjson.dumps({"type": name, **members}))


def _is_object(text: str) -> bool:
    try:
        return isinstance(provider_json.loads(text.encode()), dict)
    except ValueError:
        return False
