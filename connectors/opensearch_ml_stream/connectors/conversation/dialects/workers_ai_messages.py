"""Cloudflare Workers AI's own form, `/ai/run/MODEL`: https://developers.cloudflare.com/workers-ai/models.

The messages are OpenAI's as far as they go; what is written is what the models' schemas have in common. A tool that is
named cannot be forced, so that a choice other than `auto` and `none` is refused. An earlier answer's reasoning is left
out: no schema has a place for it. The text of a failed tool's result says so. `cache_control`, a hint for
prices, is left out.
"""

from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import Conversation, Media, Part, Text
from opensearch_ml_stream.connectors.conversation.dialect import Dialect, Refuse
from opensearch_ml_stream.connectors.conversation.dialects.alternating_turns import refuse_names
from opensearch_ml_stream.connectors.conversation.dialects.functions import (
    callable_tools,
    refuse_forced_calls,
    refuse_one_at_a_time,
    refuse_strict,
    write_function,
    write_messages,
)
from opensearch_ml_stream.connectors.conversation.dialects.written_options import write_options
from opensearch_ml_stream.connectors.conversation.dialects.written_parts import (
    data_url,
    refuse_details,
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
    messages = write_messages(conversation, refuse, _content, tool_names(conversation))
    body = {"messages": messages, **write_options(conversation, refuse, _OPTIONS)}
    for refusal in (refuse_one_at_a_time, refuse_strict, refuse_forced_calls):
        refusal(conversation, refuse)
    if tools := callable_tools(conversation):
        body["tools"] = [write_function(tool) for tool in tools]
    return {**body, **_answer_format(conversation, refuse)}


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
