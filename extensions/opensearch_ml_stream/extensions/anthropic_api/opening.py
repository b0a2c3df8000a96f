"""Open Anthropic's Messages API: its routes stand in front of the router."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from opensearch_ml_stream.extensions.anthropic_api.extension import COUNT_TOKENS_PATH, MESSAGES_PATH
from opensearch_ml_stream.extensions.anthropic_api.messages_api import MessagesAPI, read_counted_message
from opensearch_ml_stream.plugin.extension import BEFORE_THE_ROUTER, Contribution, Core, Handler
from opensearch_ml_stream.plugin.predictions.token_counts import TokenCounts
from opensearch_ml_stream.rest_handlers.openapi_schemas import OBJECT, STRING
from opensearch_ml_stream.rest_handlers.operation_description import FLAG, OperationDescription, Schema
from opensearch_ml_stream.rest_handlers.routes.conversation_endpoint import AtPaths, ConversationEndpoint, new_id
from opensearch_ml_stream.rest_handlers.routes.token_count_endpoint import token_count_endpoint

_ASKED: Mapping[str, Schema] = {"model": STRING, "messages": {"type": "array", "items": OBJECT}}
_MESSAGE: Schema = {
    "type": "object",
    "required": ["model", "messages", "max_tokens"],
    "properties": {**_ASKED, "max_tokens": {"type": "integer", "minimum": 0}, "stream": FLAG},
}
_COUNTED: Schema = {"type": "object", "required": ["model", "messages"], "properties": _ASKED}
_COUNT: Schema = {"type": "object", "properties": {"input_tokens": {"type": "integer"}}}

OPERATIONS: Mapping[str, Mapping[str, OperationDescription]] = {
    MESSAGES_PATH: {
        "POST": OperationDescription(
            "Ask for the next message, in the form of Anthropic's Messages API.",
            body=_MESSAGE,
            is_body_required=True,
            content_types=("application/json", "text/event-stream"),
            is_of_ml_commons=False,
        )
    },
    COUNT_TOKENS_PATH: {
        "POST": OperationDescription(
            "Count the input tokens of a message.",
            body=_COUNTED,
            is_body_required=True,
            response=_COUNT,
            is_of_ml_commons=False,
        )
    },
}


@asynccontextmanager
async def open_anthropic_api(core: Core) -> AsyncIterator[Contribution]:
    """Contribute the routes."""
    api = MessagesAPI(new_id)
    messages = ConversationEndpoint(api, core.conversations, core.in_flight, core.gate)
    counts = TokenCounts(core.conversations.names, core.models, core.calls)
    endpoints: dict[str, ASGIApp] = {
        MESSAGES_PATH: messages,
        COUNT_TOKENS_PATH: token_count_endpoint(counts, core.in_flight, core.gate, read_counted_message, {}),
    }

    def before(router: ASGIApp) -> ASGIApp:
        return AtPaths(endpoints, router)

    yield Contribution(operations=OPERATIONS, handlers=(Handler(BEFORE_THE_ROUTER, before),))
