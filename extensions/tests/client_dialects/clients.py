"""The dialects that clients speak: how a request of each begins, and how it is read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import Conversation, JSONObject
from opensearch_ml_stream.connectors.conversation.dialect import (
    ANTHROPIC,
    OPENAI_CHAT,
    OPENAI_COMPLETIONS,
    OPENAI_RESPONSES,
    ClientRequest,
)
from opensearch_ml_stream.extensions.anthropic_api.protocol.messages_request import read_conversation
from opensearch_ml_stream.extensions.openai_api.protocol.completions_request import (
    read_chat_request,
    read_completions_request,
)
from opensearch_ml_stream.extensions.openai_api.protocol.responses_request import read_responses_request

_HI = {"role": "user", "content": "Hi"}


@dataclass(frozen=True, slots=True, eq=False)
class Client:
    """A dialect of clients; `least` is the body of the shortest request."""

    dialect: str
    title: str
    least: JSONObject
    read: Callable[[JSONObject], Conversation]

    def request(self, body: JSONObject) -> ClientRequest:
        return ClientRequest(self.dialect, body, self.read)


CHAT = Client(OPENAI_CHAT, "OpenAI chat completions", {"messages": [_HI]}, read_chat_request)
RESPONSES = Client(OPENAI_RESPONSES, "OpenAI Responses", {"input": [_HI]}, read_responses_request)
MESSAGES = Client(ANTHROPIC, "Anthropic Messages", {"messages": [_HI], "max_tokens": 1024}, read_conversation)
COMPLETIONS = Client(OPENAI_COMPLETIONS, "OpenAI completions", {"prompt": "Hi"}, read_completions_request)
CLIENTS = (CHAT, RESPONSES, MESSAGES, COMPLETIONS)

Body = dict[str, Any]
