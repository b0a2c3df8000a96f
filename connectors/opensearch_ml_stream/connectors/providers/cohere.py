"""Cohere chat, v1 (NDJSON) and v2 (server-sent events): https://docs.cohere.com/docs/streaming.

Conversations are sent to v2 (https://docs.cohere.com/reference/chat). Reasoning of an earlier answer goes back as
`thinking`, unless it has a signature: Cohere gives none, so that such reasoning is another model's. The text of a
failed tool's result says that it failed. Cohere cannot be told to call one tool of several, so a request that names a
tool has that tool alone. An effort of reasoning becomes a budget of tokens. `cache_control`, a hint for prices, is left
out.
"""

from dataclasses import replace
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.conversation.conversation import Call, Conversation, Media, Part, Result, Text
from opensearch_ml_stream.connectors.conversation.dialect import Dialect, Refuse
from opensearch_ml_stream.connectors.conversation.dialects.shared_writing import (
    REASONING_OPTIONS,
    SYSTEM_ROLES,
    data_url,
    messages_of,
    reasoning_budget,
    reasoning_text,
    refuse_names,
    refuse_one_at_a_time,
    schema,
    texts,
    write_call,
    write_function,
    write_options,
    write_result,
)
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.decoding.ndjson import NDJSONFraming
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import Interface, Provider, WholeResponse
from opensearch_ml_stream.connectors.provider_errors import read_error
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec


class CohereV2:
    """Reads events of v2 by the `type` in their data. `message-end` is the last; a `[DONE]` may follow it.

    Whatever of a message has not come in pieces is taken from where it is whole: at its start, or at its end.
    """

    __slots__ = ("_said", "_tool_indexes", "_whole_arguments")

    def __init__(self) -> None:
        self._said: set[str] = set()  # the kinds of text that have come
        self._tool_indexes: dict[int, int] = {}  # Cohere's index -> tool call index
        # The index and the arguments of the last call, until a fragment of its arguments.
        self._whole_arguments: tuple[int, str] | None = None

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        """Append the chunk of a content, tool plan or tool call event; `message-end` or `error` ends the stream."""
        payload: Any = event.payload
        kind = payload["type"]
        if kind == "message-end":
            self._read_message(payload["delta"].get("message"), chunks)
            self._end_call(chunks)
            return _end_v2(payload["delta"])
        if kind in ("content-start", "content-delta"):
            content = event_fields.mapping(payload["delta"]["message"].get("content"))
            self._append(chunks, text=content.get("text"), thinking=content.get("thinking"))
        elif kind == "tool-plan-delta":
            self._append(chunks, plan=payload["delta"]["message"]["tool_plan"])
        elif kind in ("tool-call-start", "tool-call-delta"):
            self._read_call(payload["delta"]["message"]["tool_calls"], payload.get("index", 0), chunks)
        elif kind == "tool-call-end":
            self._end_call(chunks)
        elif kind == "message-start":
            self._read_message(event_fields.mapping(payload.get("delta")).get("message"), chunks)
        elif kind == "error":
            return read_error(payload)
        return None

    def end_of_input(self) -> Outcome:
        """Return a truncation: only `message-end` is a good end."""
        return truncated("message-end")

    def _append(self, chunks: list[Chunk], text: Any = None, thinking: Any = None, plan: Any = None) -> None:
        text, thinking, plan = event_fields.text(text), event_fields.text(thinking), event_fields.text(plan)
        for kind, said in (("text", text), ("thinking", thinking), ("plan", plan)):
            if said:
                self._said.add(kind)
        if text or thinking or plan:
            chunks.append(Chunk(text, plan + thinking))

    def _read_message(self, message: Any, chunks: list[Chunk]) -> None:
        """Append what has not come of a message that may be whole."""
        members = event_fields.mapping(message)
        known = frozenset(self._said)
        if plan := members.get("tool_plan"):
            self._append(chunks, plan="" if "plan" in known else plan)
        content = members.get("content") or []
        for part in event_fields.elements([{"text": content}] if isinstance(content, str) else content):
            self._append(chunks, **{kind: part.get(kind) for kind in ("text", "thinking") if kind not in known})
        if not self._tool_indexes:
            for place, call in enumerate(event_fields.elements(members.get("tool_calls") or [])):
                self._read_call(call, place, chunks)
                self._end_call(chunks)

    def _read_call(self, call: dict[str, Any], place: Any, chunks: list[Chunk]) -> None:
        function = call["function"]
        index = event_fields.tool_index(self._tool_indexes, place)
        text = event_fields.arguments(function.get("arguments"))
        fragment = ToolCall(index, event_fields.name(call.get("id")), event_fields.name(function.get("name")), text)
        if fragment.name and (not text or event_fields.is_json(text)):
            self._end_call(chunks)
            self._whole_arguments = index, text or "{}"
            fragment = replace(fragment, arguments="")
        elif text:
            self._whole_arguments = None
        if fragment.id or fragment.name or fragment.arguments:
            chunks.append(Chunk(tool_calls=(fragment,)))

    def _end_call(self, chunks: list[Chunk]) -> None:
        """Append the whole arguments of a call of which no fragment has come; those of none are an empty object."""
        if self._whole_arguments is not None:
            (index, text), self._whole_arguments = self._whole_arguments, None
            chunks.append(Chunk(tool_calls=(ToolCall(index, arguments=text),)))


class CohereV1:
    """Reads lines of v1 by their `event_type`. `stream-end` is the last."""

    __slots__ = ("_has_calls", "_has_text")

    def __init__(self) -> None:
        self._has_calls = False  # tool calls came: the whole calls that follow repeat them
        self._has_text = False

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | None:
        """Append the chunk of a text or tool call line; `stream-end` or a line without `event_type` ends the stream."""
        payload: Any = event.payload
        kind = payload.get("event_type")
        if kind == "stream-end":
            response = event_fields.mapping(payload.get("response"))
            self._read_text("" if self._has_text else response.get("text"), chunks)
            self._read_calls(response.get("tool_calls"), chunks)
            return _end_v1(payload)
        if kind == "text-generation":
            self._read_text(payload["text"], chunks)
        elif kind == "tool-calls-chunk":
            self._read_fragment(payload, chunks)
        elif kind == "tool-calls-generation":
            self._read_calls(payload["tool_calls"], chunks)
        elif kind is None:
            return read_error(payload)
        return None

    def end_of_input(self) -> Outcome:
        """Return a truncation: only `stream-end` is a good end."""
        return truncated("stream-end")

    def _read_text(self, value: Any, chunks: list[Chunk]) -> None:
        if text := event_fields.text(value):
            self._has_text = True
            chunks.append(Chunk(text))

    def _read_calls(self, values: Any, chunks: list[Chunk]) -> None:
        """Append whole calls, unless they have come."""
        if values and not self._has_calls:
            self._has_calls = True
            calls = (
                ToolCall(index, None, event_fields.name(call["name"]), event_fields.arguments(call.get("parameters")))
                for index, call in enumerate(event_fields.elements(values))
            )
            chunks.append(Chunk(tool_calls=tuple(calls)))

    def _read_fragment(self, payload: dict[str, Any], chunks: list[Chunk]) -> None:
        plan = event_fields.text(payload.get("text"))
        delta = payload.get("tool_call_delta")
        calls: tuple[ToolCall, ...] = ()
        if delta:
            self._has_calls = True
            text = event_fields.arguments(delta.get("parameters"))
            calls = (ToolCall(delta["index"], None, event_fields.name(delta.get("name")), text),)
        if plan or calls:
            chunks.append(Chunk(reasoning=plan, tool_calls=calls))


def _end_v2(delta: dict[str, Any]) -> Outcome:
    native = event_fields.name(delta.get("finish_reason"))
    if delta.get("error") or native == "ERROR":
        return read_error(delta.get("error") or "finish_reason ERROR")
    return Ending(finish_reason(native), native, _usage(event_fields.mapping(delta.get("usage"))))


def _end_v1(payload: dict[str, Any]) -> Outcome:
    native = event_fields.name(payload.get("finish_reason"))
    response = event_fields.mapping(payload.get("response"))
    if native == "ERROR":
        return read_error(payload.get("error") or response.get("error") or "finish_reason ERROR")
    return Ending(finish_reason(native), native, _usage(event_fields.mapping(response.get("meta"))))


def _usage(usage: dict[str, Any]) -> Usage | None:
    """Return the counts of `tokens`, which are all tokens, else of `billed_units`, which are those that cost."""
    counts = event_fields.mapping(usage.get("tokens")) or event_fields.mapping(usage.get("billed_units"))
    if not counts:
        return None
    return Usage(
        input_tokens=event_fields.count(counts.get("input_tokens")),
        output_tokens=event_fields.count(counts.get("output_tokens")),
        cached_tokens=event_fields.count(usage.get("cached_tokens")),
    )


_OPTIONS = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "p",
    "top_k": "k",
    "stop": "stop_sequences",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}

_Member = dict[str, Any]


def _write(conversation: Conversation, refuse: Refuse) -> _Member:
    refuse_names(conversation, refuse)
    return {
        "messages": _messages(conversation, refuse),
        **write_options(conversation, refuse, _OPTIONS, besides=REASONING_OPTIONS),
        **_tools(conversation, refuse),
        **_answer_format(conversation),
        **_thinking(conversation, refuse),
    }


def _messages(conversation: Conversation, refuse: Refuse) -> list[_Member]:
    messages: list[_Member] = []
    for turn in conversation.turns:
        for said in messages_of(turn):
            if isinstance(said, Result):
                messages.append(write_result(said, conversation, refuse))
            elif turn.role == "assistant":
                messages += _answer(said, conversation, refuse)
            elif turn.role in SYSTEM_ROLES:
                messages.append({"role": "system", "content": "\n".join(texts(said, conversation, refuse))})
            else:
                messages.append({"role": "user", "content": _content(said, conversation, refuse)})
    return messages


def _answer(parts: tuple[Part, ...], conversation: Conversation, refuse: Refuse) -> list[_Member]:
    """Return the message of an answer; none if nothing of it goes back."""
    message: _Member = {"role": "assistant"}
    said = [{"type": "text", "text": text} for text in texts(parts, conversation, refuse)]
    thought = reasoning_text(parts)
    if content := [*([{"type": "thinking", "thinking": thought}] if thought else []), *said]:
        message["content"] = content
    if calls := [write_call(part) for part in parts if isinstance(part, Call)]:
        message["tool_calls"] = calls
    return [message] if len(message) > 1 else []


def _content(parts: tuple[Part, ...], conversation: Conversation, refuse: Refuse) -> str | list[_Member]:
    content: list[_Member] = []
    for part in parts:
        if isinstance(part, Media) and part.kind == "image" and data_url(part):
            detail = {"detail": part.detail} if part.detail else {}
            content.append({"type": "image_url", "image_url": {"url": data_url(part), **detail}})
        elif isinstance(part, Text | Media):
            content += [{"type": "text", "text": text} for text in texts([part], conversation, refuse)]
    return content[0]["text"] if len(content) == 1 and content[0]["type"] == "text" else content


def _tools(conversation: Conversation, refuse: Refuse) -> _Member:
    if not conversation.tools:
        return {}
    refuse_one_at_a_time(conversation, refuse)
    choice = conversation.tool_choice
    tools = [
        tool for tool in conversation.tools if choice is None or choice.mode != "named" or tool.name == choice.name
    ]
    written: _Member = {"tools": [write_function(tool) for tool in tools]}
    if any(tool.strict for tool in tools):
        written["strict_tools"] = True
    if choice is not None and choice.mode != "auto":
        written["tool_choice"] = "NONE" if choice.mode == "none" else "REQUIRED"
    return written


def _answer_format(conversation: Conversation) -> _Member:
    asked = conversation.answer_format
    if asked is None:
        return {}
    wanted = schema(asked)
    return {"response_format": {"type": "json_object", **({} if wanted is None else {"json_schema": wanted})}}


def _thinking(conversation: Conversation, refuse: Refuse) -> _Member:
    budget = reasoning_budget(conversation, refuse)
    if budget:
        return {"thinking": {"type": "enabled", "token_budget": budget}}
    return {} if budget is None else {"thinking": {"type": "disabled"}}


DIALECT = Dialect(name="cohere", write=_write, turns=("messages",))


COHERE_V2 = StreamSpec(
    name="cohere/v2/chat",
    enable=Enable(body={"stream": True}),
    framing=SSEFraming,
    reader=CohereV2,
    has_fast_path=True,
)

COHERE_V1 = StreamSpec(
    name="cohere/v1/chat",
    enable=Enable(body={"stream": True}),
    framing=NDJSONFraming,
    reader=CohereV1,
)


_WHOLE_V2 = WholeResponse(
    lambda response: "finish_reason" in response and "message" in response,
    # The event that ends a message may hold all of it.
    lambda response: [{"type": "message-end", "delta": response}],
)

_WHOLE_V1 = WholeResponse(
    lambda response: "text" in response and "generation_id" in response,
    # The event that ends a stream repeats all of it.
    lambda response: [{**response, "event_type": "stream-end", "response": response}],
)

PROVIDER = Provider(
    interfaces=(
        Interface((COHERE_V2.name,), COHERE_V2, (r"/v2/chat\?",), _WHOLE_V2, dialect=DIALECT),
        Interface((COHERE_V1.name,), COHERE_V1, (r"/v1/chat\?",), _WHOLE_V1),
    ),
    trusted_endpoints=(r"^https://api\.cohere\.(ai|com)/.*$",),
)
