"""Alibaba's own generation, of texts and multimodal.

https://www.alibabacloud.com/help/en/model-studio/qwen-api-via-dashscope.

The conversation is in `input.messages`, all that is asked of the answer in `parameters`. A content is a text, a list
where it has media or marks of a cache. An earlier answer's reasoning is left out: the documentation has it that it is
not sent back. The text of a failed tool's result says so. An effort of reasoning is a budget of tokens.
"""

from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import Conversation, Media, Part, Text
from opensearch_ml_stream.connectors.conversation.dialect import Dialect, Refuse
from opensearch_ml_stream.connectors.conversation.dialects.alternating_turns import refuse_names
from opensearch_ml_stream.connectors.conversation.dialects.functions import (
    refuse_strict,
    write_function,
    write_messages,
)
from opensearch_ml_stream.connectors.conversation.dialects.written_options import reasoning_budget, write_options
from opensearch_ml_stream.connectors.conversation.dialects.written_parts import (
    data_url,
    refuse_details,
    schema,
    texts,
)

_OPTIONS = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "stop": "stop",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
}
_WRITTEN_HERE = ("reasoning_effort", "reasoning_tokens", "reasoning_summary")  # thinking is given where there is any

_Member = dict[str, Any]


def _write(conversation: Conversation, refuse: Refuse) -> _Member:
    refuse_names(conversation, refuse)
    refuse_details(conversation, refuse)
    parameters = {
        "result_format": "message",
        **write_options(conversation, refuse, _OPTIONS, besides=_WRITTEN_HERE),
        **_tools(conversation, refuse),
        **_answer_format(conversation),
        **_thinking(conversation, refuse),
    }
    return {"input": {"messages": write_messages(conversation, refuse, _content)}, "parameters": parameters}


def _content(parts: tuple[Part, ...], conversation: Conversation, refuse: Refuse) -> str | list[_Member]:
    content: list[_Member] = []
    for part in parts:
        if isinstance(part, Media) and part.kind in ("image", "audio") and data_url(part):
            content.append({part.kind: data_url(part), **_cache(part)})
        elif isinstance(part, Text | Media):
            content += [{"text": text, **_cache(part)} for text in texts([part], conversation, refuse)]
    is_plain = all(part.keys() == {"text"} for part in content)
    return "\n".join(part["text"] for part in content) if is_plain else content


def _cache(part: Text | Media) -> _Member:
    return {} if part.cache is None else {"cache_control": {"type": part.cache.get("type", "ephemeral")}}


def _tools(conversation: Conversation, refuse: Refuse) -> _Member:
    if not conversation.tools:
        return {}
    refuse_strict(conversation, refuse)
    written: _Member = {"tools": [write_function(tool) for tool in conversation.tools]}
    if conversation.parallel_tool_calls is not None:
        written["parallel_tool_calls"] = conversation.parallel_tool_calls
    choice = conversation.tool_choice
    if choice is not None and choice.mode == "required":
        refuse(conversation.member("tool_choice"), "the provider takes auto, none or the name of a tool")
    elif choice is not None:
        named = {"type": "function", "function": {"name": choice.name}}
        written["tool_choice"] = named if choice.mode == "named" else choice.mode
    return written


def _answer_format(conversation: Conversation) -> _Member:
    asked = conversation.answer_format
    if asked is None:
        return {}
    wanted = schema(asked)
    if wanted is None:
        return {"response_format": {"type": "json_object"}}
    strict = {} if asked.strict is None else {"strict": asked.strict}
    described = {"name": asked.name or "answer", "schema": wanted, **strict}
    return {"response_format": {"type": "json_schema", "json_schema": described}}


def _thinking(conversation: Conversation, refuse: Refuse) -> _Member:
    budget = reasoning_budget(conversation, refuse)
    if budget:
        return {"enable_thinking": True, "thinking_budget": budget}
    return {} if budget is None else {"enable_thinking": False}


DASHSCOPE = Dialect(
    name="dashscope",
    write=_write,
    turns=("input.messages",),
    instead_of={"input.messages": ("input.prompt", "input.history")},
)
