"""OpenAI chat completions: https://platform.openai.com/docs/api-reference/chat/create. What differs is a `Variant`.

What is changed on the way, beside names:

- results of tools are messages of their own, right after the message with their calls; images in them, which such a
  message cannot hold, begin the user's message after it; of an error that a tool reports, the text says so;
- a document of plain text is a text;
- a budget of tokens for reasoning is an effort, where the provider has no budgets.

What is left out, since it is no word of the conversation: reasoning of earlier answers, unless the provider takes it
back (other than as text, it is of use to the provider alone that made it); marks of what to cache, unless the provider
takes them; the wish for a summary of the reasoning, which is shown or not whatever is asked.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from opensearch_ml_stream.connectors.conversation.conversation import (
    AnswerFormat,
    Call,
    Conversation,
    JSONObject,
    Media,
    Part,
    Reasoning,
    Result,
    Text,
    Tool,
    ToolChoice,
    Turn,
)
from opensearch_ml_stream.connectors.conversation.dialect import OPENAI_CHAT, Dialect, Refuse
from opensearch_ml_stream.connectors.conversation.dialects.openai_as_sent import ChooseChoices

_Message = dict[str, Any]
_JSON = dict[str, Any]

_SAME_OPTIONS = frozenset({
    "temperature", "top_p", "top_k", "min_p", "stop", "seed", "presence_penalty", "frequency_penalty", "logit_bias",
    "logprobs", "top_logprobs", "n", "reasoning_effort", "verbosity", "user", "metadata", "service_tier", "modalities",
    "audio",
})  # fmt: skip

# What is said of a member of a request is said by the name of the neutral form (`Conversation.member`).
_NEUTRAL = {"max_completion_tokens": "max_tokens", "response_format": "answer_format"}

# Values that ask for nothing.
_DEFAULTS: JSONObject = {
    "n": 1, "logprobs": False, "modalities": ["text"], "tool_choice": "auto", "parallel_tool_calls": True,
    "logit_bias": {}, "metadata": {}, "service_tier": "auto", "min_p": 0, "top_logprobs": 0, "verbosity": "medium",
}  # fmt: skip

_EFFORTS = ((4096, "high"), (2048, "medium"), (1024, "low"), (1, "minimal"))
_EFFORT_OF_NONE = "none"

_ANSWER_KINDS = {"json_object": "json", "json_schema": "schema"}

_AUDIO_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav", "x-flac": "flac"}


def effort_of_budget(tokens: int) -> str:
    """Return the effort of reasoning that a budget of tokens stands for."""
    return next((effort for least, effort in _EFFORTS if tokens >= least), _EFFORT_OF_NONE)


def _write_effort(tokens: int) -> _JSON:
    return {"reasoning_effort": effort_of_budget(tokens)}


def _as_it_is(part: _JSON) -> _JSON:
    return part


def _no_edit(body: _JSON) -> None:
    """Change nothing."""


@dataclass(frozen=True, slots=True)
class Variant:
    """How a provider's chat completions differ from what most take.

    `max_tokens` is its member for the limit of the answer. `renamed` are members that it calls otherwise, `refused`
    those that it does not take; both are changed in what an OpenAI client sends as well. `takes_developer` says whether
    it knows that role, None that it is passed as an OpenAI client sends it and written as `system`; `takes_names`
    whether messages may have names.

    `media` are the kinds that it takes, `takes_file_urls` whether files may be URLs. `has_text_parts` says that all
    messages may have texts in parts; of others the texts of a message without media are joined. `takes_cache` says that
    such parts may be marked for the cache. `reasoning` is the member of a message that takes reasoning back,
    `budget` writes a budget of tokens for it. `answer_kinds` are the formats of answers that it knows. `part` and
    `edit` make the last changes to a part of a message and to the body.
    """

    max_tokens: str = "max_tokens"
    renamed: Mapping[str, str] = field(default_factory=dict)
    refused: frozenset[str] = frozenset()
    takes_developer: bool | None = None
    takes_names: bool = True
    media: frozenset[str] = frozenset({"image", "audio", "file"})
    takes_file_urls: bool = False
    has_text_parts: bool = False
    takes_cache: bool = False
    reasoning: str = ""
    budget: Callable[[int], _JSON] = _write_effort
    answer_kinds: frozenset[str] = frozenset({"json", "schema"})
    part: Callable[[_JSON], _JSON] = _as_it_is
    edit: Callable[[_JSON], None] = _no_edit


def chat_dialect(variant: Variant) -> Dialect:
    """Return the dialect of a provider of chat completions."""
    return Dialect(
        OPENAI_CHAT,
        partial(_write, variant),
        turns=("messages",),
        adapt=partial(_adapt, variant),
        instead_of={
            "max_tokens": ("max_completion_tokens",),
            "max_completion_tokens": ("max_tokens",),
            **{new: (old,) for old, new in variant.renamed.items() if new != "max_tokens"},
        },
        as_sent=ChooseChoices,
    )


def _write(variant: Variant, conversation: Conversation, refuse: Refuse) -> _JSON:
    """Return the body of a conversation."""

    def refuse_member(member: str, why: str = "") -> None:
        refuse(conversation.member(_NEUTRAL.get(member, member)), why)

    for member in conversation.unknown:
        refuse(member)
    body: _JSON = {
        "messages": _Messages(variant, conversation.members.get("turns", "messages"), refuse).write(conversation.turns),
        **_write_tools(conversation),
        **_write_options(variant, conversation.options),
    }
    if conversation.answer_format is not None:
        body["response_format"] = write_answer_format(conversation.answer_format)
    return _fit(variant, body, refuse_member)


def _adapt(variant: Variant, body: _JSON, refuse: Refuse) -> _JSON:
    """Return the body of a client that speaks the dialect as the provider takes it."""
    if variant.takes_developer is False or not variant.takes_names or variant.part is not _as_it_is:
        messages = body.get("messages")
        if isinstance(messages, list):  # what is wrong in them is for the provider to say
            body["messages"] = [
                _adapt_message(variant, message, refuse) if isinstance(message, dict) else message
                for message in messages
            ]
    return _fit(variant, body, refuse)


def _adapt_message(variant: Variant, message: _JSON, refuse: Refuse) -> _JSON:
    message = dict(message)
    if variant.takes_developer is False and message.get("role") == "developer":
        message["role"] = "system"
    if not variant.takes_names and message.get("role") != "tool" and message.get("name"):
        refuse("messages.name")
        del message["name"]
    content = message.get("content")
    if isinstance(content, list):
        message["content"] = [variant.part(part) if isinstance(part, dict) else part for part in content]
    return message


def _fit(variant: Variant, body: _JSON, refuse: Refuse) -> _JSON:
    """Refuse or rename the members that the provider does not take."""
    for member in variant.refused & body.keys():
        if body[member] is not None and body[member] != _DEFAULTS.get(member):
            refuse(member)
        del body[member]
    wanted = body.get("response_format")
    if isinstance(wanted, dict):
        for name, kind in _ANSWER_KINDS.items():
            if wanted.get("type") == name and kind not in variant.answer_kinds:
                refuse("response_format", f"the model does not take [{name}]")
                del body["response_format"]
    for old, new in variant.renamed.items():
        if old in body:
            value = body.pop(old)
            body.setdefault(new, value)
    variant.edit(body)
    return body


def _write_options(variant: Variant, options: JSONObject) -> _JSON:
    body = {name: value for name, value in options.items() if name in _SAME_OPTIONS}
    if "max_tokens" in options:
        body[variant.max_tokens] = options["max_tokens"]
    if "reasoning_tokens" in options and "reasoning_effort" not in options:
        body |= variant.budget(options["reasoning_tokens"])
    return body


def _write_tools(conversation: Conversation) -> _JSON:
    """Return what is said of tools; a choice among none says nothing, and is refused by most."""
    if not conversation.tools:
        return {}
    body: _JSON = {"tools": [{"type": "function", "function": _write_tool(tool)} for tool in conversation.tools]}
    if conversation.tool_choice is not None:
        body["tool_choice"] = _write_choice(conversation.tool_choice)
    if conversation.parallel_tool_calls is not None:
        body["parallel_tool_calls"] = conversation.parallel_tool_calls
    return body


def _write_tool(tool: Tool) -> _JSON:
    return {
        "name": tool.name,
        **({"description": tool.description} if tool.description else {}),
        "parameters": tool.schema,
        **({} if tool.strict is None else {"strict": tool.strict}),
    }


def _write_choice(choice: ToolChoice) -> str | _JSON:
    return {"type": "function", "function": {"name": choice.name}} if choice.mode == "named" else choice.mode


def write_answer_format(answer_format: AnswerFormat) -> _JSON:
    """Return the `response_format` of a format."""
    if answer_format.kind == "json":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": answer_schema(answer_format)}


def answer_schema(answer_format: AnswerFormat) -> _JSON:
    """Return the schema of an answer with its name, which is required."""
    return {
        "name": answer_format.name or "answer",
        **({"description": answer_format.description} if answer_format.description else {}),
        "schema": answer_format.schema or {},
        **({} if answer_format.strict is None else {"strict": answer_format.strict}),
    }


def data_url(media: Media, media_type: str) -> str:
    """Return the data of a medium as a URL; `media_type` is what it is taken for where that is not known."""
    return f"data:{media.media_type or media_type};base64,{media.data}"


def audio_format(media: Media) -> str:
    """Return OpenAI's word for the format of a sound."""
    word = media.media_type.partition("/")[2].partition(";")[0].lower()
    return _AUDIO_FORMATS.get(word, word) or "wav"


def document_text(media: Media) -> str:
    """Return the text of a document of plain text, its name before it."""
    return f"{media.name}:\n{media.text}" if media.name else media.text


class _Messages:
    """The messages of one conversation. A group is a message and the results of the tools that it calls."""

    def __init__(self, variant: Variant, place: str, refuse: Refuse) -> None:
        self._variant = variant
        self._place = place  # what the client calls the list of messages
        self._refuse = refuse
        self._groups: list[list[_Message]] = []
        self._group_of: dict[str, list[_Message]] = {}  # by ids of calls

    def write(self, turns: Iterable[Turn]) -> list[_Message]:
        """Return the messages of all turns."""
        for turn in join_calls(turns):
            if turn.role == "assistant":
                self._append_answer(turn)
            else:
                self._append(turn)
        return [message for group in self._groups for message in group]

    def _append(self, turn: Turn) -> None:
        parts: Sequence[Part] = turn.parts
        if results := [part for part in parts if isinstance(part, Result)]:
            media = [part for result in results for part in result.parts if isinstance(part, Media)]
            for result in results:
                self._append_result(result)
            parts = [*media, *(part for part in parts if not isinstance(part, Result))]
        if parts or not results:
            is_developer = turn.role == "developer" and self._variant.takes_developer
            role = "system" if turn.role == "developer" and not is_developer else turn.role
            self._groups.append([{"role": role, **self._name(turn), "content": self._content(parts)}])

    def _append_result(self, result: Result) -> None:
        texts = [part for part in result.parts if isinstance(part, Text)]
        if result.is_error:
            texts = [Text("Error: " + (texts[0].text if texts else "")), *texts[1:]]
        message = {"role": "tool", "tool_call_id": result.id, "content": self._content(texts)}
        group = self._group_of.get(result.id)
        if group is None:
            self._groups.append([message])
        else:
            group.append(message)

    def _append_answer(self, turn: Turn) -> None:
        sounds = [part for part in turn.parts if isinstance(part, Media) and part.kind == "audio" and part.file_id]
        calls = [part for part in turn.parts if isinstance(part, Call)]
        said = [part for part in turn.parts if not isinstance(part, (Call, Reasoning)) and part not in sounds]
        message: _Message = {"role": "assistant", **self._name(turn)}
        message["content"] = self._content(said) if said or not (calls or sounds) else None
        reasoning = "".join(part.text for part in turn.parts if isinstance(part, Reasoning))
        if self._variant.reasoning and reasoning:
            message[self._variant.reasoning] = reasoning
        if sounds:
            message["audio"] = {"id": sounds[-1].file_id}
        if calls:
            message["tool_calls"] = [_write_call(call) for call in calls]
        group = [message]
        self._groups.append(group)
        self._group_of |= {call.id: group for call in calls}

    def _name(self, turn: Turn) -> _Message:
        if turn.name and not self._variant.takes_names:
            self._refuse(f"{self._place}.name")
            return {}
        return {"name": turn.name} if turn.name else {}

    def _content(self, parts: Sequence[Part]) -> str | list[_JSON]:
        if len(parts) == 1 and isinstance(text := parts[0], Text) and text.cache is None:
            return text.text
        written = [one for part in parts if (one := self._part(part)) is not None]
        is_text = all(part.keys() == {"type", "text"} for part in written)
        if is_text and (len(written) <= 1 or not self._variant.has_text_parts):
            return "\n".join(part["text"] for part in written)
        return [self._variant.part(part) for part in written]

    def _part(self, part: Part) -> _JSON | None:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text, **self._cache(part.cache)}
        if not isinstance(part, Media):
            return None
        if part.text:
            return {"type": "text", "text": document_text(part), **self._cache(part.cache)}
        written = self._medium(part) if part.kind in self._variant.media else None
        if written is None:
            self._refuse(f"{self._place}.{part.kind}", _HOW[part.kind] if part.kind in self._variant.media else "")
        return None if written is None else {**written, **self._cache(part.cache)}

    def _medium(self, media: Media) -> _JSON | None:
        """Return the part of a medium, None where it cannot be sent."""
        if media.kind == "image" and (media.url or media.data):
            detail = {"detail": media.detail} if media.detail else {}
            return {"type": "image_url", "image_url": {"url": media.url or data_url(media, "image/png"), **detail}}
        if media.kind == "audio" and media.data:
            return {"type": "input_audio", "input_audio": {"data": media.data, "format": audio_format(media)}}
        if media.kind == "file" and media.file_id:
            return {"type": "file", "file": {"file_id": media.file_id}}
        if media.kind == "file" and (media.data or self._variant.takes_file_urls):
            data = data_url(media, "application/pdf") if media.data else media.url
            return {"type": "file", "file": {"filename": media.name or "file", "file_data": data}}
        return None

    def _cache(self, cache: JSONObject | None) -> _JSON:
        return {"cache_control": cache} if cache is not None and self._variant.takes_cache else {}


_HOW = {
    "image": "it takes images as data and URLs",
    "audio": "it takes sounds as data",
    "file": "it takes files as data and ids",
}


def _write_call(call: Call) -> _JSON:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}


def join_calls(turns: Iterable[Turn]) -> list[Turn]:
    """Return the turns, those of the assistant that follow one another as one where one of them calls a tool."""
    joined: list[Turn] = []
    for turn in turns:
        last = joined[-1] if joined else None
        if last is not None and last.role == turn.role == "assistant" and (_calls(last) or _calls(turn)):
            joined[-1] = Turn("assistant", (*last.parts, *turn.parts), last.name or turn.name)
        else:
            joined.append(turn)
    return joined


def _calls(turn: Turn) -> bool:
    return any(isinstance(part, Call) for part in turn.parts)


COMPATIBLE = chat_dialect(Variant())
"""Of the many servers that take chat completions, where no more is known."""
