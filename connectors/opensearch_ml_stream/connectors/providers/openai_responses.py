"""OpenAI Responses API: https://platform.openai.com/docs/api-reference/responses-streaming.

`response.completed`, `.incomplete` or `.failed` ends the stream and holds the usage. There is no `[DONE]`. Every call
that asks the client to act is a tool call; those that OpenAI runs itself (search, code, containers) are not. Servers
send what the output holds as deltas, in events that something is done, and whole at the end, and some leave out one of
these. What the deltas did not bring is taken from what comes later, and nothing is taken twice.

In a request (https://platform.openai.com/docs/api-reference/responses/create) the system's first words are the
`instructions`. `store` is false, so reasoning is sent back as the encrypted text that the provider gave for it; other
reasoning is left out, as in `chat_completions`. A budget of reasoning tokens becomes an effort. Cache marks are left
out.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
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
from opensearch_ml_stream.connectors.conversation.dialect import OPENAI_RESPONSES as DIALECT_NAME
from opensearch_ml_stream.connectors.conversation.dialect import Dialect, Refuse, TokenCounting
from opensearch_ml_stream.connectors.conversation.dialects.chat_completions import (
    answer_schema,
    audio_format,
    data_url,
    document_text,
    effort_of_budget,
)
from opensearch_ml_stream.connectors.conversation.dialects.openai_as_sent import choose_all
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import Interface, Provider, WholeResponse
from opensearch_ml_stream.connectors.provider_errors import read_error
from opensearch_ml_stream.connectors.providers.accumulated_text import AccumulatedText
from opensearch_ml_stream.connectors.providers.openai_output_items import OutputItem, OutputItems, match
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

MAX_HELD_CHARS = 1024 * 1024  # of the arguments of calls whose name has not come

Channel = Literal["text", "refusal", "reasoning", "summary", "arguments", "input"]
"""A kind of text that items have."""

_Kind = Literal["message", "reasoning", "call", "unnamed"]

_KIND_OF: Mapping[Channel, _Kind] = {
    "text": "message", "refusal": "message", "reasoning": "reasoning", "summary": "reasoning", "arguments": "call",
    "input": "call",
}  # fmt: skip
_TOOL_SEARCH, _FREE_FORM = "tool_search_call", "custom_tool_call"
# Calls that have no name: their type is it, and what they hold beside these fields are the arguments.
_UNNAMED_CALLS = (
    "apply_patch_call", "computer_call", "local_shell_call", "mcp_approval_request", "shell_call", _TOOL_SEARCH,
)  # fmt: skip
_NO_ARGUMENTS = frozenset({"id", "type", "status", "call_id", "created_by"})
_KINDS: Mapping[str, _Kind] = {
    "message": "message", "reasoning": "reasoning", "function_call": "call", _FREE_FORM: "call",
    **dict.fromkeys(_UNNAMED_CALLS, "unnamed"),
}  # fmt: skip
_CHANNELS: Mapping[str, Channel] = {
    "output_text": "text", "text": "text", "refusal": "refusal", "reasoning_text": "reasoning",
    "summary_text": "summary",
}  # fmt: skip


@dataclass(slots=True, eq=False, kw_only=True)
class _Item(OutputItem):
    """An item of the output, and what has come of its texts, by their channel and number."""

    texts: dict[tuple[Channel, int], AccumulatedText] = field(default_factory=dict)
    call: int | None = None  # the index of the tool call that it is, once that has been told
    held: list[str] = field(default_factory=list)  # arguments of a call whose name has not come
    unnamed: Mapping[str, Any] | None = None  # a call without a name that is not done
    signature: str = ""
    is_free_form: bool = False  # a call with a text in place of arguments

    def text(self, channel: Channel, number: int) -> AccumulatedText:
        """Return a text, a new one for the first that is told of it."""
        text = self.texts.get((channel, number))
        if text is None:
            if len(self.texts) >= event_fields.MAX_ELEMENTS:
                raise ValueError("too many parts")
            text = self.texts[channel, number] = AccumulatedText()
        return text

    def taken(self, channel: Channel) -> int:
        """Return how many characters were taken of a channel."""
        return sum(text.length for (own, _), text in self.texts.items() if own == channel)


class Output:
    """The output of one response. Its methods append what is new to `chunks`."""

    __slots__ = ("_calls", "_held_chars", "_items", "_missing")

    def __init__(self) -> None:
        self._items = OutputItems[_Item]()
        self._calls = 0
        self._held_chars = 0
        self._missing: dict[str, int] = {}  # at the end: how many characters more the whole output has

    def read_delta(self, payload: dict[str, Any], channel: Channel, chunks: list[Chunk]) -> None:
        """Read a delta."""
        if text := event_fields.text(payload.get("delta")):
            item, number = self._place(payload, channel)
            self._append(item, channel, item.text(channel, number).piece(text), chunks)

    def read_done(self, payload: dict[str, Any], channel: Channel, text: Any, chunks: list[Chunk]) -> None:
        """Read the whole of a text that is done."""
        item, number = self._place(payload, channel)
        self._take(item, channel, {number: event_fields.text(text)}, chunks)

    def read_part(self, payload: dict[str, Any], chunks: list[Chunk], *, is_done: bool) -> None:
        """Read a part of an item, which has begun or is done."""
        part = event_fields.mapping(payload.get("part"))
        if (channel := _CHANNELS.get(str(part.get("type")))) is None:
            return
        text = event_fields.text(part.get("refusal" if channel == "refusal" else "text"))
        if is_done:
            self.read_done(payload, channel, text, chunks)
        elif text:
            item, number = self._place(payload, channel)
            item.text(channel, number).start(text)

    def read_item(self, payload: dict[str, Any], chunks: list[Chunk], *, is_done: bool) -> None:
        """Read an item that has begun or is done."""
        said = event_fields.mapping(payload.get("item"))
        if (kind := _KINDS.get(str(said.get("type")))) is None:
            return
        item = self._items.find(kind, payload.get("output_index"), said.get("id"))
        if item is None or item.is_other(said, is_done=is_done):
            item = self._new(kind, payload.get("output_index"), said.get("id"))
        self._read(item, said, chunks, is_done=is_done)

    def end(self, output: Any, chunks: list[Chunk]) -> None:
        """Read the whole output at the end of the response, and end what is open."""
        said = [one for one in output if isinstance(one, dict)] if isinstance(output, list) else []
        left = list(self._items)
        self._missing = self._count_missing(said)
        for place, one in enumerate(said[: event_fields.MAX_ELEMENTS]):
            if (kind := _KINDS.get(str(one.get("type")))) is None:
                continue
            item = match(left, kind, place, one)
            if item is None:
                item = self._new(kind, None, one.get("id"))
            else:
                left.remove(item)
            self._read(item, one, chunks, is_done=True)
        for item in self._items:
            self._end(item, chunks)
            if item.kind == "call":
                self._announce(item, None, chunks)

    def _place(self, payload: dict[str, Any], channel: Channel) -> tuple[_Item, int]:
        """Return the item and the number of the text that an event is of."""
        kind = _KIND_OF[channel]
        index, id = payload.get("output_index"), payload.get("item_id")
        item = self._items.find(kind, index, id) or self._new(kind, index, id)
        number = payload.get("summary_index" if channel == "summary" else "content_index")
        return item, number if isinstance(number, int) else 0

    def _new(self, kind: _Kind, index: Any, id: Any) -> _Item:
        if len(self._items) >= event_fields.MAX_TOOL_CALLS:
            raise ValueError("too many items")
        item = _Item(kind=kind, source=index if type(index) is int else None, id=event_fields.name(id))
        self._items.add(item)
        return item

    def _read(self, item: _Item, said: dict[str, Any], chunks: list[Chunk], *, is_done: bool) -> None:
        if item.kind == "unnamed":
            self._read_unnamed(item, said, chunks, is_done=is_done)
            return
        if item.kind == "call":
            item.is_free_form = item.is_free_form or said.get("type") == _FREE_FORM
            item.call_id = item.call_id or event_fields.name(said.get("call_id"))
            item.id = item.id or event_fields.name(said.get("id"))
            if (called := event_fields.name(said.get("name"))) is not None:
                self._announce(item, called, chunks)
        for channel, texts in _texts_of(item.kind, said).items():
            if is_done:
                self._take(item, channel, texts, chunks)
            else:
                for number, text in texts.items():
                    item.text(channel, number).start(
                        text, is_replaced=channel == "arguments" and event_fields.is_json(text)
                    )
        if is_done:
            self._end(item, chunks)
            self._sign(item, said, chunks)
            item.is_done = True

    def _read_unnamed(self, item: _Item, said: dict[str, Any], chunks: list[Chunk], *, is_done: bool) -> None:
        """Append the whole call of an item; one that is done twice is one call."""
        if item.call is not None or not _is_of_client(said):
            return
        if not is_done:
            item.unnamed = said
            return
        own = {name: value for name, value in said.items() if name not in _NO_ARGUMENTS and value is not None}
        text = event_fields.arguments(said.get("arguments") if said["type"] == _TOOL_SEARCH else own)
        item.call_id = event_fields.name(said.get("call_id")) or event_fields.name(said.get("id"))
        item.held.append(text)
        self._announce(item, said["type"], chunks)

    def _take(self, item: _Item, channel: Channel, texts: Mapping[int, str], chunks: list[Chunk]) -> None:
        """Append what whole texts of a channel go on with, no more than what they have more together."""
        most = sum(map(len, texts.values())) - (item.taken(channel) if len(texts) > 1 else 0)
        most = min(most, self._missing.get(item.kind, most))
        for number, text in texts.items():
            if item.kind != "reasoning" or not _is_told_otherwise(item, channel, text):
                rest = item.text(channel, number).whole(text, most)
                most -= len(rest)
                if self._missing:
                    self._missing[item.kind] -= len(rest)
                self._append(item, channel, rest, chunks)

    def _count_missing(self, output: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """Count by how many characters of each kind a whole output has more than was taken, in whatever items."""
        missing: dict[str, int] = dict.fromkeys(_KIND_OF.values(), 0)
        for one in output:
            if (kind := _KINDS.get(str(one.get("type")))) in missing:
                texts = _texts_of(kind, one)
                missing[kind] += sum(len(text) for numbered in texts.values() for text in numbered.values())
        for item in self._items:
            if item.kind in missing:
                missing[item.kind] -= sum(text.length for text in item.texts.values())
        return missing

    def _end(self, item: _Item, chunks: list[Chunk]) -> None:
        """Append what only a start has told."""
        for (channel, _), text in item.texts.items():
            self._append(item, channel, text.end(), chunks)
        if item.unnamed is not None:
            said, item.unnamed = item.unnamed, None
            self._read_unnamed(item, dict(said), chunks, is_done=True)

    def _sign(self, item: _Item, said: dict[str, Any], chunks: list[Chunk]) -> None:
        signature = event_fields.name(said.get("encrypted_content"))
        if signature is not None and item.kind == "reasoning" and not item.signature:
            item.signature = event_fields.text(said["encrypted_content"])
            chunks.append(Chunk(signature=item.signature))

    def _append(self, item: _Item, channel: Channel, text: str, chunks: list[Chunk]) -> None:
        if not text:
            return
        if channel == "text":
            chunks.append(Chunk(text))
        elif channel == "refusal":
            chunks.append(Chunk(text, refusal=text))
        elif item.kind == "reasoning":
            chunks.append(Chunk(reasoning=text))
        elif item.call is None:
            item.is_free_form = channel == "input"
            self._held_chars += len(text)
            if self._held_chars > MAX_HELD_CHARS:
                raise ValueError("too many arguments of a call without a name")
            item.held.append(text)
        else:
            chunks.append(Chunk(tool_calls=(ToolCall(item.call, arguments=text),)))

    def _announce(self, item: _Item, called: str | None, chunks: list[Chunk]) -> None:
        """Append the first fragment of a call, with the arguments that waited for its name."""
        if item.call is not None:
            return
        item.call = self._calls
        self._calls += 1
        id = item.call_id or (None if called is None else item.id)
        call = ToolCall(item.call, id, called, "".join(item.held), item.is_free_form)
        self._held_chars -= len(call.arguments) if item.kind == "call" else 0
        item.held.clear()
        chunks.append(Chunk(tool_calls=(call,)))


def _texts_of(kind: str, said: Mapping[str, Any]) -> dict[Channel, dict[int, str]]:
    """Return the texts of an item, by their channels and numbers."""
    if kind == "call":
        member: Channel = "input" if said.get("type") == _FREE_FORM else "arguments"
        text = event_fields.arguments(said.get(member))
        return {member: {0: text}} if text else {}
    found: dict[Channel, dict[int, str]] = {}
    for holder in ("summary", "content"):
        parts = said.get(holder) or []
        if isinstance(parts, str):
            parts = [{"type": "text", "text": parts}]
        for number, part in enumerate(event_fields.elements(parts)):
            channel = _CHANNELS.get(str(event_fields.mapping(part).get("type")))
            if channel == "text" and kind == "reasoning":
                channel = "reasoning"
            if channel is not None and _KIND_OF[channel] == kind:
                text = event_fields.text(part.get("refusal" if channel == "refusal" else "text"))
                found.setdefault(channel, {})[number] = text
    return found


def _is_told_otherwise(item: _Item, channel: Channel, text: str) -> bool:
    """Return whether reasoning has come as what it is not called here: some servers call it now so, now so."""
    return any(other != channel and known.is_of(text) for (other, _), known in item.texts.items())


def _is_of_client(item: Mapping[str, Any]) -> bool:
    """Return whether the client is to act on an item; the shell of a container and a hosted search are OpenAI's."""
    if item.get("execution") == "server":
        return False
    return bool(event_fields.mapping(item.get("environment")).get("type", "local") == "local")


_DELTAS: Mapping[str, Channel] = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning_summary_text.delta": "summary",
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}
# Which member of an event holds the whole text.
_DONE: Mapping[str, tuple[Channel, str]] = {
    "response.output_text.done": ("text", "text"),
    "response.refusal.done": ("refusal", "refusal"),
    "response.reasoning_text.done": ("reasoning", "text"),
    "response.reasoning_summary_text.done": ("summary", "text"),
    "response.function_call_arguments.done": ("arguments", "arguments"),
    "response.custom_tool_call_input.done": ("input", "input"),
}
_PARTS = {
    f"response.{part}.{what}": what == "done"
    for part in ("content_part", "reasoning_summary_part") for what in ("added", "done")
}  # fmt: skip
_ITEMS = {"response.output_item.added": False, "response.output_item.done": True}
_ENDS = ("response.completed", "response.incomplete", "response.done")


class OpenAIResponses:
    """Reads events by the `type` in their data."""

    __slots__ = ("_model", "_output")

    def __init__(self) -> None:
        self._model: str | None = None  # as the first event names it; some servers leave it out of the last
        self._output = Output()

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        """Append what is new in an event; `response.completed`, `.incomplete`, `.failed` or `error` ends the stream."""
        payload: Any = event.payload
        kind = payload["type"]
        if (channel := _DELTAS.get(kind)) is not None:
            self._output.read_delta(payload, channel, chunks)
        elif kind in _ENDS:
            response = event_fields.mapping(payload.get("response"))
            self._output.end(response.get("output"), chunks)
            if response.get("error"):
                return read_error(response["error"])
            return self._ending(response, kind.removeprefix("response."))
        elif kind == "response.created":
            self._model = event_fields.name(event_fields.mapping(payload.get("response")).get("model"))
        elif kind == "response.failed":
            return read_error(payload["response"].get("error"))
        elif kind == "error":
            return read_error(payload)
        else:
            self._read_snapshot(kind, payload, chunks)
        return None

    def end_of_input(self) -> Outcome:
        """Return a truncation: only `response.completed` or `.incomplete` is a good end."""
        return truncated("response.completed")

    def _read_snapshot(self, kind: str, payload: dict[str, Any], chunks: list[Chunk]) -> None:
        """Read an event that tells all of something at once."""
        if kind in _DONE:
            channel, member = _DONE[kind]
            self._output.read_done(payload, channel, payload.get(member), chunks)
        elif kind in _PARTS:
            self._output.read_part(payload, chunks, is_done=_PARTS[kind])
        elif kind in _ITEMS:
            self._output.read_item(payload, chunks, is_done=_ITEMS[kind])

    def _ending(self, response: dict[str, Any], status: str) -> Ending:
        native = event_fields.mapping(response.get("incomplete_details")).get("reason")
        word = event_fields.name(native) or event_fields.name(response.get("status"))
        reason = finish_reason(word)
        if reason == "stop" and status == "incomplete":  # for a reason of the server's own
            reason = "error"
        return Ending(reason, word, _usage(response), event_fields.name(response.get("model")) or self._model)


def _usage(response: dict[str, Any]) -> Usage | None:
    usage = event_fields.mapping(response.get("usage"))
    if not usage:
        return None
    details = event_fields.mapping(usage.get("input_tokens_details"))
    return Usage(
        input_tokens=event_fields.count(usage.get("input_tokens")),
        output_tokens=event_fields.count(usage.get("output_tokens")),
        total_tokens=event_fields.count(usage.get("total_tokens")),
        cached_tokens=event_fields.count(details.get("cached_tokens")),
        reasoning_tokens=event_fields.count(
            event_fields.mapping(usage.get("output_tokens_details")).get("reasoning_tokens")
        ),
        cache_write_tokens=event_fields.count(details.get("cache_write_tokens")),
    )


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
    """Return the part of a medium, None where it cannot be sent."""
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
    DIALECT_NAME,
    _write,
    turns=("instructions", "input"),
    as_sent=lambda wants_usage: choose_all,
    counting=TokenCounting("/responses", "/responses/input_tokens", _counted),
)
"""Of OpenAI, and of servers that offer the same."""


OPENAI_RESPONSES = StreamSpec(
    name="openai/v1/responses",
    enable=Enable(body={"stream": True}),
    framing=SSEFraming,
    reader=OpenAIResponses,
)


_RESPONSE = WholeResponse(
    lambda response: isinstance(response.get("output"), list),
    # The event that ends a response holds all of it.
    lambda response: [{"type": f"response.{response.get('status') or 'completed'}", "response": response}],
)

PROVIDER = Provider(
    interfaces=(Interface((OPENAI_RESPONSES.name,), OPENAI_RESPONSES, (r"/responses\?",), _RESPONSE, DIALECT),)
)
