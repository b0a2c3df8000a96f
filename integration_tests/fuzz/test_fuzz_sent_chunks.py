"""Answers that a provider of OpenAI's API writes in any of the ways of servers that are not well formed.

An answer is meant, then written with faults; what OpenAI's SDK reads of it behind `/v1/chat/completions` is what was
meant, and what `_predict/stream` says.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from integration_tests.fuzz.bounds import TIMEOUT_SECONDS, tries
from openai.types.chat import ChatCompletionChunk

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from tests.client_dialects.test_recorded_answers import CHAT, replayed, value_of
from tests.conversation.sent_streams import decoder_as_sent
from tests.providers.recorded_streams import join_chunks, play
from tests.providers.recordings.sdk_readers import read_chat
from tests.providers.stream_bodies import sse

pytestmark = pytest.mark.timeout(TIMEOUT_SECONDS)

PRESET = "openai/v1/chat/completions"
Body = dict[str, Any]
_ABSENT = "(absent)"
_TEXTS = st.sampled_from(["a", " b\n", '"', "é", "\\", "\u2028", "stop", "\U0001f642"])
_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is meant: its name, whether its provider gives it an id, the pieces of its arguments."""

    name: str
    has_id: bool
    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What is meant: reasoning, then texts, then calls, one after the other."""

    reasoning: tuple[str, ...]
    texts: tuple[str, ...]
    calls: tuple[Call, ...]
    finish: str

    def told(self) -> str:
        """The finish reason that a client has to be told."""
        return "tool_calls" if self.calls and self.finish == "stop" else self.finish


@st.composite
def answers(draw: st.DrawFn) -> Answer:
    arguments = st.sampled_from([("{}",), ('{"q":', '"é"}'), ('{"', 'q":1', "}"), ('{"q":{"a":[]}}',)])
    count = draw(st.integers(0, 3))
    calls = tuple(Call(f"f{number}", draw(st.booleans()), draw(arguments)) for number in range(count))
    texts, reasoning = (tuple(draw(st.lists(_TEXTS, max_size=4))) for _ in range(2))
    return Answer(reasoning, texts, calls, draw(st.sampled_from(["stop", "length", "content_filter"])))


def one_of(draw: st.DrawFn, *ways: Any) -> Any:
    return draw(st.sampled_from(ways))


def members(**values: Any) -> Body:
    return {name: value for name, value in values.items() if value is not _ABSENT}


class Writer:
    """Writes the events of one answer. A fault is drawn for each place where servers are known to have one."""

    def __init__(self, draw: st.DrawFn, answer: Answer) -> None:
        self._draw = draw
        self._answer = answer
        self._index = one_of(draw, "right", "right", _ABSENT, None, "same", "text", "from 1")
        self._head = members(
            id=one_of(draw, "c-1", "c-1", _ABSENT, None, "", 7),
            object=one_of(draw, "chat.completion.chunk", "chat.completion.chunk", "chat.completion", _ABSENT, None),
            created=one_of(draw, 1, 1, _ABSENT, None, 1.5, "1"),
            model=one_of(draw, "m", "m", _ABSENT, None, {}),
            provider=one_of(draw, _ABSENT, "X"),
            usage=one_of(draw, _ABSENT, None, {}, "", []),
        )
        self._no_finish = one_of(draw, None, None, "", _ABSENT, 0)
        self._choice_index = one_of(draw, 0, 0, None, _ABSENT, "0", 0.0)
        self._logprobs = one_of(draw, _ABSENT, None, None, [], "x", {"content": None})
        self._content_of = one_of(draw, "text", "text", "parts", "mixed")

    def write(self) -> Iterator[Body]:
        answer, draw = self._answer, self._draw
        if draw(st.booleans()):
            yield self._event({"role": one_of(draw, "assistant", "", None), "content": one_of(draw, "", None)})
        for text in answer.reasoning:
            yield self._event(self._reasoning(text))
        for text in answer.texts:
            yield self._event(members(role=one_of(draw, _ABSENT, "assistant"), content=self._content(text)))
            if draw(st.booleans()):
                yield self._event(one_of(draw, {}, None, {"content": ""}, {"tool_calls": None}, {"tool_calls": []}))
        for number, call in enumerate(answer.calls):
            for place, piece in enumerate(call.pieces):
                calls: Any = [self._call(number, call, place, piece)]
                yield self._event({"content": one_of(draw, None, ""), "tool_calls": one_of(draw, calls, calls[0])})
        word = one_of(
            draw,
            answer.finish,
            answer.told(),
            *{"stop": ["eos", "STOP"], "length": ["max_tokens"]}.get(answer.finish, []),
        )
        for _ in range(one_of(draw, 1, 1, 2)):
            yield self._event({}, word)
        usage = one_of(draw, _USAGE, {**_USAGE, "prompt_tokens": 10.0}, {**_USAGE, "prompt_tokens_details": []})
        yield {**self._head, **members(choices=one_of(draw, [], None, _ABSENT)), "usage": usage}

    def _event(self, delta: Any, finish: Any = None) -> Body:
        choice = members(
            index=self._choice_index, delta=delta, logprobs=self._logprobs, finish_reason=finish or self._no_finish
        )
        return {**self._head, "choices": [choice]}

    def _content(self, text: str) -> Any:
        if self._content_of == "text" or (self._content_of == "mixed" and self._draw(st.booleans())):
            return text
        return [{"type": "text", "text": text}]

    def _reasoning(self, text: str) -> Body:
        name = one_of(self._draw, "reasoning_content", "thinking")
        if name == "thinking":
            return {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": text}]}]}
        return {name: text, "content": one_of(self._draw, None, "")}

    def _call(self, number: int, call: Call, place: int, piece: str) -> Body:
        draw, begins = self._draw, place == 0
        index = {"right": number, "same": 0, "text": str(number), "from 1": number + 1}.get(self._index, self._index)
        nothing = st.sampled_from([_ABSENT, None, ""])
        id = f"id{number}" if call.has_id and (begins or draw(st.booleans())) else draw(nothing)
        name = call.name if begins or draw(st.booleans()) else draw(nothing)
        whole = json.loads(piece) if len(call.pieces) == 1 and draw(st.booleans()) else piece
        function: Any = members(name=name, arguments=whole)
        return members(index=index, id=id, type=one_of(draw, "function", _ABSENT, None, ""), function=function)


@st.composite
def written(draw: st.DrawFn) -> tuple[Answer, list[Body], int]:
    answer = draw(answers())
    return answer, list(Writer(draw, answer).write()), draw(st.sampled_from([40, 300, 1 << 20]))


@tries(500)
@given(written())
def test_openai_s_sdk_reads_what_was_meant_however_it_was_written(case: tuple[Answer, list[Body], int]) -> None:
    answer, events, size = case
    data = sse(*events, "[DONE]")
    body, outcome = replayed(CHAT, decoder_as_sent(PRESET), data, size)
    assert isinstance(outcome, Ending)
    reading = read_chat(body)
    assert (reading.text, reading.reasoning) == ("".join(answer.texts), "".join(answer.reasoning))
    assert [(name, value_of(arguments)) for _, name, arguments in reading.tools] == [
        (call.name, value_of("".join(call.pieces))) for call in answer.calls
    ]
    ids = [id for id, _, _ in reading.tools]
    assert all(ids) and len(set(ids)) == len(ids)
    assert all(id == f"id{number}" for number, id in enumerate(ids) if answer.calls[number].has_id)
    assert (reading.native, reading.usage) == (answer.told(), {"input_tokens": 10, "output_tokens": 5})
    payloads = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: {")]
    for payload in payloads:
        ChatCompletionChunk.model_validate(payload, strict=True)
    assert len({payload["id"] for payload in payloads}) == 1
    assert all(("provider" in payload) == ("provider" in events[0]) for payload in payloads if payload["choices"])
    chunks, plain = play(SHIPPED.presets[PRESET].decoder(), [data])
    assert join_chunks(chunks)[:2] == (reading.text, reading.reasoning)
    assert isinstance(plain, Ending) and plain.finish_reason == reading.native
