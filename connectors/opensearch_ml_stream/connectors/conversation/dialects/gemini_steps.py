"""Gemini's Interactions API: https://ai.google.dev/gemini-api/docs/interactions.

Its `input` are steps: what the user says, an answer's output and its calls, their results. System turns all go to
`system_instruction`. The conversation comes whole with every request, and Google need not keep it: `store` is false.

An earlier answer's reasoning goes back as the thought that it was, if it has its signature; without one it is left
out, as a by-product. No value is documented here that would stand for the signature of a call that has none. A budget
of tokens for reasoning is an effort, `minimal` the least: thinking cannot be turned off. The names of files and
`cache_control`, a hint for prices, are left out.
"""

from collections.abc import Iterator
from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import (
    Call,
    Conversation,
    Media,
    Part,
    Reasoning,
    Result,
    Text,
    Turn,
)
from opensearch_ml_stream.connectors.conversation.dialect import Dialect, Refuse
from opensearch_ml_stream.connectors.conversation.dialects.alternating_turns import refuse_names, refuse_part
from opensearch_ml_stream.connectors.conversation.dialects.functions import refuse_one_at_a_time
from opensearch_ml_stream.connectors.conversation.dialects.gemini_contents import service_tier
from opensearch_ml_stream.connectors.conversation.dialects.written_options import (
    reasoning_effort,
    wants_summary,
    write_options,
)
from opensearch_ml_stream.connectors.conversation.dialects.written_parts import (
    SYSTEM_ROLES,
    arguments,
    media_type,
    schema,
    system_texts,
    tool_names,
)

_OPTIONS = {
    "max_tokens": "max_output_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop": "stop_sequences",
    "seed": "seed",
}
_WRITTEN_HERE = ("reasoning_effort", "reasoning_tokens", "reasoning_summary", "service_tier")
_LEVELS = {"none": "minimal", **{level: level for level in ("minimal", "low", "medium", "high", "xhigh")}}
_MODES = {"auto": "auto", "none": "none", "required": "any", "named": "any"}
_TYPES = {"image": "image", "audio": "audio", "file": "document"}

_Member = dict[str, Any]


def _write(conversation: Conversation, refuse: Refuse) -> _Member:
    refuse_names(conversation, refuse)
    names = tool_names(conversation)
    turns = [turn for turn in conversation.turns if turn.role not in SYSTEM_ROLES]
    body: _Member = {"input": [step for turn in turns for step in _steps(turn, names, conversation, refuse)]}
    if system := system_texts(conversation, refuse):
        body["system_instruction"] = "\n\n".join(system)
    config = {
        **write_options(conversation, refuse, _OPTIONS, besides=_WRITTEN_HERE),
        **_thinking(conversation, refuse),
        **_tool_choice(conversation),
    }
    if conversation.tools:
        body["tools"] = [_tool(tool.name, tool.description, tool.parameters) for tool in conversation.tools]
        refuse_one_at_a_time(conversation, refuse)
    if config:
        body["generation_config"] = config
    if tier := service_tier(conversation, refuse):
        body["service_tier"] = tier
    return {**body, **_answer_format(conversation), "store": False}


def _steps(turn: Turn, names: dict[str, str], conversation: Conversation, refuse: Refuse) -> Iterator[_Member]:
    """Yield the steps of a turn; texts and media in a row are one."""
    said: list[_Member] = []
    kind = "model_output" if turn.role == "assistant" else "user_input"
    for part in turn.parts:
        if isinstance(part, Text | Media):
            said += _content(part, conversation, refuse)
            continue
        if said:
            yield {"type": kind, "content": said}
            said = []
        yield from _step(part, names, conversation, refuse)
    if said:
        yield {"type": kind, "content": said}


def _step(
    part: Reasoning | Call | Result, names: dict[str, str], conversation: Conversation, refuse: Refuse
) -> Iterator[_Member]:
    if isinstance(part, Call):
        given = arguments(part, conversation, refuse)
        yield {"type": "function_call", "id": part.id, "name": part.name, "arguments": given}
    elif isinstance(part, Result):
        yield _result(part, names, conversation, refuse)
    elif part.signature:
        summary = {"summary": [{"type": "text", "text": part.text}]} if part.text else {}
        yield {"type": "thought", "signature": part.signature, **summary}


def _result(result: Result, names: dict[str, str], conversation: Conversation, refuse: Refuse) -> _Member:
    content = [written for part in result.parts for written in _content(part, conversation, refuse)]
    plain = all(part["type"] == "text" for part in content)
    name = result.name or names.get(result.id)
    return {
        "type": "function_result",
        "call_id": result.id,
        **({"name": name} if name else {}),
        "result": "\n".join(part["text"] for part in content) if plain else content,
        **({"is_error": True} if result.is_error else {}),
    }


def _content(part: Part, conversation: Conversation, refuse: Refuse) -> Iterator[_Member]:
    if isinstance(part, Text):
        yield {"type": "text", "text": part.text}
    elif isinstance(part, Media):
        yield from _media(part, conversation, refuse)


def _media(media: Media, conversation: Conversation, refuse: Refuse) -> Iterator[_Member]:
    """Yield the content of a medium. A file's id is taken if it is the URI that Gemini gave the file."""
    uri = media.url or (media.file_id if "://" in media.file_id else "")
    kind = media_type(media)
    typed = {"mime_type": kind} if kind else {}
    resolution = {"resolution": media.detail} if media.detail in ("low", "high") else {}
    if media.text:
        yield {"type": "text", "text": media.text}
    elif media.data and kind:
        yield {"type": _TYPES[media.kind], "data": media.data, **typed, **resolution}
    elif uri:
        yield {"type": _TYPES[media.kind], "uri": uri, **typed, **resolution}
    else:
        why = "data without a media type" if media.data else "a file is named by the URI that Gemini has for it"
        refuse_part(conversation, refuse, media.kind, why)


def _tool(name: str, description: str, parameters: Any) -> _Member:
    described = {"description": description} if description else {}
    return {"type": "function", "name": name, **described, **({} if parameters is None else {"parameters": parameters})}


def _tool_choice(conversation: Conversation) -> _Member:
    choice = conversation.tool_choice
    if not conversation.tools:
        return {}
    if choice is not None and choice.mode == "named":
        return {"tool_choice": {"allowed_tools": {"mode": "any", "tools": [choice.name]}}}
    mode = None if choice is None else _MODES[choice.mode]
    if mode in (None, "auto") and any(tool.strict for tool in conversation.tools):
        mode = "validated"
    return {} if mode is None else {"tool_choice": mode}


def _thinking(conversation: Conversation, refuse: Refuse) -> _Member:
    options, config = conversation.options, {}
    effort = reasoning_effort(conversation)
    if effort in _LEVELS:
        config["thinking_level"] = _LEVELS[effort]
    elif effort is not None:
        refuse(conversation.member("reasoning_effort"), f"known are {', '.join(_LEVELS)}")
    if "reasoning_summary" in options or options.get("reasoning_tokens"):
        config["thinking_summaries"] = "auto" if wants_summary(options.get("reasoning_summary", True)) else "none"
    return config


def _answer_format(conversation: Conversation) -> _Member:
    asked = conversation.answer_format
    if asked is None:
        return {}
    wanted = schema(asked)
    given = {} if wanted is None else {"schema": wanted}
    return {"response_format": {"type": "text", "mime_type": "application/json", **given}}


GEMINI_INTERACTIONS = Dialect(
    name="gemini_interactions",
    write=_write,
    turns=("input", "system_instruction"),
    instead_of={"response_format": ("response_mime_type",)},
)
