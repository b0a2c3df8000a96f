"""Ollama's own interface, `/api/chat` and `/api/generate`: https://github.com/ollama/ollama/blob/main/docs/api.md.

An error is a line of its own, under status 200.

In a request a message has one text, with its images beside it: several texts are joined by a line break. Reasoning of
an earlier answer goes back as `thinking`, unless it has a signature: Ollama gives none, so that such reasoning is
another model's. The text of a failed tool's result says that it failed. An effort of reasoning becomes the nearest one
that Ollama has. `cache_control`, a hint for prices, is left out.
"""

from collections.abc import Iterable
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.conversation.conversation import Call, Conversation, Media, Part, Result, Turn
from opensearch_ml_stream.connectors.conversation.dialect import Dialect, Refuse
from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.conversation.dialects.shared_writing import (
    REASONING_OPTIONS,
    SYSTEM_ROLES,
    arguments,
    callable_tools,
    messages_of,
    reasoning_effort,
    reasoning_text,
    refuse_details,
    refuse_forced_calls,
    refuse_names,
    refuse_one_at_a_time,
    refuse_part,
    refuse_strict,
    result_text,
    schema,
    texts,
    tool_names,
    write_function,
    write_options,
)
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.decoding.ndjson import NDJSONFraming
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.provider_errors import read_error
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec


class Ollama:
    """Reads the lines of both paths: `message.content` of chat, `response` of generate."""

    __slots__ = ("_call_count",)

    def __init__(self) -> None:
        self._call_count = 0

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        """Append the line's chunk; `"done": true` or `error` ends the stream."""
        payload: Any = event.payload
        if payload.get("error"):
            return read_error(payload)
        message = event_fields.mapping(payload.get("message"))
        text = event_fields.text(message.get("content")) or event_fields.text(payload.get("response"))
        thinking = event_fields.text(message.get("thinking")) or event_fields.text(payload.get("thinking"))
        calls = tuple(self._read_call(call) for call in event_fields.elements(message.get("tool_calls") or []))
        if text or thinking or calls:
            chunks.append(Chunk(text, thinking, calls))
        return self._ending(payload) if payload["done"] is True else None

    def end_of_input(self) -> Outcome:
        """Return a truncation: only `"done": true` is a good end."""
        return truncated('"done": true')

    def _read_call(self, call: dict[str, Any]) -> ToolCall:
        function = call["function"]
        index = self._call_count
        self._call_count += 1
        name = event_fields.name(function["name"])
        return ToolCall(
            index, event_fields.name(call.get("id")), name, event_fields.arguments(function.get("arguments") or {})
        )

    def _ending(self, payload: dict[str, Any]) -> Ending:
        native = event_fields.name(payload.get("done_reason"))
        counts = event_fields.count(payload.get("prompt_eval_count")), event_fields.count(payload.get("eval_count"))
        usage = None if counts == (None, None) else Usage(*counts)
        return Ending(finish_reason(native), native, usage, event_fields.name(payload.get("model")))


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
    if options := write_options(conversation, refuse, _OPTIONS, besides=REASONING_OPTIONS):
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


DIALECT = Dialect(name="ollama", write=_write, turns=("messages",), defaults={"stream": False})  # it streams unasked


OLLAMA = StreamSpec(
    name="ollama/api/chat",
    enable=Enable(body={"stream": True}, by_default=True),
    framing=NDJSONFraming,
    reader=Ollama,
)

# A spec of its own: it takes a prompt, no conversation.
OLLAMA_GENERATE = StreamSpec("ollama/api/generate", OLLAMA.enable, OLLAMA.framing, OLLAMA.reader)

PROVIDER = Provider(
    interfaces=(
        Interface((OLLAMA.name,), OLLAMA, (r"/api/chat\?",), dialect=DIALECT),
        Interface((OLLAMA_GENERATE.name,), OLLAMA_GENERATE, (r"/api/generate\?",)),
        Interface(("ollama/v1/chat/completions",), OPENAI_CHAT, dialect=openai_compatible.OLLAMA),
    )
)
