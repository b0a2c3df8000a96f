"""`/v1/messages`: how requests are read, and how their answers are written."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer
from opensearch_ml_stream.connectors.conversation.dialect import ANTHROPIC, ClientRequest
from opensearch_ml_stream.extensions.anthropic_api.protocol.messages_events import MessageEvents
from opensearch_ml_stream.extensions.anthropic_api.protocol.messages_request import (
    read_conversation,
    read_counted_conversation,
)
from opensearch_ml_stream.extensions.anthropic_api.protocol.messages_response import whole_message
from opensearch_ml_stream.extensions.anthropic_api.protocol.request_members import Members
from opensearch_ml_stream.rest_handlers.routes.token_count_endpoint import CountRequest


@dataclass(frozen=True, slots=True)
class MessageRequest:
    """A request for the next message of a model, by its name or id; fits `conversation_endpoint.AnswerRequest`."""

    model: str
    is_stream: bool
    request: ClientRequest
    message_id: str

    def wire(self) -> MessageEvents:
        """Return the format of the stream of the message."""
        return MessageEvents(self.model, self.message_id)

    def whole(self, answer: WholeAnswer) -> bytes:
        """Return the body of a whole message."""
        return whole_message(answer, self.model, self.message_id)


@dataclass(frozen=True, slots=True)
class MessagesAPI:
    """Fits `conversation_endpoint.ConversationAPI`. `new_id` returns a unique id for each message."""

    new_id: Callable[[], str]

    def read(self, body: dict[str, Any]) -> MessageRequest:
        """Return the request of a body; its conversation is only read if the provider has another dialect."""
        members = Members(body)
        model, is_stream = members.required_text("model"), members.flag("stream") is True
        conversation = {name: value for name, value in body.items() if name not in ("model", "stream")}
        request = ClientRequest(ANTHROPIC, conversation, read_conversation)
        return MessageRequest(model, is_stream, request, f"msg_{self.new_id()}")


def read_counted_message(body: dict[str, Any]) -> CountRequest:
    """Return the model, and the request whose tokens are counted."""
    model = Members(body).required_text("model")
    body.pop("model")
    return model, ClientRequest(ANTHROPIC, body, read_counted_conversation)
