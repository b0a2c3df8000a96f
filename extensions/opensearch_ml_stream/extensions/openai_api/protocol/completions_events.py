"""The wire formats of streams of OpenAI's API: chunks of chat completions or completions, up to `[DONE]`.

https://platform.openai.com/docs/api-reference/chat-streaming
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, TextRun, ToolCall, begins_as_sent
from opensearch_ml_stream.connectors.conversation.dialects.openai_as_sent import PADDINGS
from opensearch_ml_stream.connectors.errors import MLStreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.wire_format import ChunkFormat
from opensearch_ml_stream.extensions.openai_api.protocol.envelope import (
    OWN_MEMBER,
    REASONING,
    SIGNATURE,
    Envelope,
    own_fields,
    usage_object,
    with_refusal,
)
from opensearch_ml_stream.extensions.openai_api.protocol.errors import error_body
from opensearch_ml_stream.extensions.openai_api.protocol.sent_chunks import SentChatChunks, SentChunks, SentTextChunks

DONE = b"data: [DONE]\n\n"
_MARK = "\0text\0"  # in no name or id
_ENCODED_MARK = orjson.dumps(_MARK)
_NOTHING = b":\n\n"  # a comment, for a read that holds nothing for the client
_OF_PROVIDER = ("id", "object", "created", "model", "system_fingerprint", "service_tier", "provider")


class StreamEvents(ChunkFormat):
    """The format of one stream.

    Events that the provider sent in the client's dialect are passed on as they are, or repaired (`SentChunks`). A text
    without an event of its own is written like the last text before it that had one. Everything else gets the id, time
    and model of the first event, or ours. With `wants_usage` an event of its own before the end has the token counts;
    otherwise they are left out.
    """

    content_type = "text/event-stream"
    _heartbeat = b": ping\n\n"
    _object: ClassVar[str]
    _sent_chunks: ClassVar[type[SentChunks]]
    _sent: SentChunks | None  # None before the first event of the provider's
    _model_text: Event | None  # the event that texts without one are written like

    def __init__(self, envelope: Envelope, *, wants_usage: bool = False) -> None:
        self._made = envelope
        self._head: dict[str, Any] = {}  # what the events begin with that are made here, empty before the first
        self._sent = self._model_text = None
        self._wants_usage = wants_usage
        self._has_begun = self._has_text = self._has_usage = self._has_refused = False
        self._beginning = b""  # once it is ready
        super().__init__(b"", b"")

    def prepare(self) -> None:
        """Encode what the stream begins with, and the bytes around a text, ahead of time."""
        self._beginning = self._begin()
        self._frame_texts()

    def chunks(self, chunks: Chunks) -> bytes:
        """Encode all chunks of one upstream read; a comment where none of them is for the client."""
        if isinstance(chunks, TextRun) and self._has_begun and self._text_prefix:
            return chunks.wrap_each(self._opening, self._between, self._closing)
        begin = b"" if self._has_begun or begins_as_sent(chunks) else self._beginning or self._begin()
        self._has_begun = True
        if isinstance(chunks, TextRun) and not self._text_prefix:
            self._frame_texts()
        return begin + super().chunks(chunks) or _NOTHING

    def ending(self, ending: Ending, extra: dict[str, Any]) -> bytes:
        """Encode what the provider's own events have not said of the end."""
        if self._has_refused:
            ending = with_refusal(ending)
        events = [] if self._has_begun else [self._beginning or self._begin()]
        events += self._kept()
        if self._sent is None or not self._sent.has_ended:
            events.append(self._event([self._finish(ending.finish_reason)]))
        if self._wants_usage and not self._has_usage and ending.usage is not None:
            events.append(self._event([], {"usage": usage_object(ending.usage)}))
        if fields := own_fields(ending, extra):
            events.append(b": %b %b\n\n" % (OWN_MEMBER.encode(), orjson.dumps(fields)))
        return b"".join([*events, DONE])

    def error(self, error: MLStreamError) -> bytes:
        """Encode the error that ends the stream; no `[DONE]` follows."""
        return b"data: " + error_body(error) + b"\n\n"

    @abstractmethod
    def _choice(self, text: Any) -> dict[str, Any]:
        """Return the choice of a text."""

    @abstractmethod
    def _text_in(self, choice: Mapping[str, Any], text: Any) -> dict[str, Any]:
        """Return the member that holds the text of a provider's choice, with another text in it."""

    @abstractmethod
    def _own_choice(self, chunk: Chunk) -> dict[str, Any]:
        """Return the choice of a chunk that is not of text alone."""

    @abstractmethod
    def _finish(self, finish_reason: str) -> dict[str, Any]:
        """Return the choice that says why the response ends."""

    def _kept(self) -> list[bytes]:
        """Return events that waited for the end."""
        return []

    def _begin(self) -> bytes:
        """Encode what the stream begins with."""
        return b""

    def _chunk(self, chunk: Chunk) -> bytes:
        sent = chunk.event
        if sent is None:
            if not self._text_prefix:
                self._frame_texts()
            return super()._chunk(chunk)
        if self._sent is None:
            self._sent = self._sent_chunks(self._made)
            self._head, self._text_prefix = {}, b""
        event = self._sent.event(chunk, sent)
        if chunk.text and not self._has_text:
            self._model_text = event
        if self._wants_usage and sent.payload.get("usage"):
            self._has_usage = bool(event.payload["usage"])
        if b"\n" in event.data or b"\r" in event.data:
            return b"data: " + orjson.dumps(event.payload) + b"\n\n"
        return b"data: " + event.data + b"\n\n"

    def _mixed_chunk(self, chunk: Chunk) -> bytes:
        return self._event([self._own_choice(chunk)])

    def _frame_texts(self) -> None:
        """Compute the bytes around a text."""
        self._has_text = self._sent is not None
        if self._model_text is not None:
            kept = {name: value for name, value in self._model_text.payload.items() if name not in PADDINGS}
            choice: dict[str, Any] = kept["choices"][0]
            event = b"data: " + orjson.dumps({**kept, "choices": [choice | self._text_in(choice, _MARK)]}) + b"\n\n"
        else:
            event = self._event([self._choice(_MARK)])
        before, after = event.split(_ENCODED_MARK)
        self._set_text_frame(before, after)

    def _event(self, choices: Sequence[Mapping[str, Any]], further: Mapping[str, Any] | None = None) -> bytes:
        head = self._head or self._new_head()
        return b"data: " + orjson.dumps({**head, "choices": choices, **(further or {})}) + b"\n\n"

    def _new_head(self) -> dict[str, Any]:
        first = None if self._sent is None else self._sent.first
        sent = {} if first is None else first.payload
        self._head = self._made.head(self._object) | {name: sent[name] for name in _OF_PROVIDER if name in sent}
        return self._head


class ChatEvents(StreamEvents):
    """The format of one chat stream.

    With `calls_function` the client uses the older `functions` in place of tools, which allow one call.

    The signature of the reasoning is sent at the end. A message has one field for it, in which clients join all that
    they get: of several signatures, none is sent.
    """

    _object: ClassVar[str] = "chat.completion.chunk"
    _sent_chunks = SentChatChunks

    def __init__(self, envelope: Envelope, *, wants_usage: bool = False, calls_function: bool = False) -> None:
        self._calls_function = calls_function
        self._signatures: list[str] = []
        self._calls: dict[int, int] = {}  # numbers of the calls that have begun, from 0 as clients expect
        super().__init__(envelope, wants_usage=wants_usage)

    def _begin(self) -> bytes:
        return self._event([_choice({"role": "assistant", "content": ""})])

    def _kept(self) -> list[bytes]:
        is_one = len(self._signatures) == 1
        return [self._event([_choice({SIGNATURE: self._signatures[0]})])] if is_one else []

    def _mixed_chunk(self, chunk: Chunk) -> bytes:
        if chunk.signature:
            self._signatures.append(chunk.signature)
            chunk = chunk._replace(signature="")
            if chunk == Chunk():
                return b""
        return super()._mixed_chunk(chunk)

    def _choice(self, text: Any) -> dict[str, Any]:
        return _choice({"content": text})

    def _text_in(self, choice: Mapping[str, Any], text: Any) -> dict[str, Any]:
        delta = {name: value for name, value in choice["delta"].items() if name != "role"}
        return {"delta": {**delta, "content": text}}

    def _own_choice(self, chunk: Chunk) -> dict[str, Any]:
        delta: dict[str, Any] = {}
        if chunk.reasoning:
            delta[REASONING] = chunk.reasoning
        if chunk.text != chunk.refusal:
            delta["content"] = chunk.text.removesuffix(chunk.refusal)
        if chunk.refusal:
            delta["refusal"] = chunk.refusal
            self._has_refused = True
        if chunk.tool_calls and self._calls_function:
            delta |= self._function_call(chunk.tool_calls)
        elif chunk.tool_calls:
            delta["tool_calls"] = [self._call(call) for call in chunk.tool_calls]
        if chunk.outputs:
            delta["outputs"] = chunk.outputs
        return _choice(delta)

    def _finish(self, finish_reason: str) -> dict[str, Any]:
        is_function = self._calls_function and finish_reason == "tool_calls"
        return {"index": 0, "delta": {}, "finish_reason": "function_call" if is_function else finish_reason}

    def _function_call(self, calls: tuple[ToolCall, ...]) -> dict[str, Any]:
        """Return the fragment of the first call, the only one that such a client understands."""
        begins = not self._calls
        if begins:
            self._calls[calls[0].index] = 0
        name = {"name": calls[0].name or ""} if begins else {}
        arguments = "".join([call.arguments for call in calls if call.index in self._calls])
        return {"function_call": {**name, "arguments": arguments}} if begins or arguments else {}

    def _call(self, call: ToolCall) -> dict[str, Any]:
        """Return a fragment; only the first has its call's name, since clients join the names of all."""
        if isinstance(self._sent, SentChatChunks):
            return self._sent.call(call)
        number = self._calls.get(call.index)
        if number is not None:
            return {"index": number, "function": {"arguments": call.arguments}}
        number = self._calls[call.index] = len(self._calls)
        function = {"name": call.name or "", "arguments": call.arguments}
        return {"index": number, "id": call.id or self._made.call_id(number), "type": "function", "function": function}


def _choice(delta: dict[str, Any]) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": None}


class CompletionsEvents(StreamEvents):
    """The format of one stream of text. Reasoning and tool calls have no place in it."""

    _object: ClassVar[str] = "text_completion"
    _sent_chunks = SentTextChunks

    def _choice(self, text: Any) -> dict[str, Any]:
        return text_choice(text, None)

    def _text_in(self, choice: Mapping[str, Any], text: Any) -> dict[str, Any]:
        return {"text": text}

    def _own_choice(self, chunk: Chunk) -> dict[str, Any]:
        return text_choice(chunk.text, None)

    def _finish(self, finish_reason: str) -> dict[str, Any]:
        return text_choice("", finish_reason)


def text_choice(text: str, finish_reason: str | None) -> dict[str, Any]:
    """Return a choice with its text."""
    return {"text": text, "index": 0, "logprobs": None, "finish_reason": finish_reason}
