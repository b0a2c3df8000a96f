"""`/v1/chat/completions` and `/v1/completions`: how requests are read, and how their answers are written."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer
from opensearch_ml_stream.connectors.conversation.dialect import OPENAI_CHAT, OPENAI_COMPLETIONS, ClientRequest
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.wire_format import WireFormat
from opensearch_ml_stream.extensions.openai_api.protocol.completions_events import ChatEvents, CompletionsEvents
from opensearch_ml_stream.extensions.openai_api.protocol.completions_request import (
    read_chat_request,
    read_completions_request,
)
from opensearch_ml_stream.extensions.openai_api.protocol.completions_response import (
    as_sent,
    chat_response,
    completions_response,
)
from opensearch_ml_stream.extensions.openai_api.protocol.envelope import Envelope
from opensearch_ml_stream.extensions.openai_api.protocol.request_members import Members
from opensearch_ml_stream.extensions.openai_api.protocol.sent_chunks import SentChatChunks, SentTextChunks
from opensearch_ml_stream.rest_handlers.routes.conversation_endpoint import new_id

Clock = Callable[[], int]
"""Returns the time now in milliseconds since 1970."""


class _CompletionsRequest(NamedTuple):
    """What a request asks for."""

    model: str
    is_stream: bool
    request: ClientRequest
    envelope: Envelope


class ChatRequest(_CompletionsRequest):
    """What a request of `/v1/chat/completions` asks for."""

    __slots__ = ()

    def wire(self) -> WireFormat:
        """Return the format of the stream."""
        return ChatEvents(self.envelope, wants_usage=self.request.wants_usage, calls_function=self._calls_function)

    def whole(self, answer: WholeAnswer) -> bytes:
        """Return the response in one piece."""
        if answer.is_as_sent:
            return as_sent(answer, SentChatChunks(self.envelope))
        chunk, ending = answer.chunk, answer.ending
        return chat_response(self.envelope, chunk, ending, answer.extra, calls_function=self._calls_function)

    @property
    def _calls_function(self) -> bool:
        return "functions" in self.request.body


class CompletionsRequest(_CompletionsRequest):
    """What a request of `/v1/completions` asks for."""

    __slots__ = ()

    def wire(self) -> WireFormat:
        """Return the format of the stream."""
        return CompletionsEvents(self.envelope, wants_usage=self.request.wants_usage)

    def whole(self, answer: WholeAnswer) -> bytes:
        """Return the response in one piece."""
        if answer.is_as_sent:
            return as_sent(answer, SentTextChunks(self.envelope))
        return completions_response(self.envelope, answer.chunk, answer.ending, answer.extra)


@dataclass(frozen=True, slots=True)
class ChatAPI:
    """The API of `/v1/chat/completions`."""

    clock: Clock

    def read(self, body: dict[str, Any]) -> ChatRequest:
        """Return what the members of a request ask for. InvalidRequest names the member that is wrong."""
        model, is_stream, wants_usage, rest = _read_common(body, needs_messages=True)
        request = ClientRequest(OPENAI_CHAT, rest, read_chat_request, wants_usage)
        return ChatRequest(model, is_stream, request, Envelope(f"chatcmpl-{new_id()}", self.clock() // 1000, model))


@dataclass(frozen=True, slots=True)
class CompletionsAPI:
    """The API of `/v1/completions`."""

    clock: Clock

    def read(self, body: dict[str, Any]) -> CompletionsRequest:
        """Return what the members of a request ask for. InvalidRequest names the member that is wrong."""
        model, is_stream, wants_usage, rest = _read_common(body)
        request = ClientRequest(OPENAI_COMPLETIONS, rest, read_completions_request, wants_usage)
        return CompletionsRequest(model, is_stream, request, Envelope(f"cmpl-{new_id()}", self.clock() // 1000, model))


def _read_common(body: dict[str, Any], *, needs_messages: bool = False) -> tuple[str, bool, bool, dict[str, Any]]:
    """Return the model, whether the client wants a stream, whether the stream reports usage, and the other members."""
    members = Members(body)
    if needs_messages:
        members.need("messages", list)
    model = members.need_name("model")
    is_stream = members.take("stream", bool) or False
    options = members.take("stream_options", dict)
    if options is not None and not is_stream:
        raise InvalidRequest("stream_options must be left out where stream is not true")
    rest = {name: value for name, value in body.items() if name not in ("model", "stream", "stream_options")}
    if options is None:
        return model, is_stream, False, rest
    of_stream = Members(options, "stream_options")
    wants_usage = of_stream.take("include_usage", bool) or False
    of_stream.drop("include_obfuscation")  # padding that hides the lengths of tokens; none is added here
    for member in of_stream.unread():
        raise InvalidRequest(f"{member} cannot be passed on to a provider; leave it out")
    return model, is_stream, wants_usage, rest
