"""Alibaba Cloud Model Studio (DashScope), its own interface: text and multimodal generation.

https://www.alibabacloud.com/help/en/model-studio/qwen-api-via-dashscope. A header turns streaming on, and
`incremental_output` among the parameters makes each event hold what is new. An event without a finish reason says
`"null"`. There is no terminator: the body ends after the event with the finish reason. Errors are events named `error`
(dashscope/api_entities/http_request.py of dashscope-sdk-python).

In a request the messages of a conversation are in `input.messages`, its options and tools in `parameters`. Content is
a string, or a list where it has media or cache marks. Reasoning of an earlier answer is left out: the documentation
says that it is not sent back. The text of a failed tool's result says that it failed. An effort of reasoning becomes a
budget of tokens.
"""

from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, Usage
from opensearch_ml_stream.connectors.conversation.conversation import Conversation, Media, Part, Text
from opensearch_ml_stream.connectors.conversation.dialect import Dialect, Refuse
from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.conversation.dialects.shared_writing import (
    REASONING_OPTIONS,
    data_url,
    reasoning_budget,
    refuse_details,
    refuse_names,
    refuse_strict,
    schema,
    texts,
    write_function,
    write_messages,
    write_options,
)
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import FINISHING, Finishing, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason, native_finish_reason
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import Interface, Provider
from opensearch_ml_stream.connectors.provider_errors import read_error
from opensearch_ml_stream.connectors.providers.accumulated_text import PiecesOrVersions
from opensearch_ml_stream.connectors.providers.openai_chat import OPENAI_CHAT, ToolCalls
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec


class DashScope:
    """Reads choice 0 of `output.choices`, or `output.text` where the result format is `text`."""

    __slots__ = ("_finish", "_text", "_tool_calls", "_usage")

    def __init__(self) -> None:
        self._finish: str | None = None
        self._text = PiecesOrVersions()
        self._tool_calls = ToolCalls()
        self._usage: Usage | None = None

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        """Append the chunk of the event's message; an error ends the stream."""
        payload: Any = event.payload
        if payload.get("code"):
            return read_error(payload)
        output = payload["output"]
        text_result = {"message": {"content": output.get("text")}, "finish_reason": output.get("finish_reason")}
        choice = output["choices"][0] if output.get("choices") else text_result
        self._read_message(event_fields.mapping(choice.get("message")), chunks)
        self._finish = native_finish_reason(choice.get("finish_reason")) or self._finish
        if self._finish is not None:
            if rest := self._text.end():
                chunks.append(Chunk(rest))
            self._tool_calls.end(self._finish, chunks)
        if usage := event_fields.mapping(payload.get("usage")):
            self._usage = _read_usage(usage).after(self._usage)
        return FINISHING if self._finish is not None else None

    def end_of_input(self) -> Outcome:
        """Return a good ending if a finish reason has come."""
        if self._finish is None:
            return truncated("its finish reason")
        return Ending(finish_reason(self._finish), self._finish, self._usage)

    def _read_message(self, message: dict[str, Any], chunks: list[Chunk]) -> None:
        content = message.get("content")
        if isinstance(content, list):  # of the multimodal models
            content = "".join(event_fields.text(part.get("text")) for part in event_fields.elements(content))
        text, reasoning = event_fields.text(content), event_fields.text(message.get("reasoning_content"))
        text = self._text.add(text) if text else self._text.end()
        calls = self._tool_calls.read_all(event_fields.elements(message.get("tool_calls") or []))
        if text or reasoning or calls:
            chunks.append(Chunk(text, reasoning, calls))


def _read_usage(usage: dict[str, Any]) -> Usage:
    output_details = event_fields.mapping(usage.get("output_tokens_details"))
    input_details = event_fields.mapping(usage.get("prompt_tokens_details"))
    return Usage(
        input_tokens=event_fields.count(usage.get("input_tokens")),
        output_tokens=event_fields.count(usage.get("output_tokens")),
        total_tokens=event_fields.count(usage.get("total_tokens")),
        cached_tokens=event_fields.count(input_details.get("cached_tokens")),
        reasoning_tokens=event_fields.count(output_details.get("reasoning_tokens")),
        cache_write_tokens=event_fields.count(input_details.get("cache_creation_input_tokens")),
    )


_OPTIONS = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "stop": "stop",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
}

_Member = dict[str, Any]


def _write(conversation: Conversation, refuse: Refuse) -> _Member:
    refuse_names(conversation, refuse)
    refuse_details(conversation, refuse)
    parameters = {
        "result_format": "message",
        **write_options(conversation, refuse, _OPTIONS, besides=REASONING_OPTIONS),
        **_tools(conversation, refuse),
        **_answer_format(conversation),
        **_thinking(conversation, refuse),
    }
    return {"input": {"messages": write_messages(conversation, refuse, _content)}, "parameters": parameters}


def _content(parts: tuple[Part, ...], conversation: Conversation, refuse: Refuse) -> str | list[_Member]:
    content: list[_Member] = []
    for part in parts:
        if isinstance(part, Media) and part.kind in ("image", "audio") and data_url(part):
            content.append({part.kind: data_url(part), **_cache(part)})
        elif isinstance(part, Text | Media):
            content += [{"text": text, **_cache(part)} for text in texts([part], conversation, refuse)]
    is_plain = all(part.keys() == {"text"} for part in content)
    return "\n".join(part["text"] for part in content) if is_plain else content


def _cache(part: Text | Media) -> _Member:
    return {} if part.cache is None else {"cache_control": {"type": part.cache.get("type", "ephemeral")}}


def _tools(conversation: Conversation, refuse: Refuse) -> _Member:
    if not conversation.tools:
        return {}
    refuse_strict(conversation, refuse)
    written: _Member = {"tools": [write_function(tool) for tool in conversation.tools]}
    if conversation.parallel_tool_calls is not None:
        written["parallel_tool_calls"] = conversation.parallel_tool_calls
    choice = conversation.tool_choice
    if choice is not None and choice.mode == "required":
        refuse(conversation.member("tool_choice"), "the provider takes auto, none or the name of a tool")
    elif choice is not None:
        named = {"type": "function", "function": {"name": choice.name}}
        written["tool_choice"] = named if choice.mode == "named" else choice.mode
    return written


def _answer_format(conversation: Conversation) -> _Member:
    asked = conversation.answer_format
    if asked is None:
        return {}
    wanted = schema(asked)
    if wanted is None:
        return {"response_format": {"type": "json_object"}}
    strict = {} if asked.strict is None else {"strict": asked.strict}
    described = {"name": asked.name or "answer", "schema": wanted, **strict}
    return {"response_format": {"type": "json_schema", "json_schema": described}}


def _thinking(conversation: Conversation, refuse: Refuse) -> _Member:
    budget = reasoning_budget(conversation, refuse)
    if budget:
        return {"enable_thinking": True, "thinking_budget": budget}
    return {} if budget is None else {"enable_thinking": False}


DIALECT = Dialect(
    name="dashscope",
    write=_write,
    turns=("input.messages",),
    instead_of={"input.messages": ("input.prompt", "input.history")},
)


DASHSCOPE = StreamSpec(
    name="dashscope/generation",
    enable=Enable(headers={"X-DashScope-SSE": "enable"}, inner_body={"parameters": {"incremental_output": True}}),
    framing=SSEFraming,
    reader=DashScope,
)

PROVIDER = Provider(
    interfaces=(
        Interface(
            (DASHSCOPE.name,),
            DASHSCOPE,
            (r"/services/aigc/(text|multimodal)-generation/generation\?",),
            dialect=DIALECT,
        ),
        Interface(
            ("dashscope/v1/chat/completions",),
            OPENAI_CHAT,
            (r"^//dashscope(-intl|-us)?\.aliyuncs\.com/(.*/)?chat/completions\?",),
            dialect=openai_compatible.DASHSCOPE,
        ),
    ),
    trusted_endpoints=(r"^https://dashscope(-intl|-us)?\.aliyuncs\.com/.*$",),
)
