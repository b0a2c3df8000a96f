"""The wire format of chat streams: objects of kind `chat.completion.chunk`.

https://platform.openai.com/docs/api-reference/chat-streaming
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from opensearch_ml_stream.connectors.chunks import Chunk, ToolCall
from opensearch_ml_stream.extensions.openai_api.protocol.chat_messages import REASONING, SIGNATURE
from opensearch_ml_stream.extensions.openai_api.protocol.envelope import Envelope
from opensearch_ml_stream.extensions.openai_api.protocol.sent_chunks import SentChatChunks
from opensearch_ml_stream.extensions.openai_api.protocol.stream_events import StreamEvents


class ChatEvents(StreamEvents):
    """The format of one chat stream.

    With `calls_function` the client speaks of functions, as it was before there were tools: there is one call at most.

    The proof of reasoning waits for the end. A message has one place for it, and clients join what comes there: of
    several, each of another text, none is given.
    """

    _object: ClassVar[str] = "chat.completion.chunk"
    _sent_chunks = SentChatChunks

    def __init__(self, envelope: Envelope, *, wants_usage: bool = False, calls_function: bool = False) -> None:
        self._calls_function = calls_function
        self._signatures: list[str] = []
        self._calls: dict[int, int] = {}  # the numbers of those that have begun, from 0 as clients want them
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
        """Return the fragment of the first call, the only one that such a client can be told of."""
        begins = not self._calls
        if begins:
            self._calls[calls[0].index] = 0
        name = {"name": calls[0].name or ""} if begins else {}
        arguments = "".join([call.arguments for call in calls if call.index in self._calls])
        return {"function_call": {**name, "arguments": arguments}} if begins or arguments else {}

    def _call(self, call: ToolCall) -> dict[str, Any]:
        """Return a fragment; the first one alone names its call, as clients join the names of all."""
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
