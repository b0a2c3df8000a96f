"""What dialects share in writing a conversation: turns, parts, tools, options, refusals of what a provider lacks."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

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
    Turn,
)
from opensearch_ml_stream.connectors.conversation.dialect import Refuse
from opensearch_ml_stream.connectors.conversation.dialects.chat_completions import effort_of_budget
from opensearch_ml_stream.connectors.syntax import provider_json

Speaker = Literal["system", "user", "assistant"]

# Values of options that ask for nothing: what providers do without them.
_SAYS_NOTHING: dict[str, tuple[object, ...]] = {
    "n": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "min_p": (0,),
    "logit_bias": ({},),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "metadata": ({},),
    "modalities": (["text"],),
    "verbosity": ("medium",),
    "service_tier": ("auto", "default"),
    "stop": ([],),
    "reasoning_effort": ("none",),
    "reasoning_tokens": (0,),
    "reasoning_summary": (False, "none", "omitted"),
}


@dataclass(frozen=True, slots=True)
class Message:
    """What one speaker says until another does; `system` stands for a developer too."""

    speaker: Speaker
    parts: tuple[Part, ...]


def to_messages(turns: Iterable[Turn]) -> list[Message]:
    """Return the turns with those of one speaker that follow one another as one; a user's results come first."""
    return [
        Message(speaker, _results_first(tuple([part for turn in group for part in turn.parts])))
        for speaker, group in groupby(turns, _speaker)
    ]


def refuse_part(conversation: Conversation, refuse: Refuse, what: str, why: str) -> None:
    """Refuse what is in a message: a kind of part, or a member of one."""
    refuse(f"{conversation.member('turns')}.{what}", why)


def refuse_names(conversation: Conversation, refuse: Refuse) -> None:
    """Refuse the names of speakers, where the provider has none."""
    if any(turn.name for turn in conversation.turns):
        refuse_part(conversation, refuse, "name", "the provider takes no names of speakers")


def refuse_rest(conversation: Conversation, refuse: Refuse, takes: Container[str]) -> None:
    """Refuse what the client asks for that the provider has no member for: options but those it takes, and unknown."""
    for name, value in conversation.options.items():
        if name not in takes and value not in _SAYS_NOTHING.get(name, ()):
            refuse(conversation.member(name), "the provider has no such option")
    for path in conversation.unknown:
        refuse(path, "the provider has another API than the client, and this member is not known here")


def _speaker(turn: Turn) -> Speaker:
    return "system" if turn.role == "developer" else turn.role


def _results_first(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return parts if len(parts) == 1 else tuple(sorted(parts, key=lambda part: not isinstance(part, Result)))


REASONING_OPTIONS = ("reasoning_effort", "reasoning_tokens", "reasoning_summary")
"""Options that a dialect writes in its provider's own form; where there is reasoning, providers send it unasked."""

SYSTEM_ROLES = ("system", "developer")

_TYPES_BY_ENDING = {
    "gif": "image/gif",
    "heic": "image/heic",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
    "flac": "audio/flac",
    "mp3": "audio/mpeg",
    "ogg": "audio/ogg",
    "wav": "audio/wav",
    "pdf": "application/pdf",
    "txt": "text/plain",
}


def refuse_details(conversation: Conversation, refuse: Refuse) -> None:
    """Refuse the wished resolution of images, for a provider that has no choice of it."""
    parts = (part for turn in conversation.turns for part in turn.parts)
    if any(isinstance(part, Media) and part.detail not in ("", "auto") for part in parts):
        refuse_part(conversation, refuse, "detail", "the provider has no choice of the resolution of an image")


def system_texts(conversation: Conversation, refuse: Refuse) -> list[str]:
    """Return the texts of all system turns, for a provider that takes them in one place, before the conversation."""
    turns = [turn for turn in conversation.turns if turn.role in SYSTEM_ROLES]
    return [text for turn in turns for text in texts(turn.parts, conversation, refuse)]


def texts(parts: Iterable[Part], conversation: Conversation, refuse: Refuse) -> list[str]:
    """Return the texts of parts, those of documents of plain text with them; refuse what is no text."""
    found = []
    for part in parts:
        if isinstance(part, Text) or (isinstance(part, Media) and part.text):
            found.append(part.text)
        elif isinstance(part, Media):
            refuse_part(conversation, refuse, part.kind, "the provider takes text alone here")
    return found


def tool_names(conversation: Conversation) -> dict[str, str]:
    """Return the names of the tools by the ids of their calls."""
    parts = (part for turn in conversation.turns for part in turn.parts)
    return {part.id: part.name for part in parts if isinstance(part, Call)}


def parse_arguments(call: Call) -> JSONObject | None:
    """Return the arguments of a call, {} for an empty text, None if they are no JSON object."""
    try:
        read: Any = provider_json.loads(call.arguments.encode() or b"{}")
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


def arguments(call: Call, conversation: Conversation, refuse: Refuse) -> JSONObject:
    """Return the arguments of a call as the object that they are; refuse what is none."""
    if (read := parse_arguments(call)) is not None:
        return read
    refuse_part(conversation, refuse, "arguments", "the arguments of a tool call must be a JSON object")
    return {}


def result_text(result: Result, conversation: Conversation, refuse: Refuse) -> str:
    """Return the text of a result, for a provider that must be told of a failure in it."""
    text = "\n".join(texts(result.parts, conversation, refuse))
    return f"Error: {text}" if result.is_error else text


def messages_of(turn: Turn) -> Iterator[Result | tuple[Part, ...]]:
    """Yield the results of a turn, and what stands between them, for a provider whose results are messages."""
    for is_result, parts in groupby(turn.parts, lambda part: isinstance(part, Result)):
        if is_result:
            yield from (part for part in parts if isinstance(part, Result))
        else:
            yield tuple(parts)


def reasoning_text(parts: Iterable[Part]) -> str:
    """Return the reasoning of an answer as far as it has no proof: one with a proof is another provider's."""
    return "".join(part.text for part in parts if isinstance(part, Reasoning) and not part.signature)


def media_type(media: Media) -> str:
    """Return the type of a medium, by the end of its URL where it is not said; "" where it is not known."""
    path = media.url.partition("?")[0].partition("#")[0]
    return media.media_type or _TYPES_BY_ENDING.get(path.rpartition(".")[2].lower(), "")


def data_url(media: Media) -> str:
    """Return the URL of a medium, one that holds its data where it came with them; "" where neither makes one."""
    if not media.data:
        return media.url
    return f"data:{media.media_type};base64,{media.data}" if media.media_type else ""


def schema(answer_format: AnswerFormat) -> JSONObject | None:
    """Return the schema of the answer, with the format's description where the schema has none."""
    if answer_format.schema is None or not answer_format.description:
        return answer_format.schema
    return {"description": answer_format.description, **answer_format.schema}


def write_function(tool: Tool) -> dict[str, Any]:
    """Return a tool. One without parameters takes an empty object."""
    described = {"description": tool.description} if tool.description else {}
    return {"type": "function", "function": {"name": tool.name, **described, "parameters": tool.schema}}


def write_call(call: Call) -> dict[str, Any]:
    """Return a call of an earlier answer."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}}


Content = Callable[[tuple[Part, ...], Conversation, Refuse], str | list[dict[str, Any]]]
"""Writes what stands between the results of a turn as the content of a message."""


def write_messages(
    conversation: Conversation, refuse: Refuse, content: Content, names: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return the messages of a conversation, each result as one of its own; `names` are as of `write_result`.

    Developers speak as the system, and reasoning is left out.
    """
    messages: list[dict[str, Any]] = []
    for turn in conversation.turns:
        for said in messages_of(turn):
            if isinstance(said, Result):
                messages.append(write_result(said, conversation, refuse, names))
                continue
            role = "system" if turn.role in SYSTEM_ROLES else turn.role
            messages.append({"role": role, "content": content(said, conversation, refuse)})
            if calls := [write_call(part) for part in said if isinstance(part, Call)]:
                messages[-1]["tool_calls"] = calls
    return messages


def write_result(
    result: Result, conversation: Conversation, refuse: Refuse, names: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the message of a result; `names` are those of tools, by the ids of calls, None where it has none."""
    name = None if names is None else result.name or names.get(result.id)
    named = {"name": name} if name else {}
    content = result_text(result, conversation, refuse)
    return {"role": "tool", "tool_call_id": result.id, **named, "content": content}


def callable_tools(conversation: Conversation) -> tuple[Tool, ...]:
    """Return the tools that may be called: none where none is to be, for a provider that cannot be told so."""
    choice = conversation.tool_choice
    return () if choice is not None and choice.mode == "none" else conversation.tools


def refuse_one_at_a_time(conversation: Conversation, refuse: Refuse) -> None:
    """Refuse the wish for no more than one call in an answer."""
    if conversation.tools and conversation.parallel_tool_calls is False:
        refuse(conversation.member("parallel_tool_calls"), "the provider decides how many tools it calls at once")


def refuse_strict(conversation: Conversation, refuse: Refuse) -> None:
    """Refuse the wish for arguments that keep to the schema in any case."""
    if any(tool.strict for tool in conversation.tools):
        refuse(f"{conversation.member('tools')}.strict", "the provider does not hold arguments to their schema")


def refuse_forced_calls(conversation: Conversation, refuse: Refuse) -> None:
    """Refuse the wish for a call in any case."""
    choice = conversation.tool_choice
    if choice is not None and choice.mode in ("required", "named"):
        refuse(conversation.member("tool_choice"), "the provider cannot be made to call a tool")


_BUDGETS = {"none": 0, "minimal": 512, "low": 1024, "medium": 2048, "high": 4096, "xhigh": 8192}


def wants_summary(summary: Any) -> bool:
    """Tell whether the option `reasoning_summary` asks to see the reasoning."""
    return summary not in (None, False, "none", "omitted")


def reasoning_effort(conversation: Conversation) -> str | None:
    """Return the effort of reasoning, a budget of tokens as what it is about, for a provider without budgets."""
    effort: str | None = conversation.options.get("reasoning_effort")
    budget: int | None = conversation.options.get("reasoning_tokens")
    if effort is None and budget is not None:
        return effort_of_budget(budget)
    return effort


def reasoning_budget(conversation: Conversation, refuse: Refuse, budgets: Mapping[str, int] = _BUDGETS) -> int | None:
    """Return the tokens for reasoning, an effort as what it is about by `budgets`, for a provider without efforts."""
    effort: str | None = conversation.options.get("reasoning_effort")
    budget: int | None = conversation.options.get("reasoning_tokens")
    if budget is None and effort is not None:
        if effort not in budgets:
            refuse(conversation.member("reasoning_effort"), f"known are {', '.join(budgets)}")
        return budgets.get(effort)
    return budget


def write_options(
    conversation: Conversation, refuse: Refuse, names: Mapping[str, str], besides: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the options under the provider's `names`; refuse others, but those `besides` that the caller writes."""
    refuse_rest(conversation, refuse, {*names, *besides})
    return {names[name]: value for name, value in conversation.options.items() if name in names}
