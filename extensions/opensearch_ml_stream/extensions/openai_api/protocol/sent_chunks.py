"""Chunks and responses of providers with OpenAI's API, for clients of that API: passed on as sent, or repaired.

A well-formed chunk is passed on: it fits the API's schemas and what came before, with one id, one role, calls that are
numbered from 0 and named once, and a correct finish reason. Many servers with this API send other chunks, which its
clients cannot read. In those, what the provider's reader understood replaces what is wrong; the rest stays.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count, islice, repeat
from operator import is_not
from typing import Any, ClassVar

import msgspec

from opensearch_ml_stream.connectors.chunks import Chunk, ToolCall
from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer, as_one, whole_calls
from opensearch_ml_stream.connectors.decoding.contract import EventReader
from opensearch_ml_stream.connectors.decoding.event_fields import mapping
from opensearch_ml_stream.connectors.decoding.finish_reasons import after_calls, finish_reason, native_finish_reason
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.connectors.providers.openai_chat import OpenAIChat
from opensearch_ml_stream.connectors.providers.openai_completions import OpenAICompletions
from opensearch_ml_stream.extensions.openai_api.protocol.envelope import REASONING, Envelope, usage_object
from opensearch_ml_stream.extensions.openai_api.protocol.schemas import (
    MAX_CHOICES,
    Call,
    CallType,
    ChatChunk,
    Choice,
    Custom,
    Function,
    Logprobs,
    Role,
    TextChoice,
    TextChunk,
    TextLogprobs,
    Usage,
    WholeChoice,
    WholeTextChoice,
    is_of,
)


class _Calls:
    """The calls of one choice that were sent to the client, by the indices that the reader gives them."""

    __slots__ = ("_ids", "_names", "_numbers", "is_function")

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}  # the indices that the client has
        self._names: dict[int, str] = {}
        self._ids: set[str] = set()
        self.is_function = False

    def __contains__(self, index: int) -> bool:
        return index in self._numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def go_on(self, calls: Sequence[Call], fragments: Sequence[ToolCall]) -> bool:
        """Return whether fragments continue their calls correctly as they were sent."""
        if len(calls) != len(fragments):
            return False
        begun, ids = len(self._numbers), [call.id for call in calls if call.id]
        if len(set(ids)) < len(ids):
            return False
        for call, fragment in zip(calls, fragments, strict=True):
            if call.index != self._numbers.get(fragment.index, begun) or self.names_again(fragment):
                return False
            if fragment.index in self._numbers:
                if call.id is not None:
                    return False
            elif self.is_taken(call.id) or call.type is msgspec.UNSET or not (call.function or call.custom):
                return False
            else:
                begun += 1
        return True

    def names_again(self, fragment: ToolCall) -> bool:
        """Return whether a fragment repeats the name of its call: clients would join the two."""
        return bool(fragment.name) and fragment.name == self._names.get(fragment.index)

    def is_taken(self, id: str | None) -> bool:
        """Return whether an id is missing, or that of another call."""
        return not id or id in self._ids

    def add(self, fragment: ToolCall, id: str | None) -> int:
        """Record a fragment that is sent, with the call's id if it begins the call; return the call's index."""
        index = fragment.index
        self._names[index] = self._names.get(index) or fragment.name or ""
        if id is not None:
            self._ids.add(id)
        return self._numbers.setdefault(index, len(self._numbers))


class SentChunks(ABC):
    """The chunks of one stream."""

    _object: ClassVar[str]
    _form: ClassVar[Any]
    _choice_form: ClassVar[Any]
    _whole_choice_form: ClassVar[Any]
    _logprobs_form: ClassVar[Any]

    first: Event | None  # the first chunk with an id, which all chunks get
    _ends: dict[int, str | None]  # of the choices that have begun: the finish reason, None before the end
    _any_end: str | None  # a finish reason, if there was one
    _calls: dict[int, _Calls]  # of choices that have some
    _readers: dict[int, EventReader]  # of all choices but 0, for which the stream has a reader

    def __init__(self, envelope: Envelope) -> None:
        self._made = envelope
        self._id, self.first, self._any_end = "", None, None
        self._ends, self._calls, self._readers = {}, {}, {}

    @property
    def has_ended(self) -> bool:
        """Whether the finish reason of choice 0 was sent."""
        return self._ends.get(0) is not None and not (self._ends[0] == "stop" and 0 in self._calls)

    def event(self, chunk: Chunk, sent: Event) -> Event:
        """Return the event of a chunk, repaired if it is not well formed."""
        try:
            form = msgspec.convert(sent.payload, self._form)
        except msgspec.ValidationError:
            return self._repair(chunk, sent)
        if form.id != self._id and not self._begins(form.id, sent):
            return self._repair(chunk, sent)
        return sent if not form.choices or self._goes_on(form.choices[0], chunk) else self._repair(chunk, sent)

    def response(self, answer: WholeAnswer) -> dict[str, Any]:
        """Return a whole response of the provider, repaired where it is not well formed."""
        sent = answer.response
        repaired = self._repaired_head(sent, self._object.removesuffix(".chunk"))
        if "usage" in repaired:
            repaired["usage"] = None if answer.ending.usage is None else usage_object(answer.ending.usage)
        repaired["choices"] = [
            self._whole_choice(choice, number, answer.chunk) for number, choice in _numbered(sent.get("choices") or ())
        ]
        return {**sent, **repaired}

    @abstractmethod
    def _goes_on(self, choice: Any, chunk: Chunk) -> bool:
        """Return whether a choice continues correctly; if so, record it as sent."""

    @abstractmethod
    def _repair_choice(self, sent: Mapping[str, Any], number: int, chunk: Chunk) -> dict[str, Any]:
        """Return the members of a choice that hold what was read of it, and record them as sent."""

    @abstractmethod
    def _is_whole(self, choice: Any) -> bool:
        """Return whether a choice of a whole response is consistent."""

    @abstractmethod
    def _as_whole(self, choice: dict[str, Any]) -> dict[str, Any]:
        """Return the choice of a chunk as one of a whole response."""

    @abstractmethod
    def _new_reader(self) -> EventReader:
        """Return a reader of one choice."""

    def _begins(self, id: str, sent: Event) -> bool:
        """Return whether a chunk is the first with an id, which all chunks get then."""
        if self._id or not id:
            return False
        self._id, self.first = id, sent
        return True

    def _end(self, number: int, word: Any) -> str | None:
        """Return the finish reason for a provider's word, None if it was sent before; record it as sent."""
        before = self._ends.setdefault(number)
        native = native_finish_reason(word)
        if native is None:
            return None
        reason, calls = finish_reason(native), self._calls.get(number)
        if calls:
            reason = after_calls(reason)
            if calls.is_function and reason == "tool_calls":
                reason = "function_call"
        self._ends[number] = self._any_end = reason
        return None if reason == before else reason

    def _repair(self, chunk: Chunk, sent: Event) -> Event:
        payload: dict[str, Any] = sent.payload
        choices = payload.get("choices")
        if choices == [] and payload.get("object") == "":  # Azure's; clients skip it for that reason
            return sent
        repaired = self._repaired_head(payload, self._object)
        listed = choices if isinstance(choices, list) else []
        valid_choices = [self._choice(choice, number, chunk) for number, choice in _numbered(listed)]
        if listed is not choices or len(valid_choices) != len(listed) or any(map(is_not, valid_choices, listed)):
            repaired["choices"] = valid_choices
        event = Event.of({**payload, **repaired}, sent.name) if repaired else sent
        if self.first is None or self.first is sent:
            self.first = event
        return event

    def _repaired_head(self, payload: Mapping[str, Any], kind: str) -> dict[str, Any]:
        """Return corrected values for members beside the choices that are not well formed."""
        id = payload.get("id")
        self._id = self._id or (id if isinstance(id, str) and id else self._made.id)
        head = {**self._made.head(kind), "id": self._id}
        kept = {name for name in ("created", "model") if type(payload.get(name)) is type(head[name])}
        repaired = {name: value for name, value in head.items() if name not in kept and payload.get(name) != value}
        if not is_of(payload.get("usage"), Usage | None):  # the end has what could be read of it
            repaired["usage"] = None
        return repaired

    def _choice(self, sent: dict[str, Any], number: int, chunk: Chunk) -> dict[str, Any]:
        if number:
            chunk = self._read_other(number, sent)
        with suppress(msgspec.ValidationError):
            form = msgspec.convert(sent, self._choice_form)
            if form.index == number and self._goes_on(form, chunk):
                return sent
        return self._repaired_choice(sent, number, chunk)

    def _whole_choice(self, sent: dict[str, Any], number: int, chunk: Chunk) -> dict[str, Any]:
        with suppress(msgspec.ValidationError):
            form = msgspec.convert(sent, self._whole_choice_form)
            if form.index == number and self._is_whole(form):
                return sent
        as_chunk = {**sent, "delta": sent.get("message")}
        chunk = self._read_other(number, as_chunk) if number else chunk
        chunk = chunk._replace(tool_calls=whole_calls(chunk.tool_calls))
        repaired = self._repaired_choice(as_chunk, number, chunk)
        repaired["finish_reason"] = repaired["finish_reason"] or self._end(number, "stop")
        return self._as_whole(repaired)

    def _repaired_choice(self, sent: dict[str, Any], number: int, chunk: Chunk) -> dict[str, Any]:
        repaired = {**sent, "index": number, **self._repair_choice(sent, number, chunk)}
        repaired["finish_reason"] = self._end(number, sent.get("finish_reason"))
        if not is_of(sent.get("logprobs"), self._logprobs_form):
            repaired["logprobs"] = None
        return repaired

    def _read_other(self, number: int, sent: Mapping[str, Any]) -> Chunk:
        """Read a choice that the stream's own reader skips."""
        if number not in self._readers:
            self._readers[number] = self._new_reader()
        chunks: list[Chunk] = []
        with suppress(ValueError, KeyError, TypeError, IndexError, AttributeError):
            self._readers[number].read(Event.of({"choices": [{**sent, "index": 0}]}), chunks)
        return as_one(chunks)


class SentChatChunks(SentChunks):
    """The chunks of a chat's stream."""

    _object: ClassVar[str] = "chat.completion.chunk"
    _form: ClassVar[Any] = ChatChunk
    _choice_form: ClassVar[Any] = Choice
    _whole_choice_form: ClassVar[Any] = WholeChoice
    _logprobs_form: ClassVar[Any] = Logprobs | None

    def _goes_on(self, choice: Choice, chunk: Chunk) -> bool:
        if (choice.index in self._ends) is (choice.delta.role is not None):  # the role is sent once
            return False
        if chunk.tool_calls or self._calls or self._any_end:
            return self._call_or_end(choice, chunk.tool_calls)
        self._ends[choice.index] = self._any_end = choice.finish_reason
        return True

    def _call_or_end(self, choice: Choice, fragments: Sequence[ToolCall]) -> bool:
        """Return whether calls and a finish reason continue correctly; if so, record them as sent."""
        number, function, reason = choice.index, choice.delta.function_call, choice.finish_reason
        calls = self._calls.get(number) or _Calls()
        if function is not None and any(map(calls.names_again, fragments)):
            return False
        if function is None and fragments and not calls.go_on(choice.delta.tool_calls or (), fragments):
            return False
        before = self._ends.get(number)
        if reason and (reason == before or (reason == "stop" and (calls or fragments))):
            return False
        self._ends[number] = reason or before
        self._any_end = self._any_end or reason
        if fragments:
            self._calls[number] = calls
            calls.is_function = function is not None
            for fragment in fragments:
                calls.add(fragment, None if fragment.index in calls else fragment.id)
        return True

    def _repair_choice(self, sent: Mapping[str, Any], number: int, chunk: Chunk) -> dict[str, Any]:
        delta = mapping(sent.get("delta"))
        repaired = {name: value for name, value in delta.items() if is_of(value, _DELTA.get(name, Any))}
        if number in self._ends:
            repaired.pop("role", None)
        else:
            repaired["role"] = repaired.get("role") or "assistant"
        if isinstance(delta.get("content"), list):
            repaired["content"] = chunk.text.removesuffix(chunk.refusal)
            if chunk.reasoning:
                repaired.pop("reasoning", None)
                repaired[REASONING] = chunk.reasoning
        if chunk.tool_calls:
            repaired |= self._repaired_calls(delta, number, chunk.tool_calls)
        elif repaired.get("tool_calls"):  # they could not be read
            del repaired["tool_calls"]
        return {"delta": repaired}

    def _repaired_calls(self, delta: Mapping[str, Any], number: int, fragments: Sequence[ToolCall]) -> dict[str, Any]:
        calls = self._calls.setdefault(number, _Calls())
        if function := delta.get("function_call"):
            calls.is_function = True
            repaired = _repaired_function(function, calls, fragments[0])
            calls.add(fragments[0], None)
            return {"function_call": repaired}
        sent: Any = delta.get("tool_calls") or []
        pairs = zip(chain(sent if isinstance(sent, list) else [sent], repeat({})), fragments, strict=False)
        return {"tool_calls": [self._repaired_call(call, calls, number, fragment) for call, fragment in pairs]}

    def _repaired_call(self, sent: Mapping[str, Any], calls: _Calls, choice: int, fragment: ToolCall) -> dict[str, Any]:
        call = {name: value for name, value in sent.items() if is_of(value, _CALL.get(name, Any))}
        id = call.pop("id", None)
        if fragment.index not in calls:
            id = self._new_id(len(calls), choice) if calls.is_taken(fragment.id) else fragment.id
            call |= {"id": id, "type": call.get("type") or "function"}
        if not (call.get("type") == "custom" and call.get("custom")):
            call["function"] = _repaired_function(sent.get("function"), calls, fragment)
        return {**call, "index": calls.add(fragment, call.get("id"))}

    def call(self, fragment: ToolCall) -> dict[str, Any]:
        """Return a fragment of choice 0 that is in no event of the provider, and record it as sent."""
        return self._repaired_call({}, self._calls.setdefault(0, _Calls()), 0, fragment)

    def _new_id(self, number: int, choice: int) -> str:
        id = self._made.call_id(number)
        return f"{id}_{choice}" if choice else id

    def _is_whole(self, choice: WholeChoice) -> bool:
        message = choice.message
        calls = message.tool_calls or ()
        if len({call.id for call in calls}) < len(calls) or not all(call.function or call.custom for call in calls):
            return False
        return choice.finish_reason != "stop" or not (calls or message.function_call)

    def _as_whole(self, choice: dict[str, Any]) -> dict[str, Any]:
        message = choice.pop("delta")
        for call in message.get("tool_calls") or ():
            del call["index"]
        return {**choice, "message": message}

    def _new_reader(self) -> EventReader:
        return OpenAIChat()


class SentTextChunks(SentChunks):
    """The chunks of a text completion's stream."""

    _object: ClassVar[str] = "text_completion"
    _form: ClassVar[Any] = TextChunk
    _choice_form: ClassVar[Any] = TextChoice
    _whole_choice_form: ClassVar[Any] = WholeTextChoice
    _logprobs_form: ClassVar[Any] = TextLogprobs | None

    def _goes_on(self, choice: TextChoice, chunk: Chunk) -> bool:
        reason = choice.finish_reason
        if reason and reason == self._ends.get(choice.index):
            return False
        self._ends[choice.index] = reason or self._ends.get(choice.index)
        return True

    def _repair_choice(self, sent: Mapping[str, Any], number: int, chunk: Chunk) -> dict[str, Any]:
        return {"text": chunk.text}

    def _is_whole(self, choice: WholeTextChoice) -> bool:
        return True

    def _as_whole(self, choice: dict[str, Any]) -> dict[str, Any]:
        del choice["delta"]
        return choice

    def _new_reader(self) -> EventReader:
        return OpenAICompletions()


_DELTA = {
    **dict.fromkeys(("content", "refusal", "reasoning_content", "reasoning"), str | None),
    "role": Role | None,
    "tool_calls": list[Any] | None,
    "function_call": Function | None,
}
_WHOLE_NUMBER = re.compile(r"[0-9]{1,3}(?:\.0)?").fullmatch
_CALL = {"type": CallType, "function": None, "custom": Custom | None}


def _repaired_function(sent: Any, calls: _Calls, fragment: ToolCall) -> dict[str, Any]:
    """Return the function of a fragment; only the first fragment of a call has the name."""
    function = {**mapping(sent), "arguments": fragment.arguments}
    function.pop("name", None)
    return {"name": fragment.name, **function} if fragment.name and not calls.names_again(fragment) else function


def _numbered(choices: Iterable[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield choices with their indices: their own, or the lowest free one."""
    taken: set[int] = set()
    for choice in islice(choices, MAX_CHOICES):
        own = choice.get("index")
        if isinstance(own, (str, float)):
            own = int(float(own)) if _WHOLE_NUMBER(str(own)) else None
        if not isinstance(own, int) or not 0 <= own < MAX_CHOICES or own in taken:
            own = next(number for number in count() if number not in taken)
        taken.add(own)
        yield own, choice
