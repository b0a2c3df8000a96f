"""Answers that a provider of OpenAI's Responses writes in any of the ways of servers that are not well formed.

An answer is meant, then written with faults; OpenAI's SDK reads what was meant behind `/v1/responses`, by its events,
its streaming helper and the response at the end. `_predict/stream` says the same.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from integration_tests.fuzz.bounds import TIMEOUT_SECONDS, tries

from opensearch_ml_stream.connectors.chunks import Ending
from opensearch_ml_stream.connectors.known_providers import SHIPPED
from tests.client_dialects.test_recorded_answers import RESPONSES, replayed
from tests.conversation.sent_streams import decoder_as_sent
from tests.providers.recorded_streams import join_chunks, play
from tests.providers.recordings.sdk_readers import read_responses, stream_responses
from tests.providers.stream_bodies import sse

pytestmark = pytest.mark.timeout(TIMEOUT_SECONDS)

PRESET = "openai/v1/responses"
Body = dict[str, Any]
Meant = tuple[str, tuple[str, ...]]
_TEXTS = st.lists(st.sampled_from(["a", " b\n", '"', "é", "\\", "\u2028", "\U0001f642"]), min_size=1, max_size=3)
_ARGUMENTS = st.sampled_from([('{"q":', '"é"}'), ("{}",), ('{"', 'q":1', "}")])
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
# Which of the events that can tell a text do so: at least one of them, and whether items and parts are begun and done.
_TELLING = ("deltas", "texts", "items", "final")


@st.composite
def answers(draw: st.DrawFn) -> list[Meant]:
    kinds = draw(st.lists(st.sampled_from(["message", "reasoning", *_CALLS]), min_size=1, max_size=4))
    return [(kind, draw(_ARGUMENTS if kind == "function_call" else _TEXTS.map(tuple))) for kind in kinds]


def one_of(draw: st.DrawFn, *ways: Any) -> Any:
    return draw(st.sampled_from(ways))


class Writer:
    """Writes the events of one response. A fault is drawn for each place where servers are known to have one."""

    def __init__(self, draw: st.DrawFn, meant: list[Meant]) -> None:
        self._draw, self._meant = draw, meant
        self._place = one_of(draw, "right", "right", "by id", "null", "by index", "other ids", "all 0", "from 3")
        self._tells = draw(st.sets(st.sampled_from(_TELLING), min_size=1))
        is_named = self._tells & {"items", "final"} or not any(kind in _CALLS for kind, _ in meant)
        self._is_begun = draw(st.booleans()) or not is_named or not self._place.startswith("right")
        self._has_parts = draw(st.booleans())
        self._count = 0

    def write(self) -> Iterator[Body]:
        draw = self._draw
        life = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "in_progress"}
        yield {"type": "response.created", "response": life | one_of(draw, {"output": []}, {"output": None}, {})}
        if draw(st.booleans()):
            yield {"type": "response.in_progress", "response": life | one_of(draw, {}, {"id": "x"}, {"id": None})}
        for place in range(len(self._meant)):
            yield from self._item(place)
        output = [self._as_done(place) for place in range(len(self._meant))]
        if "final" not in self._tells:
            output = one_of(draw, [], None)
        usage = {"input_tokens": 10, "output_tokens": 5}
        usage |= one_of(draw, {"total_tokens": 15}, {"total_tokens": 15}, {}, {"total_tokens": None})
        end = life | {"status": "completed", "output": output, "usage": usage}
        yield {
            "type": one_of(draw, "response.completed", "response.completed", "response.done"),
            "response": end | one_of(draw, {}, {}, {"id": "x"}, {"status": None}),
        }

    def _id(self, place: int) -> str:
        self._count += 1
        return f"x{self._count}" if self._place == "other ids" else f"i{place}"

    def _where(self, place: int, member: str = "item_id") -> Body:
        index: Body = {"by id": {}, "null": {"output_index": None}, "all 0": {"output_index": 0}}
        where: Body = index.get(self._place, {"output_index": place + 3 * (self._place == "from 3")})
        return where if self._place == "by index" or not member else {**where, member: self._id(place)}

    def _as_done(self, place: int) -> Body:
        draw, (kind, pieces) = self._draw, self._meant[place]
        text = "".join(pieces)
        item: Body = {"type": kind, "id": self._id(place), "status": "completed"}
        if self._place == "by index":
            del item["id"]
        if member := _CALLS.get(kind):
            whole = json.loads(text) if kind == "function_call" and draw(st.booleans()) else text
            item |= {"call_id": f"c{place}", "name": f"f{place}", member: whole}
            return item
        if kind == "reasoning":
            item["summary"] = [{"type": "summary_text", "text": text}]
            return item
        part = {"type": one_of(draw, "output_text", "text"), "text": text} | one_of(draw, {"annotations": []}, {})
        item |= one_of(draw, {"role": "assistant"}, {}) | {"content": one_of(draw, [part], [part], text)}
        return item

    def _as_begun(self, place: int) -> Body:
        draw, done = self._draw, self._as_done(place)
        for member in ("content", "summary", *_CALLS.values()):
            if member in done:
                empty = "" if member in _CALLS.values() else []
                done |= one_of(draw, {member: empty}, {member: empty}, {member: None})
        return done | {"status": "in_progress"}

    def _item(self, place: int) -> Iterator[Body]:
        draw, (kind, pieces) = self._draw, self._meant[place]
        if self._is_begun:
            for _ in range(1 if self._place == "other ids" else one_of(draw, 1, 1, 2)):
                item = self._as_begun(place)
                yield {"type": "response.output_item.added", **self._where(place, ""), "item": item}
        stem = {"message": "output_text", "reasoning": "reasoning_summary_text", "function_call":
                "function_call_arguments", "custom_tool_call": "custom_tool_call_input"}[kind]  # fmt: skip
        holder = {"message": "content", "reasoning": "summary"}.get(kind)
        number = {} if holder is None else one_of(draw, {f"{holder}_index": 0}, {f"{holder}_index": 0}, {})
        if holder and self._has_parts:
            event = "content_part" if holder == "content" else "reasoning_summary_part"
            part = {"type": "output_text" if holder == "content" else "summary_text", "text": one_of(draw, "", None)}
            yield {"type": f"response.{event}.added", **self._where(place), **number, "part": part}
        for piece in pieces if "deltas" in self._tells else ():
            yield {"type": f"response.{stem}.delta", **self._where(place), **number, "delta": piece}
            if draw(st.booleans()):
                yield {
                    "type": f"response.{stem}.delta",
                    **self._where(place),
                    **number,
                    "delta": one_of(draw, "", None),
                }
        if "texts" in self._tells:
            member = _CALLS.get(kind, "text")
            yield {"type": f"response.{stem}.done", **self._where(place), **number, member: "".join(pieces)}
        if "items" in self._tells:
            for _ in range(1 if self._place == "other ids" else one_of(draw, 1, 1, 2)):
                item = self._as_done(place)
                yield {"type": "response.output_item.done", **self._where(place, ""), "item": item}


@st.composite
def written(draw: st.DrawFn) -> tuple[list[Meant], list[Body], int]:
    meant = draw(answers())
    return meant, list(Writer(draw, meant).write()), draw(st.sampled_from([40, 300, 1 << 20]))


@tries(500)
@given(written())
def test_openai_s_sdk_reads_what_was_meant_however_it_was_written(case: tuple[list[Meant], list[Body], int]) -> None:
    meant, events, size = case
    data = sse(*events)
    body, outcome = replayed(RESPONSES, decoder_as_sent(PRESET), data, size)
    assert isinstance(outcome, Ending)
    text, reasoning = (
        "".join("".join(pieces) for kind, pieces in meant if kind == one) for one in ("message", "reasoning")
    )
    calls = [(kind, place, "".join(pieces)) for place, (kind, pieces) in enumerate(meant) if kind in _CALLS]
    reading, final = read_responses(body), stream_responses(body)
    assert (reading.text, reading.reasoning, final.output_text) == (text, reasoning, text)
    told = [(f"c{place}", f"f{place}", arguments) for _, place, arguments in calls]
    assert [(id, name, _as_meant(arguments)) for id, name, arguments in reading.tools] == [
        (id, name, _as_meant(arguments)) for id, name, arguments in told
    ]
    assert [item.call_id for item in final.output if item.type in _CALLS] == [id for id, _, _ in told]
    assert "".join(part.text for item in final.output if item.type == "reasoning" for part in item.summary) == reasoning
    assert (reading.native, reading.usage) == ("completed", {"input_tokens": 10, "output_tokens": 5})
    assert final.usage.total_tokens == 15
    chunks, _ = play(SHIPPED.presets[PRESET].decoder(), [data])
    plain_text, plain_reasoning, plain_calls = join_chunks(chunks)
    assert (plain_text, plain_reasoning, len(plain_calls)) == (text, reasoning, len(calls))


def _as_meant(arguments: Any) -> Any:
    """Arguments as JSON where they are that."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments
