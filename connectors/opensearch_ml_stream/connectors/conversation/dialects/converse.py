"""Amazon Bedrock's Converse: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html.

One form for the models of many makers. What only Anthropic's take (`top_k`, thinking) goes to
`additionalModelRequestFields`, where the URL or `_llm_interface` says that the model is theirs.
"""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
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
)
from opensearch_ml_stream.connectors.conversation.dialect import Dialect, Refuse, TokenCounting
from opensearch_ml_stream.connectors.conversation.dialects.alternating_turns import (
    Message,
    refuse_names,
    refuse_part,
    refuse_rest,
    to_messages,
)
from opensearch_ml_stream.connectors.conversation.dialects.anthropic_messages import (
    DEFAULT_MAX_TOKENS,
    refuse_heat,
    write_thinking,
)
from opensearch_ml_stream.connectors.conversation.dialects.written_parts import parse_arguments
from opensearch_ml_stream.connectors.syntax.compact_json import to_json

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
