"""Ollama's own chat: https://github.com/ollama/ollama/blob/main/docs/api.md#generate-a-chat-completion.

A message is one text, with its images beside it: texts in a row are joined by a line break. An earlier answer's
reasoning goes back as `thinking`, unless it has a signature: Ollama gives none, so that such reasoning is another
model's, and is left out as a by-product. The text of a failed tool's result says so. An effort
of reasoning is the nearest that Ollama has. `cache_control`, a hint for prices, is left out.
"""

from collections.abc import Iterable
from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import Call, Conversation, Media, Part, Result, Turn
from opensearch_ml_stream.connectors.conversation.dialect import Dialect, Refuse
from opensearch_ml_stream.connectors.conversation.dialects.alternating_turns import refuse_names, refuse_part
from opensearch_ml_stream.connectors.conversation.dialects.functions import (
    callable_tools,
    refuse_forced_calls,
    refuse_one_at_a_time,
    refuse_strict,
    write_function,
)
from opensearch_ml_stream.connectors.conversation.dialects.written_options import reasoning_effort, write_options
from opensearch_ml_stream.connectors.conversation.dialects.written_parts import (
    SYSTEM_ROLES,
    arguments,
    messages_of,
    reasoning_text,
    refuse_details,
    result_text,
    schema,
    texts,
    tool_names,
)

_OPTIONS = {
    "max_tokens": "num_predict",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "stop": "stop",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
_WRITTEN_HERE = ("reasoning_effort", "reasoning_tokens", "reasoning_summary")  # thinking is given where there is any
_EFFORTS: dict[str, bool | str] = {
    "none": False,
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "high",
}

_Member = dict[str, Any]


def _write(conversation: Conversation, refuse: Refuse) -> _Member:
    refuse_names(conversation, refuse)
    refuse_details(conversation, refuse)
    body: _Member = {"messages": _messages(conversation, refuse)}
    if options := write_options(conversation, refuse, _OPTIONS, besides=_WRITTEN_HERE):
        body["options"] = options
    for refusal in (refuse_one_at_a_time, refuse_strict, refuse_forced_calls):
        refusal(conversation, refuse)
    if tools := callable_tools(conversation):
        body["tools"] = [write_function(tool) for tool in tools]
    if conversation.answer_format is not None:
        wanted = schema(conversation.answer_format)
        body["format"] = "json" if wanted is None else wanted
    return {**body, **_think(conversation, refuse)}


def _messages(conversation: Conversation, refuse: Refuse) -> list[_Member]:
    names = tool_names(conversation)
    return [
        _result(said, names, conversation, refuse)
        if isinstance(said, Result)
        else _message(turn, said, conversation, refuse)
        for turn in conversation.turns
        for said in messages_of(turn)
    ]


def _message(turn: Turn, parts: tuple[Part, ...], conversation: Conversation, refuse: Refuse) -> _Member:
    said, images = _split(parts, conversation, refuse)
    message: _Member = {
        "role": "system" if turn.role in SYSTEM_ROLES else turn.role,
        "content": "\n".join(texts(said, conversation, refuse)),
        **images,
    }
    if turn.role == "assistant" and (thought := reasoning_text(parts)):
        message["thinking"] = thought
    if calls := [part for part in parts if isinstance(part, Call)]:
        message["tool_calls"] = [_call(call, conversation, refuse) for call in calls]
    return message


def _result(result: Result, names: dict[str, str], conversation: Conversation, refuse: Refuse) -> _Member:
    said, images = _split(result.parts, conversation, refuse)
    plain = Result(result.id, tuple(said), is_error=result.is_error)
    name = result.name or names.get(result.id)
    return {
        "role": "tool",
        "content": result_text(plain, conversation, refuse),
        "tool_call_id": result.id,
        **({"tool_name": name} if name else {}),
        **images,
    }


def _split(parts: Iterable[Any], conversation: Conversation, refuse: Refuse) -> tuple[list[Any], _Member]:
    """Return the parts without images, and the images as a member."""
    said, images = [], []
    for part in parts:
        if not isinstance(part, Media) or part.kind != "image":
            said.append(part)
        elif part.data:
            images.append(part.data)
        else:
            refuse_part(conversation, refuse, "image", "Ollama takes images by their data, not by a URL")
    return said, {"images": images} if images else {}


def _call(call: Call, conversation: Conversation, refuse: Refuse) -> _Member:
    return {"id": call.id, "function": {"name": call.name, "arguments": arguments(call, conversation, refuse)}}


def _think(conversation: Conversation, refuse: Refuse) -> _Member:
    effort = reasoning_effort(conversation)
    if effort in _EFFORTS:
        return {"think": _EFFORTS[effort]}
    if effort is not None:
        refuse(conversation.member("reasoning_effort"), f"known are {', '.join(_EFFORTS)}")
    return {}


OLLAMA = Dialect(name="ollama", write=_write, turns=("messages",), defaults={"stream": False})  # it streams unasked
