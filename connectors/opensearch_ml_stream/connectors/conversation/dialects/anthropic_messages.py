"""Anthropic's Messages, as Vertex AI and Bedrock's InvokeModel take them too: https://docs.anthropic.com/en/api/messages.

- System and developer turns before all others are `system`. Later ones are messages of the role `system`, where such
  may stand: after a user's message, before the model's or at the end. Models before Claude Opus 4.8 refuse them.
- `max_tokens` has to be there. Where neither the client nor the template has it, it is DEFAULT_MAX_TOKENS
  (`Dialect.defaults`); beside a budget for reasoning that the client names, it is that and as much again.
- An effort is adaptive thinking with `output_config.effort`, which models since Claude 4.6 have; a budget of tokens is
  `thinking.budget_tokens`, which models up to Claude 4.6 have.
- Earlier reasoning goes back with its signature. Without one it is another model's, which Anthropic refuses, and is
  left out, as a by-product of an earlier answer.
"""

from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk
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
)
from opensearch_ml_stream.connectors.conversation.dialect import ANTHROPIC, Dialect, Refuse, TokenCounting
from opensearch_ml_stream.connectors.conversation.dialects.shared_writing import (
    Message,
    parse_arguments,
    refuse_names,
    refuse_part,
    refuse_rest,
    to_messages,
    wants_summary,
)
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import Finishing, Outcome
from opensearch_ml_stream.connectors.decoding.finish_reasons import after_calls, finish_reason
from opensearch_ml_stream.connectors.event import Event

DEFAULT_MAX_TOKENS = 4096

_SAME_OPTIONS = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "stop": "stop_sequences",
}
_OPTIONS = frozenset(
    {*_SAME_OPTIONS, "reasoning_effort", "reasoning_tokens", "reasoning_summary", "user", "service_tier"}
)
_SERVICE_TIERS = {"auto": "auto", "default": "standard_only", "standard_only": "standard_only"}
_EFFORTS = {
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "xhigh",
    "max": "max",
}
"""https://platform.claude.com/docs/en/build-with-claude/effort has these; `minimal` is the least of them."""

_OF_THINKING = frozenset({"reasoning_effort", "reasoning_tokens", "reasoning_summary"})
_TOOL_CHOICES = {"auto": "auto", "required": "any", "none": "none"}


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes one conversation. `is_hosted`: for another cloud, which fetches no URLs and has its own service tiers."""

    conversation: Conversation
    refuse: Refuse
    is_hosted: bool

    def write(self) -> dict[str, Any]:
        conversation = self.conversation
        takes = _OPTIONS - {"service_tier"} if self.is_hosted else _OPTIONS
        refuse_rest(conversation, self.refuse, takes)
        refuse_names(conversation, self.refuse)
        messages = to_messages(conversation.turns)
        system = list(self._system_blocks(messages.pop(0))) if messages and messages[0].speaker == "system" else []
        body: dict[str, Any] = {"system": system} if system else {}
        body["messages"] = list(self._messages(messages))
        body |= self._tools() | self._options()
        thinking, effort = write_thinking(conversation, self.refuse)
        if thinking:
            body["thinking"] = thinking
            if "budget_tokens" in thinking:
                body.setdefault("max_tokens", thinking["budget_tokens"] + DEFAULT_MAX_TOKENS)
        if config := effort | self._output_format():
            body["output_config"] = config
        return body

    def _messages(self, messages: list[Message]) -> Iterator[dict[str, Any]]:
        before = ""
        for place, message in enumerate(messages):
            if message.speaker == "system":
                follows = messages[place + 1].speaker if place + 1 < len(messages) else "assistant"
                if before != "user" or follows != "assistant":
                    self._refuse_part("system", "it stands after one of the user and before one of the model only")
                    continue
                blocks = list(self._system_blocks(message))
            else:
                blocks = [block for part in message.parts for block in self._blocks(part)]
            if blocks:
                before = message.speaker
                yield {"role": message.speaker, "content": blocks}

    def _system_blocks(self, message: Message) -> Iterator[dict[str, Any]]:
        for part in message.parts:
            if isinstance(part, Text):
                yield from self._blocks(part)
            else:
                self._refuse_part("system", "it holds text only")

    def _blocks(self, part: Part) -> Iterator[dict[str, Any]]:
        """Yield the block of a part: none for an empty text, which Anthropic refuses, or for what is dropped."""
        block: dict[str, Any] | None
        match part:
            case Text():
                block = {"type": "text", "text": part.text} if part.text else None
            case Media():
                block = self._media(part)
            case Call():
                block = self._call(part)
            case Result():
                block = {"type": "tool_result", "tool_use_id": part.id}
                if content := [inner for each in part.parts for inner in self._blocks(each)]:
                    block["content"] = content
                if part.is_error:
                    block["is_error"] = True
            case Reasoning():
                block = _reasoning(part)
        if block is not None:
            cache = None if isinstance(part, Reasoning) else part.cache
            yield block if cache is None else {**block, "cache_control": cache}

    def _media(self, media: Media) -> dict[str, Any] | None:
        if media.kind == "audio":
            return self._refuse_part("audio", "Anthropic's models take no sound")
        if media.detail not in ("", "auto"):
            self._refuse_part("detail", "the provider has no such option")
        source = self._source(media)
        if source is None or media.kind == "image":
            return None if source is None else {"type": "image", "source": source}
        return {"type": "document", "source": source, **({"title": media.name} if media.name else {})}

    def _source(self, media: Media) -> dict[str, Any] | None:
        if media.file_id:
            return self._refuse_part(
                media.kind, "a file is known by its id to the provider that keeps it only; send its data"
            )
        if media.url:
            if self.is_hosted:
                return self._refuse_part(media.kind, "this provider does not fetch URLs; send the data in base64")
            return {"type": "url", "url": media.url}
        if media.text:
            return _text_source(media.text)
        if media.kind == "image":
            if not media.media_type:
                return self._refuse_part("image", "it needs its media type")
            return {"type": "base64", "media_type": media.media_type, "data": media.data}
        if media.media_type.startswith("text/"):
            try:
                return _text_source(b64decode(media.data).decode())
            except ValueError:  # of base64 and of UTF-8
                return self._refuse_part("file", "the data of a text are not UTF-8 in base64")
        if media.media_type not in ("", "application/pdf"):
            return self._refuse_part("file", f"a document is PDF or text, not {media.media_type}")
        return {"type": "base64", "media_type": "application/pdf", "data": media.data}

    def _call(self, call: Call) -> dict[str, Any] | None:
        arguments = parse_arguments(call)
        if arguments is None:
            return self._refuse_part("arguments", "those of a tool call are a JSON object")
        return {"type": "tool_use", "id": call.id, "name": call.name, "input": arguments}

    def _tools(self) -> dict[str, Any]:
        conversation, choice = self.conversation, self.conversation.tool_choice
        body: dict[str, Any] = {"tools": [_tool(tool) for tool in conversation.tools]} if conversation.tools else {}
        if choice is not None and (conversation.tools or choice.mode in ("required", "named")):
            named = {"type": "tool", "name": choice.name}
            body["tool_choice"] = named if choice.mode == "named" else {"type": _TOOL_CHOICES[choice.mode]}
        if conversation.tools and conversation.parallel_tool_calls is False:
            written = body.setdefault("tool_choice", {"type": "auto"})
            if written["type"] != "none":
                written["disable_parallel_tool_use"] = True
        return body

    def _options(self) -> dict[str, Any]:
        conversation, options = self.conversation, dict(self.conversation.options)
        if refuse_heat(conversation, self.refuse):
            del options["temperature"]
        body = {own: options[name] for name, own in _SAME_OPTIONS.items() if name in options}
        if "user" in options:
            body["metadata"] = {"user_id": options["user"]}
        if (tier := options.get("service_tier")) in _SERVICE_TIERS and not self.is_hosted:
            body["service_tier"] = _SERVICE_TIERS[tier]
        elif tier is not None and not self.is_hosted:
            self.refuse(conversation.member("service_tier"), "Anthropic's are auto and default")
        return body

    def _output_format(self) -> dict[str, Any]:
        """Return the format of the answer. Its name is a label of the client's; a description goes to the schema."""
        answer = self.conversation.answer_format
        if answer is None:
            return {}
        if answer.schema is None:
            self.refuse(self.conversation.member("answer_format"), "Anthropic takes JSON of a schema only")
            return {}
        described = {"description": answer.description} if answer.description else {}
        return {"format": {"type": "json_schema", "schema": described | dict(answer.schema)}}

    def _refuse_part(self, what: str, why: str) -> dict[str, Any] | None:
        """Refuse what is in a message; return what is written in its place where it is dropped: nothing."""
        refuse_part(self.conversation, self.refuse, what, why)
        return None


def write_thinking(conversation: Conversation, refuse: Refuse) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the members `thinking` and `output_config` that say how much is to be thought; empty for what is not."""
    options = conversation.options
    if options.keys().isdisjoint(_OF_THINKING):
        return {}, {}
    effort, budget, summary = (options.get(f"reasoning_{name}") for name in ("effort", "tokens", "summary"))
    thinking: dict[str, Any] = {}
    config: dict[str, Any] = {}
    if effort == "none" or budget == 0:
        return {"type": "disabled"}, {}
    if effort is not None:
        if effort not in _EFFORTS:
            refuse(conversation.member("reasoning_effort"), f"known are {', '.join(('none', *_EFFORTS))}")
        else:
            thinking, config = {"type": "adaptive"}, {"effort": _EFFORTS[effort]}
    if budget is not None:
        if budget >= options.get("max_tokens", budget + 1):
            refuse(
                conversation.member("reasoning_tokens"), f"it has to be less than {conversation.member('max_tokens')}"
            )
        else:
            thinking = {"type": "enabled", "budget_tokens": budget}
    if wants_summary(summary):
        thinking = {**(thinking or {"type": "adaptive"}), "display": "summarized"}
    elif summary is not None and thinking:
        thinking = {**thinking, "display": "omitted"}
    return thinking, config


def refuse_heat(conversation: Conversation, refuse: Refuse) -> bool:
    """Refuse a temperature over 1; return whether there is one, which is then left out."""
    is_hot: bool = conversation.options.get("temperature", 0) > 1
    if is_hot:
        refuse(conversation.member("temperature"), "the provider takes 0 to 1")
    return is_hot


def _reasoning(reasoning: Reasoning) -> dict[str, Any] | None:
    if reasoning.encrypted:
        return {"type": "redacted_thinking", "data": reasoning.encrypted}
    if reasoning.signature:
        return {"type": "thinking", "thinking": reasoning.text, "signature": reasoning.signature}
    return None


def _text_source(text: str) -> dict[str, Any]:
    return {"type": "text", "media_type": "text/plain", "data": text}


def _tool(tool: Tool) -> dict[str, Any]:
    written: dict[str, Any] = {"name": tool.name}
    if tool.description:
        written["description"] = tool.description
    written["input_schema"] = tool.schema
    if tool.strict:
        written["strict"] = True
    if tool.cache is not None:
        written["cache_control"] = tool.cache
    return written


def _write(conversation: Conversation, refuse: Refuse, *, is_hosted: bool) -> dict[str, Any]:
    return _Writer(conversation, refuse, is_hosted).write()


def _adapt_to_host(body: dict[str, Any], refuse: Refuse) -> dict[str, Any]:
    """Return the body of a client of Anthropic's own API without what other clouds do not have."""
    if "service_tier" in body:
        refuse("service_tier", "this provider has no service tiers of Anthropic's")
        del body["service_tier"]
    return body


# What a client is told in other ways: that the stream lives, and how it ends.
_NOT_PASSED = ("ping", "message_stop", "error")
_DELTA_EVENT, _TEXT_DELTA = frozenset({"type", "index", "delta"}), frozenset({"type", "text"})


class ChooseMoreThanText:
    """Chooses events of Anthropic's, but a delta of text alone.

    That one is the next text of the block that was started last, as its text says. A delta that says more, or is of
    another block, is chosen.
    """

    __slots__ = ("_block", "_has_called")

    def __init__(self, wants_usage: bool = True) -> None:
        self._block: object = None  # the number of the block that was started last
        self._has_called = False

    def __call__(self, event: Event, chunks: Sequence[Chunk], outcome: Outcome | Finishing | None) -> Event | None:
        """Choose an event; see `ChooseEvent`."""
        if not self._says_more_than_text(event.payload):
            return None
        if any(chunk.tool_calls for chunk in chunks):
            self._has_called = True
        return self._ended_by_calls(event) if self._has_called else event

    def _ended_by_calls(self, event: Event) -> Event:
        """Return an event that does not say of an answer with calls that it has finished."""
        payload = event.payload
        member = {"message_delta": "delta", "message_start": "message"}.get(payload["type"])
        if member is None or not isinstance(payload.get(member), dict):
            return event
        ended = end_with_calls(payload[member])
        return event if ended is payload[member] else Event.of({**payload, member: ended}, event.name)

    def _says_more_than_text(self, payload: dict[str, Any]) -> bool:
        kind = payload.get("type")
        if kind == "content_block_start":
            self._block = payload.get("index")
        if kind != "content_block_delta":
            return kind is not None and kind not in _NOT_PASSED
        delta = event_fields.mapping(payload.get("delta"))
        is_text = delta.get("type") == "text_delta" and delta.keys() == _TEXT_DELTA and delta["text"] != ""
        is_next = self._block is None or payload.get("index") == self._block
        return not (is_text and is_next and payload.keys() == _DELTA_EVENT)


def end_with_calls(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message with calls, or the end of one, with the stop reason for that where its provider said the end."""
    word = event_fields.name(message.get("stop_reason"))
    if word is None:
        return message
    reason = finish_reason(word)
    return message if after_calls(reason) == reason else {**message, "stop_reason": "tool_use"}


# What a connector's template may add, and Anthropic does not take where it only counts.
_OF_THE_ANSWER = frozenset({
    "max_tokens", "metadata", "service_tier", "stop_sequences", "stream", "temperature", "top_k", "top_p",
})  # fmt: skip


def _counted(body: JSONObject, path: str) -> JSONObject:
    return {name: body[name] for name in body if name not in _OF_THE_ANSWER}


ANTHROPIC_MESSAGES = Dialect(
    ANTHROPIC,
    partial(_write, is_hosted=False),
    turns=("system", "messages"),
    defaults={"max_tokens": DEFAULT_MAX_TOKENS},
    as_sent=ChooseMoreThanText,
    counting=TokenCounting("/v1/messages", "/v1/messages/count_tokens", _counted),
)
"""Anthropic's own API."""

HOSTED_MESSAGES = replace(ANTHROPIC_MESSAGES, write=partial(_write, is_hosted=True), adapt=_adapt_to_host)
"""Vertex AI's, and InvokeModel's of Bedrock, whose templates have `anthropic_version`."""
