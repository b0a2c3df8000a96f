"""What the OpenAPI document says of the Messages API."""

from collections.abc import Mapping

from opensearch_ml_stream.extensions.anthropic_api.paths import COUNT_TOKENS_PATH, MESSAGES_PATH
from opensearch_ml_stream.rest_handlers.openapi.description import FLAG, OperationDescription, Schema
from opensearch_ml_stream.rest_handlers.openapi.schemas import OBJECT, STRING

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
