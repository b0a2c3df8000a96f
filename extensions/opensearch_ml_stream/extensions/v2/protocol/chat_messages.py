"""Chats as tensors: `role`, `content` and `type` have an element for each message, as in Seldon's LLM module.

https://docs.seldon.ai/llm-module/components/models/api. A message in parts has a JSON array of types, and one of
contents of the same length. `tool_calls` (JSON), `tool_call_id` and `name` are optional tensors.
"""

from collections.abc import Mapping
from typing import Any

from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.predict.model_inputs import ChatForm
from opensearch_ml_stream.extensions.v2.protocol.messages import Tensor
from opensearch_ml_stream.extensions.v2.protocol.tensor_parameters import container, texts

MAX_MESSAGES = 5_000
CHAT_TENSORS = ("role", "content", "type", "tool_calls", "tool_call_id", "name")
_TEXT = "text"
_ABSENT: tuple[object, ...] = ("", "null", [], None)


def is_chat(tensors: Mapping[str, Tensor]) -> bool:
    """Whether tensors, by name, are a chat."""
    return all(name in tensors and tensors[name].datatype == "BYTES" for name in ("role", "content"))


def chat_messages(tensors: Mapping[str, Tensor], form: ChatForm) -> list[dict[str, Any]]:
    """Return the messages of a chat for JSON. InvalidRequest if the tensors differ in length."""
    roles, contents = texts(tensors["role"]), texts(tensors["content"])
    count = len(roles)
    types = texts(tensors["type"]) if "type" in tensors else [_TEXT] * count
    if not len(contents) == len(types) == count > 0:
        raise InvalidRequest("The tensors role, content and type must have one element for each message")
    if count > MAX_MESSAGES:
        raise InvalidRequest(f"A chat may have {MAX_MESSAGES} messages; this one has {count}")
    messages = [
        form.write(role, _content(content, type)) for role, content, type in zip(roles, contents, types, strict=True)
    ]
    for name in CHAT_TENSORS[3:]:
        if name in tensors:
            for message, value in zip(messages, _of_messages(tensors[name], count), strict=True):
                if value not in _ABSENT:
                    message[name] = value
    return messages


def _content(content: str, type: str) -> Any:
    """Return the content of a message: a string for text, for any other type an array of parts."""
    types = container(type)
    if not isinstance(types, list):
        return content if type in (_TEXT, "") else [_part(type, content)]
    parts = container(content)
    if not isinstance(parts, list) or len(parts) != len(types):
        raise InvalidRequest("A content whose type is a JSON array must be a JSON array of the same length")
    if types == [_TEXT]:
        return parts[0]
    return [_part(str(type), part) for type, part in zip(types, parts, strict=True)]


def _part(type: str, content: Any) -> dict[str, Any]:
    """Return a part in OpenAI's form; a part that has a form already stays as it is."""
    value = container(content) if isinstance(content, str) and type != _TEXT else content
    if isinstance(value, dict):
        return value if "type" in value else {"type": type, type: value}
    return {"type": type, type: {"url": value} if type == "image_url" else value}


def _of_messages(tensor: Tensor, count: int) -> list[Any]:
    """Return a value for each message; the tool calls of the only message may be an element each."""
    values = [container(text) for text in texts(tensor)]
    if tensor.name == "tool_calls":
        if count == 1:
            return [[call for value in values if value not in _ABSENT for call in _as_list(value)]]
        values = [value if value in _ABSENT else _as_list(value) for value in values]
    if len(values) != count:
        raise InvalidRequest(f"The tensor {tensor.name} must have one element for each message")
    return values


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
