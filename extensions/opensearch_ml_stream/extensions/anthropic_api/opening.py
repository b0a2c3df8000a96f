"""Open Anthropic's Messages API: its routes stand in front of the router."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from opensearch_ml_stream.extensions.anthropic_api.http.count_tokens import read_counted_message
from opensearch_ml_stream.extensions.anthropic_api.http.messages_door import MessagesDoor
from opensearch_ml_stream.extensions.anthropic_api.http.operations import OPERATIONS
from opensearch_ml_stream.extensions.anthropic_api.paths import COUNT_TOKENS_PATH, MESSAGES_PATH
from opensearch_ml_stream.plugin.extension import BEFORE_THE_ROUTER, Contribution, Core, Handler
from opensearch_ml_stream.plugin.predictions.token_counts import TokenCounts
from opensearch_ml_stream.rest_handlers.routes.conversation_endpoint import AtPaths, ConversationEndpoint
from opensearch_ml_stream.rest_handlers.routes.response_ids import new_id
from opensearch_ml_stream.rest_handlers.routes.token_count_endpoint import token_count_endpoint


@asynccontextmanager
async def open_anthropic_api(core: Core) -> AsyncIterator[Contribution]:
    """Contribute the routes."""
    door = MessagesDoor(new_id)
    messages = ConversationEndpoint(door, core.conversations, core.in_flight, core.gate)
    counts = TokenCounts(core.conversations.names, core.models, core.calls)
    endpoints: dict[str, ASGIApp] = {
        MESSAGES_PATH: messages,
        COUNT_TOKENS_PATH: token_count_endpoint(counts, core.in_flight, core.gate, read_counted_message, {}),
    }

    def before(router: ASGIApp) -> ASGIApp:
        return AtPaths(endpoints, router)

    yield Contribution(operations=OPERATIONS, handlers=(Handler(BEFORE_THE_ROUTER, before),))
