"""Bodies of `POST /v1/messages`: https://docs.claude.com/en/api/messages.

Tools that Anthropic runs itself, their blocks, and members without a counterpart in a conversation are unknown: a
provider with Anthropic's dialect gets them as they were sent, for any other they are refused. `context_management`
says what Anthropic should forget of a long conversation, and Claude Code always sends it. It is left out: the model
gets the whole conversation.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
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
    Role,
    Text,
    Tool,
    ToolChoice,
    Turn,
)
from opensearch_ml_stream.connectors.syntax.jsontext import to_json
from opensearch_ml_stream.extensions.anthropic_api.protocol.errors import ThreadUnsupported
from opensearch_ml_stream.extensions.anthropic_api.protocol.request_members import Members, wrong

_MEMBERS = {
    "turns": "messages",
    "stop": "stop_sequences",
    "user": "metadata.user_id",
    "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
    "answer_format": "output_config.format",
    "reasoning_effort": "output_config.effort",
    "reasoning_tokens": "thinking.budget_tokens",
    "reasoning_summary": "thinking.display",
}
"""Anthropic's names of what has another name in the neutral form."""

_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_TOOL_CHOICES: Mapping[str, ToolChoice] = {
    "auto": ToolChoice("auto"),
    "any": ToolChoice("required"),
    "none": ToolChoice("none"),
}
_SAMPLING = frozenset({"temperature", "top_p", "top_k", "stop_sequences", "metadata", "service_tier"})
_OUTPUT = frozenset({"thinking", "output_config", "output_format"})
_TOOLS = frozenset({"tools", "tool_choice"})
_EFFORTS = {"low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh", "max": "xhigh"}
_SERVICE_TIERS = {"auto": "auto", "standard_only": "default"}


class ContentBlocks:
    """Reads content blocks in the order of the messages: a result gets the name of its call.

    Blocks of Anthropic's own tools, and members without a counterpart in a part, are unknown.
    """

    def __init__(self, unknown: dict[str, Any]) -> None:
        self._unknown = unknown
        self._names: dict[str, str] = {}  # of the tools that were called, by the ids of the calls
        self._readers: dict[str, Callable[[Members], tuple[Part, ...]]] = {
            "text": self._text,
            "image": self._image,
            "document": self._document,
            "thinking": self._thinking,
            "redacted_thinking": self._redacted_thinking,
            "tool_use": self._call,
            "tool_result": self._result,
        }

    def read(self, content: Any, path: str) -> tuple[Part, ...]:
        """Return the parts of a content: a text, or a list of blocks."""
        if isinstance(content, str):
            return (Text(content),)
        if not isinstance(content, list):
            raise wrong(path, "Input should be a string or a list of content blocks")
        return tuple(part for place, block in enumerate(content) for part in self._block(block, f"{path}.{place}"))

    def _block(self, value: Any, path: str) -> tuple[Part, ...]:
        block = Members(value, path)
        kind = block.required_text("type")
        reader = self._readers.get(kind)
        if reader is None:
            self._unknown[path] = value
            return ()
        parts = reader(block)
        block.leave(self._unknown)
        return parts

    def _text(self, block: Members) -> tuple[Part, ...]:
        return (Text(block.required_text("text"), block.object("cache_control")),)

    def _image(self, block: Members) -> tuple[Part, ...]:
        return (self._media(block, Media("image", cache=block.object("cache_control"))),)

    def _document(self, block: Members) -> tuple[Part, ...]:
        name, cache = block.text("title"), block.object("cache_control")
        citations = block.object("citations")
        if citations is not None and citations.get("enabled"):
            self._unknown[block.path_of("citations")] = citations
        document = Media("file", name=name, cache=cache)
        source = block.object("source")
        if source is None or source.get("type") != "content":
            return (self._media(block, document, source),)
        members = Members(source, block.path_of("source"))
        members.take("type")
        inner = self._texts_and_media(members.take("content"), members.path_of("content"))
        members.leave(self._unknown)
        texts = [part.text for part in inner if isinstance(part, Text)]
        if len(texts) == len(inner):
            return (replace(document, media_type="text/plain", text="\n".join(texts)),)
        title = (Text(name),) if name else ()
        return (*title, *inner[:-1], replace(inner[-1], cache=cache or inner[-1].cache))

    def _media(self, block: Members, media: Media, source_value: Any = None) -> Media:
        """Return the image or document with what its source holds."""
        source = Members(block.required("source") if source_value is None else source_value, block.path_of("source"))
        kind = source.required_text("type")
        if kind == "base64":
            media = replace(media, media_type=source.required_text("media_type"), data=source.required_text("data"))
        elif kind == "url":
            media_type = "application/pdf" if media.kind == "file" else ""
            media = replace(media, media_type=media_type, url=source.required_text("url"))
        elif kind == "file":
            media = replace(media, file_id=source.required_text("file_id"))
        elif kind == "text" and media.kind == "file":
            source.take("media_type")  # there is only one
            media = replace(media, media_type="text/plain", text=source.required_text("data"))
        else:
            raise wrong(source.path_of("type"), f"Input should be a type of source that {media.kind}s have")
        source.leave(self._unknown)
        return media

    def _thinking(self, block: Members) -> tuple[Part, ...]:
        return (Reasoning(block.text("thinking"), block.text("signature")),)

    def _redacted_thinking(self, block: Members) -> tuple[Part, ...]:
        return (Reasoning(encrypted=block.required_text("data")),)

    def _call(self, block: Members) -> tuple[Part, ...]:
        id, name = block.required_text("id"), block.required_text("name")
        self._names[id] = name
        if block.object("caller") not in (None, {"type": "direct"}):
            self._unknown[block.path_of("caller")] = True
        arguments = to_json(block.object("input") or {}).decode()
        return (Call(id, name, arguments, block.object("cache_control")),)

    def _result(self, block: Members) -> tuple[Part, ...]:
        id = block.required_text("tool_use_id")
        content = block.take("content")
        parts = () if content is None else self._texts_and_media(content, block.path_of("content"))
        is_error, cache = bool(block.flag("is_error")), block.object("cache_control")
        return (Result(id, parts, self._names.get(id, ""), is_error, cache),)

    def _texts_and_media(self, content: Any, path: str) -> tuple[Text | Media, ...]:
        parts = self.read(content, path)
        found = tuple(part for part in parts if isinstance(part, Text | Media))
        if len(found) != len(parts):
            raise wrong(path, "Input should be texts, images and documents")
        return found


def read_conversation(body: JSONObject) -> Conversation:
    """Return the conversation of a request's body. InvalidRequest names the member that is wrong."""
    conversation = read_counted_conversation(body)
    if "max_tokens" not in conversation.options:
        raise wrong("max_tokens", "Field required")
    return conversation


def read_counted_conversation(body: JSONObject) -> Conversation:
    """Return the conversation whose tokens are counted; it needs no limit for the answer."""
    members, unknown = Members(body), dict[str, Any]()
    turns = _turns(members, ContentBlocks(unknown), unknown)
    options: dict[str, Any] = {"max_tokens": members.integer("max_tokens")}
    if members.has_any(_SAMPLING):
        options |= _sampling(members, unknown)
    choice = parallel = answer_format = None
    if members.has_any(_OUTPUT):
        thinking = _thinking(members.members("thinking"), unknown)
        effort, answer_format = _output_config(members, unknown)
        options |= {**thinking, "reasoning_effort": effort}
    tools: tuple[Tool, ...] = ()
    if members.has_any(_TOOLS):
        choice, parallel = _tool_choice(members.members("tool_choice"), unknown)
        tools = tuple(_tools(members.elements("tools"), unknown))
    cache = members.object("cache_control")
    forgetting = members.object("context_management") or {}
    if members.take("thread") is not None:
        raise ThreadUnsupported
    members.leave(unknown)
    return Conversation(
        turns=_with_cache(turns, cache),
        tools=tools,
        tool_choice=choice,
        parallel_tool_calls=parallel,
        answer_format=answer_format,
        options={name: value for name, value in options.items() if value is not None},
        unknown=unknown,
        members=_MEMBERS,
        left_out=("context_management",) if forgetting.get("edits") else (),
    )


def _sampling(members: Members, unknown: dict[str, Any]) -> dict[str, Any]:
    return {
        "temperature": members.number("temperature"),
        "top_p": members.number("top_p"),
        "top_k": members.integer("top_k"),
        "stop": _stop(members),
        "user": _user(members.members("metadata"), unknown),
        "service_tier": _service_tier(members),
    }


def _turns(members: Members, content: ContentBlocks, unknown: dict[str, Any]) -> tuple[Turn, ...]:
    system = members.take("system")
    turns = [Turn("system", content.read(system, "system"))] if system else []
    if not (messages := list(members.elements("messages"))):
        raise wrong("messages", "at least one message is required")
    return (*turns, *(_turn(Members(value, path), content, unknown) for path, value in messages))


def _turn(message: Members, content: ContentBlocks, unknown: dict[str, Any]) -> Turn:
    name = message.required_text("role")
    role = _ROLES.get(name)
    if role is None:
        raise wrong(message.path_of("role"), "Input should be 'user', 'assistant' or 'system'")
    turn = Turn(role, content.read(message.required("content"), message.path_of("content")))
    message.leave(unknown)
    return turn


def _with_cache(turns: tuple[Turn, ...], cache: JSONObject | None) -> tuple[Turn, ...]:
    """Return the turns with the `cache_control` of the whole request at the last part that may have one."""
    if cache is None:
        return turns
    for turn_place in reversed(range(len(turns))):
        turn = turns[turn_place]
        for place in reversed(range(len(turn.parts))):
            part = turn.parts[place]
            if not isinstance(part, Reasoning):
                marked = replace(part, cache=part.cache or cache)
                turn = replace(turn, parts=(*turn.parts[:place], marked, *turn.parts[place + 1 :]))
                return (*turns[:turn_place], turn, *turns[turn_place + 1 :])
    return turns


def _tools(values: Iterable[tuple[str, Any]], unknown: dict[str, Any]) -> Iterable[Tool]:
    for path, value in values:
        tool = Members(value, path)
        if tool.text("type") not in ("", "custom"):
            unknown[path] = value
            continue
        if tool.take("allowed_callers") not in (None, ["direct"]):
            unknown[tool.path_of("allowed_callers")] = value["allowed_callers"]
        tool.take("eager_input_streaming")  # the provider decides how its stream is cut
        yield Tool(
            tool.required_text("name"),
            tool.text("description"),
            tool.object("input_schema"),
            tool.flag("strict"),
            tool.object("cache_control"),
        )
        tool.leave(unknown)


def _tool_choice(choice: Members | None, unknown: dict[str, Any]) -> tuple[ToolChoice | None, bool | None]:
    """Return which tools to call, and whether several at once."""
    if choice is None:
        return None, None
    kind, disabled = choice.required_text("type"), choice.flag("disable_parallel_tool_use")
    found = ToolChoice("named", choice.required_text("name")) if kind == "tool" else _TOOL_CHOICES.get(kind)
    if found is None:
        raise wrong(choice.path_of("type"), "Input should be 'auto', 'any', 'tool' or 'none'")
    choice.leave(unknown)
    return found, None if disabled is None else not disabled


def _thinking(thinking: Members | None, unknown: dict[str, Any]) -> dict[str, Any]:
    """Return the options of reasoning. With adaptive thinking the model decides, guided by `effort`."""
    if thinking is None:
        return {}
    kind = thinking.required_text("type")
    options: dict[str, Any] = {}
    if kind == "enabled":
        options["reasoning_tokens"] = thinking.integer("budget_tokens")
        if options["reasoning_tokens"] is None:
            raise wrong(thinking.path_of("budget_tokens"), "Field required")
    elif kind == "disabled":
        options["reasoning_tokens"] = 0
    elif kind != "adaptive":
        unknown[thinking.path_of("type")] = kind
    display = thinking.text("display")
    if display == "summarized":
        options["reasoning_summary"] = "auto"
    elif display not in ("", "omitted"):
        raise wrong(thinking.path_of("display"), "Input should be 'summarized' or 'omitted'")
    thinking.leave(unknown)
    return options


def _output_config(members: Members, unknown: dict[str, Any]) -> tuple[str | None, AnswerFormat | None]:
    """Return the effort and the format of the answer; the format was called `output_format` before."""
    answer = members.members("output_format")
    if (config := members.members("output_config")) is None:
        return None, _answer_format(answer, unknown)
    effort = config.text("effort")
    if effort and effort not in _EFFORTS:
        raise wrong(config.path_of("effort"), f"Input should be one of {', '.join(_EFFORTS)}")
    answer = config.members("format") or answer
    config.leave(unknown)
    return _EFFORTS.get(effort), _answer_format(answer, unknown)


def _answer_format(answer: Members | None, unknown: dict[str, Any]) -> AnswerFormat | None:
    if answer is None:
        return None
    if answer.required_text("type") != "json_schema":
        raise wrong(answer.path_of("type"), "Input should be 'json_schema'")
    schema = answer.object("schema")
    if schema is None:
        raise wrong(answer.path_of("schema"), "Field required")
    answer.leave(unknown)
    return AnswerFormat("schema", schema=schema)


def _stop(members: Members) -> list[str] | None:
    sequences = list(members.elements("stop_sequences"))
    for path, value in sequences:
        if not isinstance(value, str):
            raise wrong(path, "Input should be a valid string")
    return [value for _, value in sequences] or None


def _user(metadata: Members | None, unknown: dict[str, Any]) -> str | None:
    if metadata is None:
        return None
    user = metadata.text("user_id")
    metadata.leave(unknown)
    return user or None


def _service_tier(members: Members) -> str | None:
    tier = members.text("service_tier")
    if tier and tier not in _SERVICE_TIERS:
        raise wrong("service_tier", f"Input should be one of {', '.join(_SERVICE_TIERS)}")
    return _SERVICE_TIERS.get(tier)
