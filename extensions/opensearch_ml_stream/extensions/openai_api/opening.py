"""Open OpenAI's API: conversations and embeddings in front of the router, the list of models behind."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from starlette.types import ASGIApp

from opensearch_ml_stream.extensions.openai_api.extension import (
    CHAT_PATH,
    COMPLETIONS_PATH,
    EMBEDDINGS_PATH,
    INPUT_TOKENS_PATH,
    RESPONSES_PATH,
)
from opensearch_ml_stream.extensions.openai_api.http.completions_api import ChatAPI, CompletionsAPI
from opensearch_ml_stream.extensions.openai_api.http.embeddings_endpoint import (
    StoredEmbeddingModels,
    embeddings_endpoint,
)
from opensearch_ml_stream.extensions.openai_api.http.model_routes import model_routes
from opensearch_ml_stream.extensions.openai_api.http.responses_api import (
    INPUT_TOKENS,
    ResponsesAPI,
    read_counted_response,
    stored_response_routes,
)
from opensearch_ml_stream.plugin.extension import BEFORE_THE_ROUTER, Contribution, Core, Handler
from opensearch_ml_stream.plugin.predictions.token_counts import TokenCounts
from opensearch_ml_stream.rest_handlers.callers import Caller
from opensearch_ml_stream.rest_handlers.openapi_schemas import STRING
from opensearch_ml_stream.rest_handlers.operation_description import OperationDescription
from opensearch_ml_stream.rest_handlers.routes.conversation_endpoint import (
    AtPaths,
    ConversationAPI,
    ConversationEndpoint,
)
from opensearch_ml_stream.rest_handlers.routes.token_count_endpoint import token_count_endpoint

_TYPES = ("application/json", "text/event-stream")
_FLAG = {"type": "boolean"}
_MESSAGES = {"type": "array", "items": {"type": "object"}}
_INPUT = {"oneOf": [STRING, {"type": "array", "items": {"type": "object"}}]}
_TEXTS = {"oneOf": [STRING, {"type": "array", "items": STRING}]}


def _post(summary: str, required: tuple[str, ...], types: tuple[str, ...], **properties: Any) -> OperationDescription:
    body = {"type": "object", "required": ["model", *required], "properties": {"model": STRING, **properties}}
    return OperationDescription(summary, body=body, is_body_required=True, content_types=types, is_of_ml_commons=False)


OPERATIONS: Mapping[str, Mapping[str, OperationDescription]] = {
    CHAT_PATH: {
        "POST": _post("Answer a chat, as OpenAI does.", ("messages",), _TYPES, messages=_MESSAGES, stream=_FLAG)
    },
    COMPLETIONS_PATH: {
        "POST": _post("Complete a text, as OpenAI does.", ("prompt",), _TYPES, prompt=_TEXTS, stream=_FLAG)
    },
    RESPONSES_PATH: {
        "POST": _post("Answer a conversation, as OpenAI's Responses API does.", (), _TYPES, input=_INPUT, stream=_FLAG)
    },
    INPUT_TOKENS_PATH: {
        "POST": _post("Count the input tokens of a response.", (), ("application/json",), input=_INPUT)
    },
    EMBEDDINGS_PATH: {
        "POST": _post("Make embeddings, as OpenAI does.", ("input",), ("application/json",), input=_TEXTS)
    },
}


@asynccontextmanager
async def open_openai_api(core: Core) -> AsyncIterator[Contribution]:
    """Contribute the routes."""

    def conversing(api: ConversationAPI) -> ASGIApp:
        return ConversationEndpoint(api, core.conversations, core.in_flight, core.gate)

    names, models = core.conversations.names, core.registry.models

    async def find(caller: Caller, name: str) -> Mapping[str, Any]:
        return await models.get(caller, await names.model_id(caller, name))

    counts = TokenCounts(names, core.models, core.calls)
    embeddings = StoredEmbeddingModels(names, core.models, core.predictions)
    at: dict[str, ASGIApp] = {
        CHAT_PATH: conversing(ChatAPI(core.clock)),
        COMPLETIONS_PATH: conversing(CompletionsAPI(core.clock)),
        RESPONSES_PATH: conversing(ResponsesAPI(core.clock)),
        INPUT_TOKENS_PATH: token_count_endpoint(counts, core.in_flight, core.gate, read_counted_response, INPUT_TOKENS),
        EMBEDDINGS_PATH: embeddings_endpoint(embeddings, core.in_flight, core.gate),
    }
    yield Contribution(
        routes=[*model_routes(names.listed, find, core.gate), *stored_response_routes(core.gate)],
        operations=OPERATIONS,
        handlers=(Handler(BEFORE_THE_ROUTER, lambda router: AtPaths(at, router)),),
    )
