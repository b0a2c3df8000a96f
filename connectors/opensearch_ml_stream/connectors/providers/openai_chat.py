"""OpenAI chat completions, as Azure, DeepSeek, Mistral, vLLM, Ollama /v1 and others offer them too.

https://platform.openai.com/docs/api-reference/chat-streaming. The usage comes in an event of its own, with empty
`choices`, after the finish reason and before `[DONE]`, so only `[DONE]` or the end of the body ends the stream.
"""

from typing import Any

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.conversation.dialects.chat_completions import COMPATIBLE
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import FINISHING, Finishing, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import after_calls, finish_reason, native_finish_reason
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import Interface, Provider, WholeResponse
from opensearch_ml_stream.connectors.provider_errors import error_without_result, read_error, without_answer
from opensearch_ml_stream.connectors.providers.accumulated_text import AccumulatedText
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec


class ToolCalls:
    """The tool calls of one stream. Some servers leave `index` out, others send 0 for every call."""

    __slots__ = ("_highest", "_ids", "_last", "_moved", "_names", "_with_arguments")

    def __init__(self) -> None:
        self._ids: dict[int, str | None] = {}  # the id of each call, by our index
        self._names: dict[int, str] = {}
        self._with_arguments: set[int] = set()
        self._highest = 0  # the highest of our indexes
        self._moved: dict[int, int] = {}  # the server's index -> ours, where a later call has the index of another
        self._last = 0  # our index of the last fragment

    def read_all(self, calls: list[dict[str, Any]]) -> tuple[ToolCall, ...]:
        """Return the elements of a `tool_calls` as fragments, each with an index that no other call has.

        Several elements without an index are told apart by their place in the list, one alone goes on with the last.
        """
        if len(calls) == 1:
            return (self._read(calls[0], None),)
        return tuple(self._read(call, place) for place, call in enumerate(calls))

    def end(self, native: str, chunks: list[Chunk]) -> None:
        """Append an empty object for each call without arguments, where the answer ends by this word of the provider's.

        Not where that says that the answer was cut off.
        """
        left = self._names.keys() - self._with_arguments
        if left and after_calls(finish_reason(native)) == "tool_calls":
            self._with_arguments |= left
            chunks.append(Chunk(tool_calls=tuple(ToolCall(index, arguments="{}") for index in sorted(left))))

    def _read(self, call: dict[str, Any], place: int | None) -> ToolCall:
        function = call.get("function") or {}
        id, name = event_fields.name(call.get("id")), event_fields.name(function.get("name"))
        own = _number(call.get("index"))
        index = self._index(place if own is None else own, id, name)
        arguments = event_fields.arguments(function.get("arguments"))
        if arguments:
            self._with_arguments.add(index)
        return ToolCall(index, id, name, arguments)

    def _index(self, server_index: int | None, id: str | None, name: str | None) -> int:
        index = self._last if server_index is None else self._moved.get(server_index, server_index)
        if name is not None and self._is_another(index, id, name):
            index = self._highest + 1
            if server_index is not None:
                self._moved[server_index] = index
        if index not in self._ids and len(self._ids) >= event_fields.MAX_TOOL_CALLS:
            raise ValueError("too many tool calls")
        if id is not None or index not in self._ids:
            self._ids[index] = id
            self._highest = max(self._highest, index)
        if name is not None:
            self._names.setdefault(index, name)
        self._last = index
        return index

    def _is_another(self, index: int, id: str | None, name: str) -> bool:
        """Return whether a fragment with a name begins another call than the one that has its index."""
        own = self._ids.get(index)
        if id is not None and own is not None:
            return id != own
        return index in self._with_arguments and name != self._names.get(index, name)


def _number(index: object) -> int | None:
    """Return the server's index, which some write as text or with a point, None for anything else."""
    if isinstance(index, str) and len(index) < 10 and index.isascii() and index.isdecimal():
        return int(index)
    if isinstance(index, float) and index.is_integer():
        return int(index)
    return index if isinstance(index, int) else None


_TEXT_DELTA = frozenset({"role", "content"})  # the names in a delta of text alone
_NOTHING: dict[str, Any] = {}


class OpenAIChat:
    """Reads choice 0 of `chat.completion.chunk` events. An event without choices may be an error, in whatever form."""

    __slots__ = ("_finish", "_has_choice", "_messages", "_model", "_told", "_tool_calls", "_usage")

    def __init__(self) -> None:
        self._finish: str | None = None
        self._has_choice = False
        self._told: set[str] = set()  # which members deltas have told
        self._messages: dict[str, AccumulatedText] = {}  # what messages have told of the others
        self._model = ""  # as the provider writes it
        self._usage: Usage | None = None
        self._tool_calls: ToolCalls | None = None  # created by the first tool call

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        """Append the chunk of choice 0; `[DONE]` or an error ends the stream."""
        if event.data.strip() == b"[DONE]":
            return self._ending() if self._has_choice or self._usage is not None else without_answer()
        payload: Any = event.payload
        choices, usage, choice = payload.get("choices"), payload.get("usage"), _NOTHING
        if choices:
            self._has_choice = True
            choice = choices[0]
            if choice.get("index"):
                choice = _choice_0(choices)
            self._read_choice(choice, chunks)
            if choice.get("finish_reason"):
                self._finish = native_finish_reason(choice["finish_reason"]) or self._finish
                if self._tool_calls is not None and self._finish is not None:
                    self._tool_calls.end(self._finish, chunks)
                usage = usage or choice.get("usage")  # Moonshot's
        groq = event_fields.mapping(payload["x_groq"]) if "x_groq" in payload else _NOTHING
        if isinstance(usage := usage or groq.get("usage"), dict) and usage:
            self._usage = _read_usage(usage).after(self._usage)
        if not self._model and isinstance(model := payload.get("model"), str):
            self._model = model
        if error := payload.get("error") or groq.get("error") or choice.get("error"):  # the last is OpenRouter's
            return read_error({**payload, "error": error})
        if not (choices or usage) and (odd := error_without_result(payload)) is not None:
            return odd
        return FINISHING if self._finish is not None else None

    def end_of_input(self) -> Outcome:
        """Return a good ending if a finish reason has come."""
        return truncated("[DONE]") if self._finish is None else self._ending()

    def _ending(self) -> Ending:
        return Ending(finish_reason(self._finish), self._finish, self._usage, event_fields.name(self._model))

    def _read_choice(self, choice: dict[str, Any], chunks: list[Chunk]) -> None:
        delta = choice.get("delta")
        if delta:
            content = delta.get("content")
            if not isinstance(content, str) or not delta.keys() <= _TEXT_DELTA:
                self._read_delta(delta, chunks)
            elif content:
                self._told.add("content")
                chunks.append(Chunk(content))
        if "message" in choice and (not delta or choice.get("finish_reason")):
            self._read_message(event_fields.mapping(choice["message"]), chunks)

    def _read_delta(self, delta: dict[str, Any], chunks: list[Chunk]) -> None:
        content = delta.get("content")
        reasoning = event_fields.text(delta.get("reasoning_content") or delta.get("reasoning") or "")
        if isinstance(content, list):
            content, thinking = _typed_parts(event_fields.elements(content))
            reasoning += thinking
        refusal = event_fields.text(delta.get("refusal"))
        text = event_fields.text(content) + refusal
        calls = delta.get("tool_calls")
        if function_call := delta.get("function_call"):  # as it was before there were tools
            calls = [{"function": function_call}]
        tool_calls = self._read_tool_calls(calls) if calls else ()
        if text or reasoning or tool_calls:
            self._told.update(name for name, said in (("content", text), ("reasoning", reasoning)) if said)
            chunks.append(Chunk(text, reasoning, tool_calls, refusal=refusal))

    def _read_message(self, message: dict[str, Any], chunks: list[Chunk]) -> None:
        """Append what no delta has told of a message, which some servers send in place of deltas, or after them.

        It is all that there is so far, or, where it does not begin as the one before it, what goes on from that.
        """
        told = set(self._told)
        own: list[Chunk] = []
        if self._tool_calls is not None:
            message = {name: value for name, value in message.items() if name not in ("tool_calls", "function_call")}
        self._read_delta(message, own)
        self._told = told
        for chunk in own:
            text = "" if "content" in told else self._of_message("content", chunk.text)
            reasoning = "" if "reasoning" in told else self._of_message("reasoning", chunk.reasoning)
            if text or reasoning or chunk.tool_calls:
                refusal = chunk.refusal if text == chunk.text else ""
                chunks.append(Chunk(text, reasoning, chunk.tool_calls, refusal=refusal))

    def _of_message(self, member: str, text: str) -> str:
        known = self._messages.setdefault(member, AccumulatedText())
        return known.whole(text, len(text)) or ("" if known.is_of(text) else known.piece(text))

    def _read_tool_calls(self, calls: Any) -> tuple[ToolCall, ...]:
        if self._tool_calls is None:
            self._tool_calls = ToolCalls()
        return self._tool_calls.read_all([calls] if isinstance(calls, dict) else event_fields.elements(calls))


def _choice_0(choices: list[dict[str, Any]]) -> dict[str, Any]:
    """Return choice 0 of several, an empty one if the event holds only others (`n` > 1)."""
    return next((other for other in choices if not other.get("index") or other["index"] == "0"), {})


def _typed_parts(parts: list[Any]) -> tuple[str, str]:
    """Return text and reasoning of a `content` that is a list of typed parts, from Mistral's and Databricks' models.

    Mistral's reasoning is in the `thinking` of a part, Databricks' in the `summary` of one of type `reasoning`.
    """
    text = "".join(event_fields.text(part.get("text")) for part in parts if part.get("type") == "text")
    thinking = (inner for part in parts for inner in part.get("thinking") or part.get("summary") or ())
    return text, "".join(event_fields.text(inner.get("text")) for inner in thinking)


def _read_usage(usage: dict[str, Any]) -> Usage:
    """Return the counts of a `usage` object.

    DeepSeek's `prompt_cache_hit_tokens` and Moonshot's `cached_tokens` count as cached tokens; OpenRouter's
    `cache_write_tokens` and Alibaba's `cache_creation_input_tokens` are those written to a cache. xAI's
    `completion_tokens` leave the reasoning out, as its total shows.
    """
    prompt = event_fields.mapping(usage.get("prompt_tokens_details"))
    completion = event_fields.mapping(usage.get("completion_tokens_details"))
    input_tokens = event_fields.count(usage.get("prompt_tokens"))
    output_tokens = event_fields.count(usage.get("completion_tokens"))
    total_tokens = event_fields.count(usage.get("total_tokens"))
    reasoning_tokens = event_fields.count(completion.get("reasoning_tokens"))
    cached_tokens = prompt.get("cached_tokens", usage.get("prompt_cache_hit_tokens", usage.get("cached_tokens")))
    if reasoning_tokens is not None and total_tokens == event_fields.total(
        input_tokens, output_tokens, reasoning_tokens
    ):
        output_tokens = event_fields.total(output_tokens, reasoning_tokens)
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        total_tokens=total_tokens,
        cached_tokens=event_fields.count(cached_tokens),
        reasoning_tokens=reasoning_tokens,
        cache_write_tokens=event_fields.count(
            prompt.get("cache_write_tokens", prompt.get("cache_creation_input_tokens"))
        ),
    )


OPENAI_CHAT = StreamSpec(
    name="openai/v1/chat/completions",
    enable=Enable(body={"stream": True, "stream_options": {"include_usage": True}}),
    framing=SSEFraming,
    reader=OpenAIChat,
    has_fast_path=True,
)

# For servers that do not know `stream_options` and send the usage unasked or not at all: Mistral, Perplexity,
# Databricks, and Azure OpenAI with an `api-version` before 2024-09.
OPENAI_CHAT_PLAIN = StreamSpec(
    name="mistral/v1/chat/completions",
    enable=Enable(body={"stream": True}, drop=("stream_options",)),
    framing=SSEFraming,
    reader=OpenAIChat,
    has_fast_path=True,
)


WHOLE_CHAT = WholeResponse(
    lambda response: any("message" in choice for choice in response.get("choices") or ()),
    lambda response: [response],
)

PROVIDER = Provider(
    interfaces=(
        Interface((OPENAI_CHAT.name,), OPENAI_CHAT, (r"/chat/completions\?",), WHOLE_CHAT, COMPATIBLE, is_shared=True),
        Interface(
            ("openai.com/v1/chat/completions",),
            OPENAI_CHAT,
            (r"^//[a-z.]+\.openai\.com/(.*/)?chat/completions\?",),
            dialect=openai_compatible.OPENAI,
        ),
    ),
    trusted_endpoints=(r"^https://api\.openai\.com/.*$",),
)
