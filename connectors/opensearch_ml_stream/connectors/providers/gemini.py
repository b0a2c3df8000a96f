"""Gemini, at Google AI and Vertex AI: https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent.

There is no terminator: the usage may come after the finish reason, so only the end of the body ends the stream. The
response to a blocked prompt has no candidates and no finish reason.

Vertex AI can stream the arguments of a function call value by value (`streamFunctionCallArguments`): a piece is
`{"jsonPath": "$.a.b[0]", "stringValue": "..."}`, or with `numberValue`, `boolValue` or `nullValue`. A string may come
in several pieces of one path. Each piece is given on as JSON text that continues the one before, so the values must
come in the order of a text: https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/function-calling.

A signature at a text is a chunk after it. That of a call is at the first chunk of the call, and belongs before it: the
dialect puts the signature of reasoning that stands before a call back at the call.
"""

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import orjson

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.conversation.dialects.gemini_contents import GEMINI as DIALECT
from opensearch_ml_stream.connectors.decoding import event_fields
from opensearch_ml_stream.connectors.decoding.contract import FINISHING, Finishing, Outcome, truncated
from opensearch_ml_stream.connectors.decoding.finish_reasons import finish_reason
from opensearch_ml_stream.connectors.decoding.json_array import JSONArrayFraming
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.provider import Interface, Provider, WholeResponse
from opensearch_ml_stream.connectors.provider_errors import error_without_result, read_error
from opensearch_ml_stream.connectors.providers.accumulated_text import PiecesOrVersions
from opensearch_ml_stream.connectors.stream_spec import Enable, StreamSpec

MAX_PATH_CHARS = 1_000
MAX_PIECES = 10_000  # of one call
MAX_NAME_CHARS = 256 * 1024  # of one call's names, which are kept while their object is open

_STEP = re.compile(r"""\.([^.\[\]'"\s]+)|\[(\d{1,9})\]|\[('[^'\\]*+(?:\\.[^'\\]*+)*+'|"[^"\\]*+(?:\\.[^"\\]*+)*+")\]""")
_ESCAPE = re.compile(r"\\(.)")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")
_Step = str | int


@dataclass(slots=True)
class _Open:
    """An object or array whose end has not been written: where it stands in the one around it, and what it holds."""

    step: _Step
    is_array: bool
    names: set[str] = field(default_factory=set)
    count: int = 0

    def takes(self, step: _Step) -> bool:
        """Return whether a new value may stand at a key or index: an array grows at its end."""
        if self.is_array or isinstance(step, int):
            return self.is_array and step == self.count
        return step not in self.names


class PartialArguments:
    """The arguments of one call, of which all is written but the ends of a string, objects and arrays."""

    __slots__ = ("_name_chars", "_open", "_pieces", "_string", "_unsent")

    def __init__(self, arguments: dict[str, Any]) -> None:
        self._open = [_Open("", is_array=False, names=set(arguments), count=len(arguments))]
        self._unsent = orjson.dumps(arguments).decode()[:-1]
        self._string: tuple[_Step, ...] | None = None  # the path of the string that may go on
        self._pieces = 0
        self._name_chars = 0

    def add(self, piece: dict[str, Any]) -> str:
        """Return the text of the value at the piece's path, or the rest of a string.

        ValueError for a path that cannot be followed from where the text ends, and for more pieces or names than a call
        may have.
        """
        kind = next((kind for kind in _VALUES if kind in piece), None)
        if kind is None:
            return ""
        self._pieces += 1
        if self._pieces > MAX_PIECES or self._name_chars > MAX_NAME_CHARS:
            raise ValueError("too many arguments")
        value = None if kind == "nullValue" else piece[kind]
        text, steps = orjson.dumps(value).decode(), _steps(piece["jsonPath"])
        if isinstance(value, str):
            text = text[1:-1]
            if steps == self._string:
                return text
        before = self._go_to(steps)
        if isinstance(value, str):
            self._string = steps
            return f'{before}"{text}'
        return before + text

    def end(self) -> str:
        """Return what is left to write of the arguments."""
        return self._take_unsent() + self._close_to(0)

    def _go_to(self, steps: tuple[_Step, ...]) -> str:
        """Return the text up to the value at a path, all of which that is not open yet is opened."""
        depth = 0
        while depth < min(len(self._open), len(steps)) - 1 and self._open[depth + 1].step == steps[depth]:
            depth += 1
        starts = all(step == 0 for step in steps[depth + 1 :] if isinstance(step, int))
        if not starts or not self._open[depth].takes(steps[depth]):
            raise ValueError("a JSONPath that does not fit the arguments so far")
        text = [self._take_unsent(), self._close_to(depth + 1)]
        for step, next_step in pairwise(steps[depth:]):
            is_array = isinstance(next_step, int)
            text += [self._enter(step), "[" if is_array else "{"]
            self._open.append(_Open(step, is_array))
        return "".join([*text, self._enter(steps[-1])])

    def _close_to(self, count: int) -> str:
        """Return the end of the open string, if any, and of all but so many open objects and arrays."""
        text = "" if self._string is None else '"'
        self._string = None
        while len(self._open) > count:
            text += "]" if self._open.pop().is_array else "}"
        return text

    def _enter(self, step: _Step) -> str:
        """Return what stands before the next value of the innermost object or array."""
        parent = self._open[-1]
        separator = "," if parent.count else ""
        parent.count += 1
        if isinstance(step, int):
            return separator
        parent.names.add(step)
        self._name_chars += len(step)
        return f"{separator}{orjson.dumps(step).decode()}:"

    def _take_unsent(self) -> str:
        unsent, self._unsent = self._unsent, ""
        return unsent


def _steps(path: str) -> tuple[_Step, ...]:
    """Return the names and indexes of a path to one value. Read here: compiling a JSONPath takes 100 times as long."""
    steps: list[_Step] = []
    position = 1
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            break
        name, index, quoted = step.groups()
        steps.append(int(index) if index else name or _ESCAPE.sub(r"\1", quoted[1:-1]))
        position = step.end()
    if not path.startswith("$") or not steps or position < len(path) or len(path) > MAX_PATH_CHARS:
        raise ValueError("a JSONPath that does not name one value")
    return tuple(steps)


class Gemini:
    """Reads candidate 0 of `GenerateContentResponse` objects."""

    __slots__ = ("_call_count", "_calls", "_finish", "_model", "_partial", "_text", "_usage")

    def __init__(self) -> None:
        self._call_count = 0
        self._calls: dict[tuple[str, str | None], int | None] = {}  # (id, name) -> a hash of arguments that came whole
        self._text = PiecesOrVersions()
        self._finish: str | None = None
        self._model: str | None = None
        self._usage: Usage | None = None
        self._partial: PartialArguments | None = None  # of the call whose arguments are coming

    def read(self, event: Event, chunks: list[Chunk]) -> Outcome | Finishing | None:
        """Append the chunk of candidate 0; an error or a blocked prompt ends the stream."""
        payload: Any = event.payload
        if payload.get("error"):
            return read_error(payload)
        candidates = payload.get("candidates")
        if candidates and not candidates[0].get("index"):
            candidate = candidates[0]
            parts = event_fields.mapping(candidate.get("content")).get("parts")
            if parts:
                self._read_parts(event_fields.elements(parts), chunks)
            if finish := event_fields.name(candidate.get("finishReason")):
                self._finish = finish
                self._append_text(self._text.end(), "", chunks)
                self._end_call(chunks)
        if usage := event_fields.mapping(payload.get("usageMetadata")):
            self._usage = _usage(usage).after(self._usage)
        self._model = self._model or event_fields.name(payload.get("modelVersion"))
        blocked = event_fields.mapping(payload.get("promptFeedback")).get("blockReason")
        if blocked and not candidates:
            return Ending("content_filter", event_fields.name(blocked), self._usage, self._model)
        if not (candidates or usage) and (error := error_without_result(payload)) is not None:
            return error
        return FINISHING if self._finish is not None else None

    def end_of_input(self) -> Outcome:
        """Return a good ending if a finish reason has come."""
        if self._finish is None:
            return truncated("finishReason")
        return Ending(finish_reason(self._finish), self._finish, self._usage, self._model)

    def _read_parts(self, parts: list[dict[str, Any]], chunks: list[Chunk]) -> None:
        text = "".join([event_fields.text(part.get("text")) for part in parts if not part.get("thought")])
        reasoning = "".join([event_fields.text(part.get("text")) for part in parts if part.get("thought")])
        self._append_text(self._text.add(text) if text else self._text.end(), reasoning, chunks)
        for part in parts:
            signature = event_fields.text(part.get("thoughtSignature"))
            if "functionCall" in part:
                self._read_call(event_fields.mapping(part["functionCall"]), signature, chunks)
            elif signature:
                self._append_text(self._text.end(), "", chunks)
                chunks.append(Chunk(signature=signature))

    def _append_text(self, text: str, reasoning: str, chunks: list[Chunk]) -> None:
        if text or reasoning:
            chunks.append(Chunk(text, reasoning))

    def _read_call(self, call: dict[str, Any], signature: str, chunks: list[Chunk]) -> None:
        name, goes_on = event_fields.name(call.get("name")), call.get("willContinue") is True
        id, arguments = event_fields.name(call.get("id")), call.get("args")
        partial = goes_on or "partialArgs" in call
        if id is not None and self._is_known(id, name, None if partial else arguments):  # told once more, whole
            name = None
        if name is not None:
            self._end_call(chunks)  # of a call that came without a last part
            self._call_count += 1
            if partial:
                self._partial = PartialArguments(event_fields.mapping(arguments))
            text = "" if partial else event_fields.arguments(arguments or {})
            chunks.append(Chunk(tool_calls=(ToolCall(self._call_count - 1, id, name, text),), signature=signature))
        if self._partial is not None:
            for piece in call.get("partialArgs") or ():
                self._append_arguments(self._partial.add(piece), chunks)
            if not goes_on:
                self._end_call(chunks)

    def _is_known(self, id: str, name: str | None, arguments: Any) -> bool:
        """Return whether a call was told; some servers give one id to all calls of an answer. Then it is told."""
        said = None if arguments is None else hash(event_fields.arguments(arguments))
        if (id, name) in self._calls:
            return self._calls[id, name] in (None, said)
        if name is not None and len(self._calls) < event_fields.MAX_TOOL_CALLS:
            self._calls[id, name] = said
        return False

    def _end_call(self, chunks: list[Chunk]) -> None:
        """Append what is left of the arguments of the call that is open, if any."""
        if self._partial is not None:
            text = self._partial.end()
            self._partial = None
            self._append_arguments(text, chunks)

    def _append_arguments(self, text: str, chunks: list[Chunk]) -> None:
        if text:
            chunks.append(Chunk(tool_calls=(ToolCall(self._call_count - 1, arguments=text),)))


def _usage(usage: dict[str, Any]) -> Usage:
    """Return the counts; `candidatesTokenCount` leaves the thoughts out, `promptTokenCount` the results of tools."""
    counts = {name: event_fields.count(value) for name, value in usage.items()}
    thoughts = counts.get("thoughtsTokenCount")
    return Usage(
        input_tokens=event_fields.total(counts.get("promptTokenCount"), counts.get("toolUsePromptTokenCount")),
        output_tokens=event_fields.total(counts.get("candidatesTokenCount"), thoughts),
        total_tokens=counts.get("totalTokenCount"),
        cached_tokens=counts.get("cachedContentTokenCount"),
        reasoning_tokens=thoughts,
    )


_STREAM_URL = ((":generateContent", ":streamGenerateContent"),)

GEMINI = StreamSpec(
    name="gemini/v1beta/generatecontent",
    enable=Enable(url=_STREAM_URL, query={"alt": "sse"}),
    framing=SSEFraming,
    reader=Gemini,
)

# For gateways that do not forward the query `alt=sse`.
GEMINI_ARRAY = StreamSpec(
    name="gemini/v1beta/generatecontent/json-array",
    enable=Enable(url=_STREAM_URL),
    framing=JSONArrayFraming,
    reader=Gemini,
)

# Each event of a stream is of the form of a whole response.
_WHOLE = WholeResponse(
    lambda response: "candidates" in response or "promptFeedback" in response, lambda response: [response]
)

PROVIDER = Provider(
    interfaces=(
        Interface((GEMINI.name,), GEMINI, (r":(streamG|g)enerateContent\?",), _WHOLE, DIALECT),
        Interface((GEMINI_ARRAY.name,), GEMINI_ARRAY, dialect=DIALECT),
    ),
    trusted_endpoints=(r"^https://generativelanguage\.googleapis\.com/.*$",),
)
