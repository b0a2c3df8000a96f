"""Gemini Interactions API: https://ai.google.dev/gemini-api/docs/interactions/streaming.

A stream is a series of steps, each with a start, deltas and a stop. A step's start may hold the first of its content
already. `interaction.completed` has the status and the usage; `[DONE]` follows it. Before May 2026, and where steps are
not enabled, the events were `content.delta` and `interaction.complete`, and a function call came whole in its delta
(`google/genai/_interactions/types` of googleapis/python-genai).

The `input` of a request are steps, too: what the user says, the text and calls of an answer, results of calls. All
system turns go to `system_instruction`. Each request has the whole conversation, and `store` is false, so that Google
need not keep it. Reasoning of an earlier answer goes back as a thought if it has its signature, else it is left out.
Google documents no value that could stand for the signature of a call that has none. A budget of reasoning tokens
becomes an effort, `minimal` at least: thinking cannot be turned off. Names of files, and `cache_control`, a hint for
prices, are left out.
"""

from collections.abc import Iterator
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
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
from opensearch_ml_stream.connectors.conversation.dialects.gemini_contents import service_tier
from opensearch_ml_stream.connectors.conversation.dialects.shared_writing import (
    REASONING_OPTIONS,
    SYSTEM_ROLES,
    arguments,
    media_type,
    reasoning_effort,
    refuse_names,
    refuse_one_at_a_time,
    refuse_part,
    schema,
    system_texts,
    tool_names,
    wants_summary,
    write_options,
)
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import FINISHING, Finishing, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason, native_finish_reason
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import Interface, Provider, WholeResponse
from opensearch_ml_stream.connectors.provider_errors import read_error
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

MAX_OPEN_CALLS = 16  # whose arguments are kept: Google has one at a time

_STEPS = ("step.start", "step.delta", "content.delta")
_ENDS = ("interaction.completed", "interaction.complete", "interaction.failed")


class GeminiInteractions:
    """Reads events by their `event_type`. Steps of tools that Google runs itself hold nothing for the client."""

    __slots__ = ("_arguments", "_has_content", "_model", "_status", "_tool_indexes", "_usage")

    def __init__(self) -> None:
        self._has_content = False  # a step has come
        self._tool_indexes: dict[int, int] = {}  # step index -> tool call index
        self._arguments: dict[int, str] = {}  # step index -> its whole arguments, until a fragment replaces them
        self._status: str | None = None  # unless the interaction is still in progress
        self._model: str | None = None
        self._usage: Usage | None = None

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        """Append the chunk of a step's start or delta; `interaction.completed`, `[DONE]` or `error` ends the stream."""
        if event.data.strip() == b"[DONE]":
            return self.end_of_input()
        payload: Any = event.payload
        kind = payload["event_type"]
        if kind in _STEPS:
            self._has_content = True
        if kind in ("step.delta", "content.delta"):
            self._read_delta(payload["index"], payload["delta"], chunks)
        elif kind == "step.start":
            self._read_start(payload["index"], payload["step"], chunks)
        elif kind == "step.stop":
            self._flush_arguments(payload["index"], chunks)
        elif kind == "interaction.status_update":
            self._read_status(payload.get("status"))
        elif kind in _ENDS:
            return self._end(payload["interaction"], chunks)
        elif kind in ("interaction.created", "interaction.start"):
            self._read_interaction(payload["interaction"])
        elif kind == "error":
            return read_error(payload)
        return FINISHING if self._status is not None else None

    def end_of_input(self) -> Outcome:
        """Return a good ending if a status has come that is an end."""
        return truncated("interaction.completed") if self._status is None else self._ending()

    def _end(self, interaction: dict[str, Any], chunks: list[Chunk]) -> Outcome:
        self._read_interaction(interaction)
        self._read_whole(interaction, chunks)
        error = interaction.get("error")
        return read_error(error) if error else self._ending()

    def _read_whole(self, interaction: dict[str, Any], chunks: list[Chunk]) -> None:
        """Append the content of an interaction of which no step has come, and what steps without an end have left."""
        for index in list(self._arguments):
            self._flush_arguments(index, chunks)
        if self._has_content:
            return
        for index, step in enumerate(event_fields.elements(interaction.get("steps") or [])):
            self._read_start(index, step, chunks)
            self._flush_arguments(index, chunks)
        for index, part in enumerate(event_fields.elements(interaction.get("outputs") or [])):
            self._read_delta(index, part, chunks)

    def _read_start(self, index: int, step: dict[str, Any], chunks: list[Chunk]) -> None:
        kind = step["type"]
        if kind == "function_call":
            self._append_call(index, step, "", chunks)
            self._keep_arguments(index, step.get("arguments"))
        elif kind in ("model_output", "thought"):
            parts = step.get("content" if kind == "model_output" else "summary") or []
            text = "".join(event_fields.text(part.get("text")) for part in event_fields.elements(parts))
            if text:
                chunks.append(Chunk(text) if kind == "model_output" else Chunk(reasoning=text))
            if signature := event_fields.text(step.get("signature")):
                chunks.append(Chunk(signature=signature))

    def _read_delta(self, index: int, delta: dict[str, Any], chunks: list[Chunk]) -> None:
        kind = delta["type"]
        if kind == "text":
            if text := event_fields.text(delta.get("text")):
                chunks.append(Chunk(text))
        elif kind == "thought_summary":
            content = event_fields.mapping(delta.get("content")) or delta
            if text := event_fields.text(content.get("text")):
                chunks.append(Chunk(reasoning=text))
        elif kind == "thought_signature":
            if signature := event_fields.text(delta.get("signature")):
                chunks.append(Chunk(signature=signature))
        elif kind == "arguments_delta":
            text = event_fields.text(delta.get("arguments") or delta.get("partial_arguments"))
            if text:
                self._arguments.pop(index, None)
                chunks.append(Chunk(tool_calls=(ToolCall(self._tool_indexes[index], arguments=text),)))
        elif kind == "function_call":
            self._append_call(index, delta, event_fields.arguments(delta.get("arguments") or {}), chunks)

    def _append_call(self, index: int, call: dict[str, Any], arguments: str, chunks: list[Chunk]) -> None:
        own = event_fields.tool_index(self._tool_indexes, index)
        tool_call = ToolCall(own, event_fields.name(call.get("id")), event_fields.name(call["name"]), arguments)
        chunks.append(Chunk(tool_calls=(tool_call,)))

    def _keep_arguments(self, index: int, arguments: Any) -> None:
        if len(self._arguments) >= MAX_OPEN_CALLS:
            raise ValueError("too many open calls")
        self._arguments[index] = event_fields.arguments(arguments or {})

    def _flush_arguments(self, index: int, chunks: list[Chunk]) -> None:
        """Append the whole arguments of a call whose step ended without a fragment of them."""
        if index in self._arguments:
            text = self._arguments.pop(index)
            chunks.append(Chunk(tool_calls=(ToolCall(self._tool_indexes[index], arguments=text),)))

    def _read_status(self, status: Any) -> None:
        self._status = native_finish_reason(status) or self._status

    def _read_interaction(self, interaction: dict[str, Any]) -> None:
        self._read_status(interaction.get("status"))
        self._model = event_fields.name(interaction.get("model")) or self._model
        if usage := event_fields.mapping(interaction.get("usage")):
            self._usage = _read_usage(usage).after(self._usage)

    def _ending(self) -> Ending:
        reason = finish_reason(self._status)
        return Ending(reason, self._status, self._usage, self._model)


def _read_usage(usage: dict[str, Any]) -> Usage:
    """Return the counts; `total_output_tokens` leaves the thoughts out, `total_input_tokens` the results of tools."""
    counts = {name: event_fields.count(value) for name, value in usage.items()}
    thoughts = counts.get("total_thought_tokens")
    return Usage(
        input_tokens=event_fields.total(counts.get("total_input_tokens"), counts.get("total_tool_use_tokens")),
        output_tokens=event_fields.total(counts.get("total_output_tokens"), thoughts),
        total_tokens=counts.get("total_tokens"),
        cached_tokens=counts.get("total_cached_tokens"),
        reasoning_tokens=thoughts,
    )


_OPTIONS = {
    "max_tokens": "max_output_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "stop": "stop_sequences",
    "seed": "seed",
}
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
        **write_options(conversation, refuse, _OPTIONS, besides=(*REASONING_OPTIONS, "service_tier")),
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


DIALECT = Dialect(
    name="gemini_interactions",
    write=_write,
    turns=("input", "system_instruction"),
    instead_of={"response_format": ("response_mime_type",)},
)


GEMINI_INTERACTIONS = StreamSpec(
    name="gemini/v1beta/interactions",
    enable=Enable(body={"stream": True}),
    framing=SSEFraming,
    reader=GeminiInteractions,
    has_fast_path=True,
)


_WHOLE = WholeResponse(
    lambda response: response.get("object") == "interaction" or "steps" in response,
    # The event that ends an interaction may hold all of it.
    lambda response: [{"event_type": "interaction.completed", "interaction": response}],
)

PROVIDER = Provider(
    interfaces=(
        Interface((GEMINI_INTERACTIONS.name,), GEMINI_INTERACTIONS, (r"/interactions\?",), _WHOLE, dialect=DIALECT),
    )
)
