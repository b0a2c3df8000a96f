"""Bedrock Converse: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html.

In a stream, `metadata` with the usage comes after `messageStop`, so `metadata` ends the stream, or the end of the body
without it.

Requests have one form for the models of many makers. What only Anthropic's models take (`top_k`, thinking) goes to
`additionalModelRequestFields`, where the URL or `_llm_interface` says that the model is one of them.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

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
)
from opensearch_ml_stream.connectors.conversation.dialect import Dialect, Refuse, TokenCounting
from opensearch_ml_stream.connectors.conversation.dialects.anthropic_messages import (
    DEFAULT_MAX_TOKENS,
    refuse_heat,
    write_thinking,
)
from opensearch_ml_stream.connectors.conversation.dialects.shared_writing import (
    Message,
    parse_arguments,
    refuse_names,
    refuse_part,
    refuse_rest,
    to_messages,
)
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.aws_eventstream import AWSEventStreamFraming
from opensearch_ml_stream.connectors.decoding.contract import FINISHING, Finishing, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import WholeResponse
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec
from opensearch_ml_stream.connectors.syntax.jsontext import to_json


class BedrockConverse:
    """Reads events by their name. Nova's InvokeModel sends the same payloads in an object whose key is the name."""

    __slots__ = ("_finish", "_tool_indexes", "_usage", "_whole_inputs")

    def __init__(self) -> None:
        self._finish: str | None = None
        self._tool_indexes: dict[int, int] = {}  # content block index -> tool call index
        self._usage: Usage | None = None
        self._whole_inputs: dict[int, str] = {}  # content block index -> its input, until a fragment replaces it

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        """Append the chunk of a content block event; `metadata` after `messageStop` ends the stream."""
        payload: Any = event.payload
        events = payload if event.name in ("", "chunk") else {event.name: payload}
        for name, inner in events.items():
            is_event = isinstance(inner, dict) or name == event.name
            if is_event and (outcome := self._read_event(name, inner, chunks)):
                return outcome
        return FINISHING if self._finish is not None else None

    def end_of_input(self) -> Outcome:
        """Return a good ending if `messageStop` has come."""
        return truncated("messageStop") if self._finish is None else self._ending()

    def _read_event(self, name: str, payload: dict[str, Any], chunks: list[Chunk]) -> Outcome | None:
        if name == "contentBlockDelta":
            self._read_delta(payload, chunks)
        elif name == "contentBlockStart":
            self._read_start(payload, chunks)
        elif name == "contentBlockStop":
            self._end_block(payload.get("contentBlockIndex"), chunks)
        elif name == "messageStop":
            for block in list(self._whole_inputs):
                self._end_block(block, chunks)
            self._finish = event_fields.name(payload["stopReason"]) or "end_turn"
        elif name == "metadata":
            self._usage = _usage(event_fields.mapping(payload.get("usage"))).after(self._usage)
            return None if self._finish is None else self._ending()
        return None

    def _read_start(self, payload: dict[str, Any], chunks: list[Chunk]) -> None:
        """Read the start of a block, which may hold the first of it, or the whole input of a tool."""
        start = event_fields.mapping(payload.get("start"))
        if tool := event_fields.mapping(start.get("toolUse")):
            block = payload["contentBlockIndex"]
            index = event_fields.tool_index(self._tool_indexes, block)
            call = ToolCall(index, event_fields.name(tool.get("toolUseId")), event_fields.name(tool.get("name")))
            self._whole_inputs[block] = event_fields.arguments(tool.get("input") or {})
            chunks.append(Chunk(tool_calls=(call,)))
        elif start:
            self._read_delta({**payload, "delta": start}, chunks)

    def _read_delta(self, payload: dict[str, Any], chunks: list[Chunk]) -> None:
        delta = payload["delta"]
        text = event_fields.text(delta.get("text"))
        thought = event_fields.mapping(delta.get("reasoningContent"))
        reasoning, signature = event_fields.text(thought.get("text")), event_fields.text(thought.get("signature"))
        fragment = event_fields.arguments(event_fields.mapping(delta.get("toolUse")).get("input"))
        block = payload.get("contentBlockIndex", 0)
        index = self._tool_indexes.get(block)
        if fragment:
            self._whole_inputs.pop(block, None)
        calls = (ToolCall(index, arguments=fragment),) if fragment and index is not None else ()
        if text or reasoning or calls or signature:
            chunks.append(Chunk(text, reasoning, calls, signature=signature))

    def _end_block(self, block: Any, chunks: list[Chunk]) -> None:
        """Append the whole input of a tool whose block ended without a fragment of it."""
        if block in self._whole_inputs:
            text = self._whole_inputs.pop(block)
            chunks.append(Chunk(tool_calls=(ToolCall(self._tool_indexes[block], arguments=text),)))

    def _ending(self) -> Ending:
        return Ending(finish_reason(self._finish), self._finish, self._usage)


def _usage(usage: dict[str, Any]) -> Usage:
    """Return the counts; `inputTokens` leaves out what was read from a cache or written to it."""
    counts = {name: event_fields.count(value) for name, value in usage.items()}
    cached = counts.get("cacheReadInputTokens", counts.get("cacheReadInputTokenCount"))
    written = counts.get("cacheWriteInputTokens", counts.get("cacheWriteInputTokenCount"))
    return Usage(
        input_tokens=event_fields.total(counts.get("inputTokens"), cached, written),
        output_tokens=counts.get("outputTokens"),
        cached_tokens=cached,
        cache_write_tokens=written,
    )


NAME = "bedrock_converse"

_INFERENCE = {"max_tokens": "maxTokens", "temperature": "temperature", "top_p": "topP", "stop": "stopSequences"}
_OPTIONS = frozenset({*_INFERENCE, "metadata", "service_tier"})
_OPTIONS_OF_CLAUDE = _OPTIONS | {"top_k", "reasoning_effort", "reasoning_tokens", "reasoning_summary"}
_SERVICE_TIERS = ("default", "flex", "priority", "reserved")

_IMAGES = ("png", "jpeg", "gif", "webp")
_DOCUMENTS = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9 ()\[\]-]+")  # letters, digits, single spaces, hyphens and brackets may be


@dataclass(slots=True)
class _Writer:
    """Writes one conversation; `document_count` makes names for documents that have none, which all must have."""

    conversation: Conversation
    refuse: Refuse
    is_claude: bool
    document_count: int = 0

    def write(self) -> dict[str, Any]:
        conversation = self.conversation
        refuse_rest(conversation, self.refuse, _OPTIONS_OF_CLAUDE if self.is_claude else _OPTIONS)
        refuse_names(conversation, self.refuse)
        messages = to_messages(conversation.turns)
        system = list(self._system_blocks(messages.pop(0))) if messages and messages[0].speaker == "system" else []
        body: dict[str, Any] = {"system": system} if system else {}
        body["messages"] = list(self._messages(messages))
        options = dict(conversation.options)
        if refuse_heat(conversation, self.refuse):
            del options["temperature"]
        fields = self._model_fields()
        if budget := fields.get("thinking", {}).get("budget_tokens"):
            options.setdefault("max_tokens", budget + DEFAULT_MAX_TOKENS)
        if inference := {own: options[name] for name, own in _INFERENCE.items() if name in options}:
            body["inferenceConfig"] = inference
        if fields:
            body["additionalModelRequestFields"] = fields
        return body | self._tool_config() | self._output_config() | self._about_the_call()

    def _messages(self, messages: Iterable[Message]) -> Iterator[dict[str, Any]]:
        for message in messages:
            if message.speaker == "system":
                self._refuse_part("system", "it comes before all others only")
            elif blocks := [block for part in message.parts for block in self._blocks(part)]:
                yield {"role": message.speaker, "content": blocks}

    def _system_blocks(self, message: Message) -> Iterator[dict[str, Any]]:
        for part in message.parts:
            if isinstance(part, Text):
                yield from self._blocks(part)
            else:
                self._refuse_part("system", "it holds text only")

    def _blocks(self, part: Part) -> Iterator[dict[str, Any]]:
        """Yield the block of a part, and a cache point behind it; none for an empty text or for what is dropped."""
        block: dict[str, Any] | None
        match part:
            case Text():
                block = {"text": part.text} if part.text else None
            case Media():
                block = self._media(part)
            case Call():
                block = self._call(part)
            case Result():
                block = {"toolResult": self._result(part)}
            case Reasoning():
                block = _reasoning(part, needs_signature=self.is_claude)
        if block is not None:
            yield block
            if not isinstance(part, Reasoning) and part.cache is not None:
                yield _cache_point(part.cache)

    def _media(self, media: Media) -> dict[str, Any] | None:
        if media.detail not in ("", "auto"):
            self._refuse_part("detail", "the provider has no such option")
        if media.kind == "audio":
            return self._refuse_part("audio", "Converse takes no sound")
        if media.file_id:
            return self._refuse_part(
                media.kind, "a file is known by its id to the provider that keeps it only; send its data"
            )
        if media.url and not media.url.startswith("s3://"):
            return self._refuse_part(media.kind, "Bedrock fetches s3:// URLs only; send the data in base64")
        try:
            data = b64encode(media.text.encode()).decode() if media.text else media.data
        except UnicodeEncodeError:
            return self._refuse_part("file", "its text holds half of a surrogate pair")
        source = {"s3Location": {"uri": media.url}} if media.url else {"bytes": data}
        return self._image(media, source) if media.kind == "image" else self._document(media, source)

    def _image(self, media: Media, source: JSONObject) -> dict[str, Any] | None:
        kind = media.media_type.removeprefix("image/").replace("jpg", "jpeg")
        if kind not in _IMAGES:
            return self._refuse_part("image", f"it is of a media type of image/ ({', '.join(_IMAGES)})")
        return {"image": {"format": kind, "source": source}}

    def _document(self, media: Media, source: JSONObject) -> dict[str, Any] | None:
        kind = _DOCUMENTS.get(media.media_type or ("text/plain" if media.text else "application/pdf"))
        if kind is None:
            return self._refuse_part("file", f"it is of a media type of {', '.join(_DOCUMENTS)}")
        self.document_count += 1
        name = " ".join(_NOT_IN_NAMES.sub(" ", media.name).split())
        return {"document": {"format": kind, "name": name or f"document {self.document_count}", "source": source}}

    def _call(self, call: Call) -> dict[str, Any] | None:
        arguments = parse_arguments(call)
        if arguments is None:
            return self._refuse_part("arguments", "those of a tool call are a JSON object")
        return {"toolUse": {"toolUseId": call.id, "name": call.name, "input": arguments}}

    def _result(self, result: Result) -> dict[str, Any]:
        content = [block for part in result.parts for block in self._blocks(part)]
        return {"toolUseId": result.id, "content": content, **({"status": "error"} if result.is_error else {})}

    def _tool_config(self) -> dict[str, Any]:
        conversation, choice = self.conversation, self.conversation.tool_choice
        if conversation.parallel_tool_calls is False and conversation.tools:
            self.refuse(
                conversation.member("parallel_tool_calls"), "Converse cannot be told that calls come one by one"
            )
        if not conversation.tools:
            return {}
        if choice is not None and choice.mode == "none":
            if not any(isinstance(part, Call | Result) for turn in conversation.turns for part in turn.parts):
                return {}
            self.refuse(conversation.member("tool_choice"), "Converse cannot be told to call none of the tools")
        config: dict[str, Any] = {"tools": [block for tool in conversation.tools for block in _tool(tool)]}
        if choice is not None and choice.mode == "required":
            config["toolChoice"] = {"any": {}}
        elif choice is not None and choice.mode == "named":
            config["toolChoice"] = {"tool": {"name": choice.name}}
        elif choice is not None and choice.mode == "auto":
            config["toolChoice"] = {"auto": {}}
        return {"toolConfig": config}

    def _output_config(self) -> dict[str, Any]:
        answer = self.conversation.answer_format
        if answer is None:
            return {}
        if answer.schema is None:
            self.refuse(self.conversation.member("answer_format"), "Converse takes JSON of a schema only")
            return {}
        schema = {
            "schema": to_json(answer.schema).decode(),
            "name": answer.name,
            "description": answer.description,
        }
        named = {name: value for name, value in schema.items() if value}
        return {"outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": named}}}}

    def _model_fields(self) -> dict[str, Any]:
        """Return what Anthropic's models take beside what all do."""
        if not self.is_claude:
            return {}
        thinking, config = write_thinking(self.conversation, self.refuse)
        top_k = self.conversation.options.get("top_k")
        fields = {"top_k": top_k, "thinking": thinking or None, "output_config": config or None}
        return {name: value for name, value in fields.items() if value is not None}

    def _about_the_call(self) -> dict[str, Any]:
        options, members = self.conversation.options, dict[str, Any]()
        if metadata := options.get("metadata"):
            if all(isinstance(value, str) for value in metadata.values()):
                members["requestMetadata"] = metadata
            else:
                self.refuse(self.conversation.member("metadata"), "its values are strings")
        tier = options.get("service_tier", "auto")
        if tier in _SERVICE_TIERS:
            members["serviceTier"] = {"type": tier}
        elif tier != "auto":
            self.refuse(self.conversation.member("service_tier"), f"Bedrock's are {', '.join(_SERVICE_TIERS)}")
        return members

    def _refuse_part(self, what: str, why: str) -> dict[str, Any] | None:
        """Refuse what is in a message; return what is written in its place where it is dropped: nothing."""
        refuse_part(self.conversation, self.refuse, what, why)
        return None


def _reasoning(reasoning: Reasoning, *, needs_signature: bool) -> dict[str, Any] | None:
    """Return the block of reasoning; models but Anthropic's sign none of theirs, and those take no other back."""
    if reasoning.encrypted:
        return {"reasoningContent": {"redactedContent": reasoning.encrypted}}
    if not reasoning.signature and (needs_signature or not reasoning.text):
        return None
    signature = {"signature": reasoning.signature} if reasoning.signature else {}
    return {"reasoningContent": {"reasoningText": {"text": reasoning.text, **signature}}}


def _tool(tool: Tool) -> Iterator[dict[str, Any]]:
    specification: dict[str, Any] = {"name": tool.name}
    if tool.description:
        specification["description"] = tool.description
    specification["inputSchema"] = {"json": tool.schema}
    if tool.strict:
        specification["strict"] = True
    yield {"toolSpec": specification}
    if tool.cache is not None:
        yield _cache_point(tool.cache)


def _cache_point(cache: JSONObject) -> dict[str, Any]:
    return {"cachePoint": {"type": "default", **({"ttl": cache["ttl"]} if "ttl" in cache else {})}}


def _write(conversation: Conversation, refuse: Refuse, *, is_claude: bool) -> dict[str, Any]:
    return _Writer(conversation, refuse, is_claude).write()


_COUNTED = ("messages", "system", "toolConfig", "additionalModelRequestFields")


def _counted(body: JSONObject, path: str) -> JSONObject:
    return {"input": {"converse": {name: body[name] for name in _COUNTED if name in body}}}


# 400 for models and profiles that are not counted, 403 without the right bedrock:CountTokens.
_COUNTING = TokenCounting("/converse", "/count-tokens", _counted, "inputTokens", frozenset({400, 403}))

CONVERSE = Dialect(NAME, partial(_write, is_claude=False), turns=("system", "messages"), counting=_COUNTING)
"""Of any model."""

CLAUDE_CONVERSE = Dialect(NAME, partial(_write, is_claude=True), turns=("system", "messages"), counting=_COUNTING)
"""Of Anthropic's models."""


BEDROCK_CONVERSE = StreamSpec(
    name="bedrock/converse",
    enable=Enable(
        url=(
            ("/converse", "/converse-stream"),
            # As in ML Commons, which calls ConverseStream for this interface whatever the action's URL is.
            ("/invoke-with-response-stream", "/converse-stream"),
            ("/invoke", "/converse-stream"),
        ),
    ),
    framing=AWSEventStreamFraming,
    reader=BedrockConverse,
)


def _to_events(response: JSONObject) -> Iterable[JSONObject]:
    """Content blocks, each of one kind."""
    for number, block in enumerate(response["output"]["message"]["content"]):
        delta: dict[str, Any] = {"text": block.get("text")}
        if tool := event_fields.mapping(block.get("toolUse")):
            yield {"contentBlockStart": {"start": {"toolUse": tool}, "contentBlockIndex": number}}
            continue
        if "reasoningContent" in block:
            delta = {"reasoningContent": event_fields.mapping(block["reasoningContent"]).get("reasoningText")}
        yield {"contentBlockDelta": {"delta": delta, "contentBlockIndex": number}}
    yield {"messageStop": {"stopReason": response["stopReason"]}}
    yield {"metadata": {"usage": response.get("usage")}}


WHOLE_CONVERSE = WholeResponse(lambda response: "message" in event_fields.mapping(response.get("output")), _to_events)
