"""What the OpenAPI document says of the paths that stand in front of the router."""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.extensions.openai_api.paths import (
    CHAT_PATH,
    COMPLETIONS_PATH,
    EMBEDDINGS_PATH,
    INPUT_TOKENS_PATH,
    RESPONSES_PATH,
)
from opensearch_ml_stream.rest_handlers.openapi.description import OperationDescription
from opensearch_ml_stream.rest_handlers.openapi.schemas import STRING

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
