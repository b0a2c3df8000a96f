"""OpenAI Responses: https://platform.openai.com/docs/api-reference/responses/create.

The first words of the system are the instructions. Nothing is stored (`store` is false), so reasoning is sent back as
the encrypted text that the provider gave for it; other reasoning is left out, as in `chat_completions`. A budget of
tokens for reasoning is an effort. Marks of what to cache are left out.
"""

from collections.abc import Iterable, Iterator
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
    ToolChoice,
    Turn,
)
from opensearch_ml_stream.connectors.conversation.dialect import OPENAI_RESPONSES, Dialect, Refuse, TokenCounting
from opensearch_ml_stream.connectors.conversation.dialects.chat_completions import (
    answer_schema,
    audio_format,
    data_url,
    document_text,
    effort_of_budget,
)
from opensearch_ml_stream.connectors.conversation.dialects.openai_as_sent import choose_all

_JSON = dict[str, Any]

_OPTIONS = {
    "max_tokens": "max_output_tokens",
    **{name: name for name in ("temperature", "top_p", "top_logprobs", "user", "metadata", "service_tier")},
}
_ELSEWHERE = frozenset({"logprobs", "reasoning_effort", "reasoning_tokens", "reasoning_summary", "verbosity"})
_DEFAULTS: JSONObject = {"n": 1, "modalities": ["text"]}


def _write(conversation: Conversation, refuse: Refuse) -> _JSON:
    """Return the body of a conversation."""
    for member in conversation.unknown:
        refuse(member)
    for name, value in conversation.options.items():
        if name not in _OPTIONS and name not in _ELSEWHERE and value != _DEFAULTS.get(name):
            refuse(conversation.member(name))
    instructions, turns = _split(conversation.turns)
    items = _Items(conversation.members.get("turns", "messages"), refuse)
    return {
        **({"instructions": instructions} if instructions else {}),
        "input": [item for turn in turns for item in items.write(turn)],
        "store": False,
        **_write_tools(conversation),
        **_write_options(conversation.options),
        **_write_text(conversation),
    }


def _split(turns: tuple[Turn, ...]) -> tuple[str, tuple[Turn, ...]]:
    """Return the instructions, which are the first turn if it is the system's, and the other turns."""
    if not turns or turns[0].role != "system" or turns[0].name:
        return "", turns
    texts = [part.text for part in turns[0].parts if isinstance(part, Text)]
    return ("\n".join(texts), turns[1:]) if len(texts) == len(turns[0].parts) else ("", turns)


def _write_options(options: JSONObject) -> _JSON:
    body = {own: options[name] for name, own in _OPTIONS.items() if name in options}
    if options.get("logprobs"):
        body["include"] = ["message.output_text.logprobs"]
    effort = options.get("reasoning_effort")
    if effort is None and "reasoning_tokens" in options:
        effort = effort_of_budget(options["reasoning_tokens"])
    reasoning = {"effort": effort, "summary": options.get("reasoning_summary")}
    if asked := {name: value for name, value in reasoning.items() if value is not None}:
        body["reasoning"] = asked
    return body


def _write_text(conversation: Conversation) -> _JSON:
    text: _JSON = {}
    answer_format = conversation.answer_format
    if answer_format is not None:
        is_schema = answer_format.kind == "schema"
        text["format"] = (
            {"type": "json_schema", **answer_schema(answer_format)} if is_schema else {"type": "json_object"}
        )
    if "verbosity" in conversation.options:
        text["verbosity"] = conversation.options["verbosity"]
    return {"text": text} if text else {}


def _write_tools(conversation: Conversation) -> _JSON:
    if not conversation.tools:
        return {}
    body: _JSON = {"tools": [_write_tool(tool) for tool in conversation.tools]}
    if conversation.tool_choice is not None:
        body["tool_choice"] = _write_choice(conversation.tool_choice)
    if conversation.parallel_tool_calls is not None:
        body["parallel_tool_calls"] = conversation.parallel_tool_calls
    return body


def _write_tool(tool: Tool) -> _JSON:
    """Return a tool. Without `strict` it would be strict here, though nowhere else."""
    return {
        "type": "function",
        "name": tool.name,
        **({"description": tool.description} if tool.description else {}),
        "parameters": tool.schema,
        "strict": bool(tool.strict),
    }


def _write_choice(choice: ToolChoice) -> str | _JSON:
    return {"type": "function", "name": choice.name} if choice.mode == "named" else choice.mode


class _Items:
    """Writes turns as items of input."""

    def __init__(self, place: str, refuse: Refuse) -> None:
        self._place = place  # what the client calls the list of messages
        self._refuse = refuse

    def write(self, turn: Turn) -> Iterator[_JSON]:
        """Yield the items of a turn; its texts and media between two items of another kind are one message."""
        if turn.name:
            self._refuse(f"{self._place}.name")
        said: list[Part] = []
        for part in turn.parts:
            if isinstance(part, (Text, Media)):
                said.append(part)
                continue
            yield from self._message(turn, said)
            said = []
            if isinstance(part, Call):
                yield _write_call(part)
            elif isinstance(part, Result):
                yield self._result(part)
            elif part.encrypted:
                yield _write_reasoning(part)
        yield from self._message(turn, said)

    def _message(self, turn: Turn, said: list[Part]) -> Iterator[_JSON]:
        if said and (content := self._content(said, turn.role)):
            yield {"type": "message", "role": turn.role, "content": content}

    def _result(self, result: Result) -> _JSON:
        parts = result.parts
        if result.is_error:
            first = parts[0].text if parts and isinstance(parts[0], Text) else None
            parts = (Text(f"Error: {first or ''}"), *(parts if first is None else parts[1:]))
        return {"type": "function_call_output", "call_id": result.id, "output": self._content(parts, "user")}

    def _content(self, parts: Iterable[Part], role: str) -> str | list[_JSON]:
        written = [one for part in parts if (one := self._part(part, role)) is not None]
        if len(written) <= 1 and all("text" in part for part in written):
            return written[0]["text"] if written else ""
        return written

    def _part(self, part: Part, role: str) -> _JSON | None:
        text = "output_text" if role == "assistant" else "input_text"
        if isinstance(part, Text):
            return {"type": text, "text": part.text}
        if not isinstance(part, Media):
            return None
        if part.text:
            return {"type": text, "text": document_text(part)}
        written = None if role == "assistant" else _write_medium(part)
        if written is None:
            self._refuse(f"{self._place}.{part.kind}")
        return written


def _write_medium(media: Media) -> _JSON | None:
    """Return the part of a medium, None where it cannot be said."""
    if media.kind == "audio":
        sound = {"data": media.data, "format": audio_format(media)}
        return {"type": "input_audio", "input_audio": sound} if media.data else None
    if media.kind == "image":
        detail = {"detail": media.detail} if media.detail else {}
        if media.file_id:
            return {"type": "input_image", "file_id": media.file_id, **detail}
        return {"type": "input_image", "image_url": media.url or data_url(media, "image/png"), **detail}
    if media.file_id:
        return {"type": "input_file", "file_id": media.file_id}
    if media.url:
        return {"type": "input_file", "file_url": media.url}
    return {"type": "input_file", "filename": media.name or "file", "file_data": data_url(media, "application/pdf")}


def _write_call(call: Call) -> _JSON:
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments or "{}"}


def _write_reasoning(reasoning: Reasoning) -> _JSON:
    summary = [{"type": "summary_text", "text": reasoning.text}] if reasoning.text else []
    return {"type": "reasoning", "summary": summary, "encrypted_content": reasoning.encrypted}


# What is counted: https://platform.openai.com/docs/api-reference/responses/input-tokens takes no more.
_COUNTED = frozenset({
    "model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "text", "truncation",
    "personality",
})  # fmt: skip


def _counted(body: JSONObject, path: str) -> JSONObject:
    return {name: body[name] for name in body if name in _COUNTED}


DIALECT = Dialect(
    OPENAI_RESPONSES,
    _write,
    turns=("instructions", "input"),
    as_sent=lambda wants_usage: choose_all,
    counting=TokenCounting("/responses", "/responses/input_tokens", _counted),
)
"""Of OpenAI, and of servers that offer the same."""
