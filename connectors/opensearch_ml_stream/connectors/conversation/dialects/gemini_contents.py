"""Gemini's `generateContent`, at Google AI and Vertex AI: https://ai.google.dev/api/generate-content.

System turns all go to `systemInstruction`, wherever they stand. The results of a turn's calls must be in one content:
contents of one role in a row are joined. `toolConfig` in the mode VALIDATED holds arguments to their schema.

Of earlier reasoning goes back what has a signature (https://ai.google.dev/gemini-api/docs/thought-signatures): with the
call that follows it, else with the text before it, where Gemini put it. Reasoning without one is left out, as a
by-product of an earlier answer. Gemini 3 refuses the first call of an answer without a signature; its documentation has
the value SKIP_VALIDATION for calls whose signature is lost, or which another model made. Earlier models ignore it.

An effort of reasoning is a budget, by the table of https://ai.google.dev/gemini-api/docs/openai: `thinkingLevel` would
be refused by the models before Gemini 3, and a budget is taken by all. The names of files and `cache_control`, a hint
for prices, are left out: Gemini caches by itself.
"""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import (
    Call,
    Conversation,
    JSONObject,
    Media,
    Part,
    Reasoning,
    Result,
    Text,
    Tool,
    Turn,
)
from opensearch_ml_stream.connectors.conversation.dialect import Dialect, Refuse, TokenCounting
from opensearch_ml_stream.connectors.conversation.dialects.shared_writing import (
    REASONING_OPTIONS,
    SYSTEM_ROLES,
    arguments,
    media_type,
    reasoning_budget,
    refuse_names,
    refuse_one_at_a_time,
    refuse_part,
    schema,
    system_texts,
    texts,
    tool_names,
    wants_summary,
    write_options,
)

SKIP_VALIDATION = "skip_thought_signature_validator"

_OPTIONS = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "stop": "stopSequences",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576, "xhigh": 24576}
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY", "named": "ANY"}
_SERVICE_TIERS = ("flex", "priority", "standard")
_RESOLUTIONS = {"low": "MEDIA_RESOLUTION_LOW", "high": "MEDIA_RESOLUTION_HIGH"}

_Member = dict[str, Any]


def service_tier(conversation: Conversation, refuse: Refuse) -> str | None:
    """Return the tier of service, None for the one that is Google's own choice."""
    tier: Any = conversation.options.get("service_tier")
    if tier in (*_SERVICE_TIERS, None):
        return None if tier is None else str(tier)
    if tier not in ("auto", "default"):
        refuse(conversation.member("service_tier"), f"Gemini takes {', '.join(_SERVICE_TIERS)}")
    return None


def _write(conversation: Conversation, refuse: Refuse) -> _Member:
    refuse_names(conversation, refuse)
    body: _Member = {"contents": _contents(conversation, refuse)}
    if system := system_texts(conversation, refuse):
        body["systemInstruction"] = {"parts": [{"text": text} for text in system]}
    if conversation.tools:
        body["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in conversation.tools]}]
        body |= _tool_config(conversation)
        refuse_one_at_a_time(conversation, refuse)
    config = {
        **write_options(conversation, refuse, _OPTIONS, besides=(*REASONING_OPTIONS, "service_tier")),
        **_answer_format(conversation),
        **_thinking(conversation, refuse),
        **_resolution(conversation, refuse),
    }
    if config:
        body["generationConfig"] = config
    if tier := service_tier(conversation, refuse):
        body["serviceTier"] = tier
    return body


def _contents(conversation: Conversation, refuse: Refuse) -> list[_Member]:
    contents: list[_Member] = []
    names = tool_names(conversation)
    for turn in conversation.turns:
        if turn.role in SYSTEM_ROLES:
            continue
        role = "model" if turn.role == "assistant" else "user"
        parts = _model_parts(turn, conversation, refuse) if role == "model" else []
        if role == "user":
            parts = [written for part in turn.parts for written in _user_part(part, names, conversation, refuse)]
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        elif parts:
            contents.append({"role": role, "parts": parts})
    return contents


def _user_part(part: Part, names: dict[str, str], conversation: Conversation, refuse: Refuse) -> Iterator[_Member]:
    if isinstance(part, Text):
        yield {"text": part.text}
    elif isinstance(part, Media):
        yield from _media(part, conversation, refuse)
    elif isinstance(part, Result):
        yield from _result(part, names, conversation, refuse)


def _model_parts(turn: Turn, conversation: Conversation, refuse: Refuse) -> list[_Member]:
    """Return the parts of an answer, its signatures at the parts to which they belong."""
    parts: list[_Member] = []
    signature = ""  # for the call that comes next
    has_call = False
    for part, next_part in zip_longest(turn.parts, turn.parts[1:]):
        if isinstance(part, Reasoning) and part.signature:
            thought: list[_Member] = [{"text": part.text, "thought": True}] if part.text else []
            if isinstance(next_part, Call):
                signature = part.signature
                parts += thought
            else:
                parts += thought or ([] if parts and _takes_signature(parts[-1]) else [{"text": ""}])
                parts[-1]["thoughtSignature"] = part.signature
        elif isinstance(part, Text):
            parts.append({"text": part.text})
        elif isinstance(part, Media):
            parts += _media(part, conversation, refuse)
        elif isinstance(part, Call):
            signature = signature or ("" if has_call else SKIP_VALIDATION)
            proof = {"thoughtSignature": signature} if signature else {}
            parts.append({"functionCall": _call(part, conversation, refuse), **proof})
            signature, has_call = "", True
    return parts


def _takes_signature(part: _Member) -> bool:
    return "text" in part and "thoughtSignature" not in part


def _call(call: Call, conversation: Conversation, refuse: Refuse) -> _Member:
    return {"id": call.id, "name": call.name, "args": arguments(call, conversation, refuse)}


def _result(result: Result, names: dict[str, str], conversation: Conversation, refuse: Refuse) -> Iterator[_Member]:
    name = result.name or names.get(result.id)
    if not name:
        refuse_part(conversation, refuse, "tool_name", "the result of a tool whose call is not in the conversation")
        return
    media = [part for part in result.parts if isinstance(part, Media) and not part.text]
    text = "\n".join(texts([part for part in result.parts if part not in media], conversation, refuse))
    response: _Member = {"id": result.id, "name": name, "response": {"error" if result.is_error else "output": text}}
    if parts := [written for medium in media for written in _media(medium, conversation, refuse)]:
        response["parts"] = parts
    yield {"functionResponse": response}


def _media(media: Media, conversation: Conversation, refuse: Refuse) -> Iterator[_Member]:
    """Yield the part of a medium. A file's id is taken if it is the URI that Gemini gave the file."""
    kind = media_type(media)
    uri = media.url or (media.file_id if "://" in media.file_id else "")
    if media.text:
        yield {"text": media.text}
    elif media.data and kind:
        yield {"inlineData": {"mimeType": kind, "data": media.data}}
    elif uri:
        yield {"fileData": {**({"mimeType": kind} if kind else {}), "fileUri": uri}}
    else:
        why = "data without a media type" if media.data else "a file is named by the URI that Gemini has for it"
        refuse_part(conversation, refuse, media.kind, why)


def _declaration(tool: Tool) -> _Member:
    described = {"description": tool.description} if tool.description else {}
    schema = {} if tool.parameters is None else {"parametersJsonSchema": tool.parameters}
    return {"name": tool.name, **described, **schema}


def _tool_config(conversation: Conversation) -> _Member:
    choice = conversation.tool_choice
    mode = None if choice is None else _MODES[choice.mode]
    if mode in (None, "AUTO") and any(tool.strict for tool in conversation.tools):
        mode = "VALIDATED"
    if mode is None:
        return {}
    names = {"allowedFunctionNames": [choice.name]} if choice is not None and choice.mode == "named" else {}
    return {"toolConfig": {"functionCallingConfig": {"mode": mode, **names}}}


def _answer_format(conversation: Conversation) -> _Member:
    asked = conversation.answer_format
    if asked is None:
        return {}
    wanted = schema(asked)
    return {"responseMimeType": "application/json", **({} if wanted is None else {"responseJsonSchema": wanted})}


def _thinking(conversation: Conversation, refuse: Refuse) -> _Member:
    options, config = conversation.options, {}
    budget = reasoning_budget(conversation, refuse, _BUDGETS)
    if budget is not None:
        config["thinkingBudget"] = budget
    if wants_summary(options.get("reasoning_summary", bool(options.get("reasoning_tokens")))):
        config["includeThoughts"] = True
    return {"thinkingConfig": config} if config else {}


def _resolution(conversation: Conversation, refuse: Refuse) -> _Member:
    """Return the resolution of all images: Gemini has one for a request."""
    parts = (part for turn in conversation.turns for part in turn.parts)
    details = {part.detail or "auto" for part in parts if isinstance(part, Media) and part.kind == "image"}
    if details <= {"auto"}:
        return {}
    if len(details) > 1 or not details <= _RESOLUTIONS.keys():
        refuse_part(conversation, refuse, "detail", "Gemini takes one of low and high for all images")
        return {}
    return {"mediaResolution": _RESOLUTIONS[details.pop()]}


_WITHOUT_STREAM = ":generateContent"


def _counted(body: JSONObject, path: str) -> JSONObject:
    """Return what is counted: Vertex AI takes the request itself, Gemini's API within an object and with its model."""
    if "/publishers/" in path:
        return {name: body[name] for name in ("contents", "systemInstruction", "tools") if name in body}
    model = path.rpartition("/")[2].removesuffix(_WITHOUT_STREAM)
    return {"generateContentRequest": {"model": f"models/{model}", **body}}


GEMINI = Dialect(
    name="gemini",
    write=_write,
    turns=("contents", "systemInstruction"),
    instead_of={
        "systemInstruction": ("system_instruction",),
        "toolConfig": ("tool_config",),
        "generationConfig.thinkingConfig.thinkingBudget": ("generationConfig.thinkingConfig.thinkingLevel",),
        "generationConfig.responseJsonSchema": ("generationConfig.responseSchema",),
    },
    counting=TokenCounting(_WITHOUT_STREAM, ":countTokens", _counted, "totalTokens", frozenset({400, 403})),
)
