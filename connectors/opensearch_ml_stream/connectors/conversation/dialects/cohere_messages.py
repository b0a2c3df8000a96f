"""Cohere's chat, version 2: https://docs.cohere.com/reference/chat.

An earlier answer's reasoning goes back as `thinking`, which Cohere takes, unless it has a signature: Cohere gives none,
such reasoning is another model's, and is left out as a by-product. The text of a failed tool's result says so. Cohere
cannot be told to call one tool of several: it gets that one alone. An effort of reasoning is a budget of tokens.
`cache_control`, a hint for prices, is left out.
"""

from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import Call, Conversation, Media, Part, Result, Text
from opensearch_ml_stream.connectors.conversation.dialect import Dialect, Refuse
from opensearch_ml_stream.connectors.conversation.dialects.alternating_turns import refuse_names
from opensearch_ml_stream.connectors.conversation.dialects.functions import (
    refuse_one_at_a_time,
    write_call,
    write_function,
    write_result,
)
from opensearch_ml_stream.connectors.conversation.dialects.written_options import reasoning_budget, write_options
from opensearch_ml_stream.connectors.conversation.dialects.written_parts import (
    SYSTEM_ROLES,
    data_url,
    messages_of,
    reasoning_text,
    schema,
    texts,
)

_OPTIONS = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "p",
    "top_k": "k",
    "stop": "stop_sequences",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
_WRITTEN_HERE = ("reasoning_effort", "reasoning_tokens", "reasoning_summary")  # thinking is given where there is any

_Member = dict[str, Any]


def _write(conversation: Conversation, refuse: Refuse) -> _Member:
    refuse_names(conversation, refuse)
    return {
        "messages": _messages(conversation, refuse),
        **write_options(conversation, refuse, _OPTIONS, besides=_WRITTEN_HERE),
        **_tools(conversation, refuse),
        **_answer_format(conversation),
        **_thinking(conversation, refuse),
    }


def _messages(conversation: Conversation, refuse: Refuse) -> list[_Member]:
    messages: list[_Member] = []
    for turn in conversation.turns:
        for said in messages_of(turn):
            if isinstance(said, Result):
                messages.append(write_result(said, conversation, refuse))
            elif turn.role == "assistant":
                messages += _answer(said, conversation, refuse)
            elif turn.role in SYSTEM_ROLES:
                messages.append({"role": "system", "content": "\n".join(texts(said, conversation, refuse))})
            else:
                messages.append({"role": "user", "content": _content(said, conversation, refuse)})
    return messages


def _answer(parts: tuple[Part, ...], conversation: Conversation, refuse: Refuse) -> list[_Member]:
    """Return the message of an answer; none if nothing of it goes back."""
    message: _Member = {"role": "assistant"}
    said = [{"type": "text", "text": text} for text in texts(parts, conversation, refuse)]
    thought = reasoning_text(parts)
    if content := [*([{"type": "thinking", "thinking": thought}] if thought else []), *said]:
        message["content"] = content
    if calls := [write_call(part) for part in parts if isinstance(part, Call)]:
        message["tool_calls"] = calls
    return [message] if len(message) > 1 else []


def _content(parts: tuple[Part, ...], conversation: Conversation, refuse: Refuse) -> str | list[_Member]:
    content: list[_Member] = []
    for part in parts:
        if isinstance(part, Media) and part.kind == "image" and data_url(part):
            detail = {"detail": part.detail} if part.detail else {}
            content.append({"type": "image_url", "image_url": {"url": data_url(part), **detail}})
        elif isinstance(part, Text | Media):
            content += [{"type": "text", "text": text} for text in texts([part], conversation, refuse)]
    return content[0]["text"] if len(content) == 1 and content[0]["type"] == "text" else content


def _tools(conversation: Conversation, refuse: Refuse) -> _Member:
    if not conversation.tools:
        return {}
    refuse_one_at_a_time(conversation, refuse)
    choice = conversation.tool_choice
    tools = [
        tool for tool in conversation.tools if choice is None or choice.mode != "named" or tool.name == choice.name
    ]
    written: _Member = {"tools": [write_function(tool) for tool in tools]}
    if any(tool.strict for tool in tools):
        written["strict_tools"] = True
    if choice is not None and choice.mode != "auto":
        written["tool_choice"] = "NONE" if choice.mode == "none" else "REQUIRED"
    return written


def _answer_format(conversation: Conversation) -> _Member:
    asked = conversation.answer_format
    if asked is None:
        return {}
    wanted = schema(asked)
    return {"response_format": {"type": "json_object", **({} if wanted is None else {"json_schema": wanted})}}


def _thinking(conversation: Conversation, refuse: Refuse) -> _Member:
    budget = reasoning_budget(conversation, refuse)
    if budget:
        return {"thinking": {"type": "enabled", "token_budget": budget}}
    return {} if budget is None else {"thinking": {"type": "disabled"}}


COHERE = Dialect(name="cohere", write=_write, turns=("messages",))
