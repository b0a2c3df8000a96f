"""Cloudflare Workers AI's own form, `/ai/run/MODEL`: https://developers.cloudflare.com/workers-ai/models.

The messages are OpenAI's as far as they go; what is written is what the models' schemas have in common. A tool that is
named cannot be forced, so that a choice other than `auto` and `none` is refused. An earlier answer's reasoning is left
out: no schema has a place for it. The text of a failed tool's result says so. `cache_control`, a hint for
prices, is left out.
"""

from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import Call, Conversation, Media, Part, Result, Text
from opensearch_ml_stream.connectors.conversation.dialect import Dialect, Refuse
from opensearch_ml_stream.connectors.conversation.dialects.alternating_turns import refuse_names
from opensearch_ml_stream.connectors.conversation.dialects.functions import (
    callable_tools,
    refuse_forced_calls,
    refuse_one_at_a_time,
    refuse_strict,
    write_call,
    write_function,
)
from opensearch_ml_stream.connectors.conversation.dialects.written_options import write_options
from opensearch_ml_stream.connectors.conversation.dialects.written_parts import (
    SYSTEM_ROLES,
    data_url,
    messages_of,
    refuse_details,
    result_text,
    schema,
    texts,
    tool_names,
)

_SAME_NAMES = ("max_tokens", "temperature", "top_p", "top_k", "seed", "presence_penalty", "frequency_penalty")
_OPTIONS = {name: name for name in _SAME_NAMES}

_Member = dict[str, Any]


def _write(conversation: Conversation, refuse: Refuse) -> _Member:
    refuse_names(conversation, refuse)
    refuse_details(conversation, refuse)
    body = {"messages": _messages(conversation, refuse), **write_options(conversation, refuse, _OPTIONS)}
    for refusal in (refuse_one_at_a_time, refuse_strict, refuse_forced_calls):
        refusal(conversation, refuse)
    if tools := callable_tools(conversation):
        body["tools"] = [write_function(tool) for tool in tools]
    return {**body, **_answer_format(conversation, refuse)}


def _messages(conversation: Conversation, refuse: Refuse) -> list[_Member]:
    names = tool_names(conversation)
    messages: list[_Member] = []
    for turn in conversation.turns:
        for said in messages_of(turn):
            if isinstance(said, Result):
                name = said.name or names.get(said.id)
                named = {"name": name} if name else {}
                content = result_text(said, conversation, refuse)
                messages.append({"role": "tool", "tool_call_id": said.id, **named, "content": content})
                continue
            role = "system" if turn.role in SYSTEM_ROLES else turn.role
            messages.append({"role": role, "content": _content(said, conversation, refuse)})
            if calls := [write_call(part) for part in said if isinstance(part, Call)]:
                messages[-1]["tool_calls"] = calls
    return messages


def _content(parts: tuple[Part, ...], conversation: Conversation, refuse: Refuse) -> str | list[_Member]:
    content: list[_Member] = []
    for part in parts:
        if isinstance(part, Media) and part.kind == "image" and data_url(part):
            content.append({"type": "image_url", "image_url": {"url": data_url(part)}})
        elif isinstance(part, Text | Media):
            content += [{"type": "text", "text": text} for text in texts([part], conversation, refuse)]
    is_plain = all(part["type"] == "text" for part in content)
    return "\n".join(part["text"] for part in content) if is_plain else content


def _answer_format(conversation: Conversation, refuse: Refuse) -> _Member:
    asked = conversation.answer_format
    if asked is None:
        return {}
    if asked.strict:
        refuse(conversation.member("answer_format"), "the provider does not hold answers to their schema")
    wanted = schema(asked)
    if wanted is None:
        return {"response_format": {"type": "json_object"}}
    return {"response_format": {"type": "json_schema", "json_schema": wanted}}


WORKERS_AI = Dialect(name="workers_ai", write=_write, turns=("messages",), instead_of={"messages": ("prompt",)})
