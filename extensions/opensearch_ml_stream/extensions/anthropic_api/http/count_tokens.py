"""Read the body of `POST /v1/messages/count_tokens`."""

from typing import Any

from opensearch_ml_stream.connectors.conversation.dialect import ANTHROPIC, ClientRequest
from opensearch_ml_stream.extensions.anthropic_api.protocol.body_members import Members
from opensearch_ml_stream.extensions.anthropic_api.protocol.messages_request import read_counted_conversation
from opensearch_ml_stream.rest_handlers.routes.token_count_endpoint import CountRequest


def read_counted_message(body: dict[str, Any]) -> CountRequest:
    """Return the model, and what is to be counted."""
    model = Members(body).required_text("model")
    body.pop("model")
    return model, ClientRequest(ANTHROPIC, body, read_counted_conversation)
