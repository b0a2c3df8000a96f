"""Cloudflare Workers AI, `/ai/run/MODEL`: server-sent events in the form of the model, told by the first of them.

A request has OpenAI's messages, as far as the schemas of the models agree
(https://developers.cloudflare.com/workers-ai/models). No tool can be forced, so that a `tool_choice` other than `auto`
and `none` is refused. Reasoning of an earlier answer is left out: no schema has a place for it. The text of a failed
tool's result says that it failed. `cache_control`, a hint for prices, is left out.
"""

from collections.abc import Iterable
from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import Conversation, Media, Part, Text
from opensearch_ml_stream.connectors.conversation.dialect import Dialect, Refuse
from opensearch_ml_stream.connectors.conversation.dialects.shared_writing import (
    callable_tools,
    data_url,
    refuse_details,
    refuse_forced_calls,
    refuse_names,
    refuse_one_at_a_time,
    refuse_strict,
    schema,
    texts,
    tool_names,
    write_function,
    write_messages,
    write_options,
)
from opensearch_ml_stream.connectors.decoding.event_fields import mapping
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.provider import Interface, JSONObject, Provider, WholeResponse
from opensearch_ml_stream.connectors.providers.detected_dialect import DetectedDialect
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT, WHOLE_CHAT
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

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


DIALECT = Dialect(name="workers_ai", write=_write, turns=("messages",), instead_of={"messages": ("prompt",)})


WORKERS_AI = StreamSpec(
    name="cloudflare/ai/run",
    enable=Enable(body={"stream": True}),
    framing=SSEFraming,
    reader=DetectedDialect,
)


def _to_events(response: JSONObject) -> Iterable[JSONObject]:
    """Return the result in Cloudflare's envelope, in its own form or in OpenAI's."""
    result = response["result"]
    return WHOLE_CHAT.to_events(result) if "choices" in result else [{"finish_reason": "stop", **result}]


_WHOLE = WholeResponse(lambda response: "success" in response and bool(mapping(response.get("result"))), _to_events)

PROVIDER = Provider(
    interfaces=(
        Interface((WORKERS_AI.name,), WORKERS_AI, (r"/ai/run/@.+\?",), _WHOLE, dialect=DIALECT),
        Interface(("cloudflare/v1/chat/completions",), OPENAI_CHAT),
    ),
    trusted_endpoints=(r"^https://api\.cloudflare\.com/client/v4/accounts/[a-z0-9]+/ai/.*$",),
)
