"""Answers that a provider of Anthropic's API writes in any of the ways of servers that are not well formed.

An answer is meant, then written with faults; Anthropic's SDK reads what was meant behind `/v1/messages`.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from integration_tests.fuzz.bounds import TIMEOUT_SECONDS, tries

from opensearch_ml_stream.connectors.chunks import Ending
from tests.client_dialects.test_recorded_answers import ANTHROPICS, replayed
from tests.conversation.sent_streams import decoder_as_sent
from tests.providers.recordings.sdk_readers import read_anthropic
from tests.providers.stream_bodies import sse

pytestmark = pytest.mark.timeout(TIMEOUT_SECONDS)

PRESET = "anthropic/v1/messages"
Body = dict[str, Any]
Block = tuple[str, tuple[str, ...]]
_TEXTS = st.sampled_from(["a", " b\n", '"', "é", "\\", "\u2028", "\U0001f642"])
_ARGUMENTS = st.sampled_from([('{"q":', '"é"}'), ("{}",), ('{"', 'q":1', "}"), ()])
_DELTAS = {"text": ("text_delta", "text"), "thinking": ("thinking_delta", "thinking"),
           "tool_use": ("input_json_delta", "partial_json")}  # fmt: skip


@st.composite
def blocks(draw: st.DrawFn) -> list[Block]:
    """Thinking, texts and calls, as they are meant: each with the pieces in which it comes."""
    kinds = draw(st.lists(st.sampled_from(["text", "thinking", "tool_use"]), max_size=4))
    texts = st.lists(_TEXTS, min_size=1, max_size=3).map(tuple)
    return [(kind, draw(_ARGUMENTS if kind == "tool_use" else texts)) for kind in kinds]


def one_of(draw: st.DrawFn, *ways: Any) -> Any:
    return draw(st.sampled_from(ways))


class Writer:
    """Writes the events of one message. A fault is drawn for each place where servers are known to have one."""

    def __init__(self, draw: st.DrawFn, blocks: list[Block]) -> None:
        self._draw, self._blocks = draw, blocks
        self._first_index = one_of(draw, 0, 0, 1, 7)
        self._step = one_of(draw, 1, 1, 2)
        self._at_once = draw(st.booleans())  # all blocks are open before the first is closed

    def write(self) -> Iterator[Body]:
        draw = self._draw
        yield from self._beginning()
        places = range(len(self._blocks))
        for place in places:
            yield self._start(place)
            if not self._at_once:
                yield from self._pieces(place)
        if self._at_once:
            waiting = [list(self._pieces(place)) for place in places]
            while any(waiting):
                yield draw(st.sampled_from([pieces for pieces in waiting if pieces])).pop(0)
        called = any(kind == "tool_use" for kind, _ in self._blocks)
        word = "tool_use" if called else one_of(draw, "end_turn", "stop", "eos")
        usage = one_of(
            draw,
            {"output_tokens": 5},
            {"output_tokens": 5},
            {"output_tokens": 5.0},
            {"input_tokens": None, "output_tokens": 5},
        )
        yield {"type": "message_delta", "delta": {"stop_reason": word, "stop_sequence": None}, "usage": usage}
        yield {"type": "message_stop"}

    def _beginning(self) -> Iterator[Body]:
        message = {
            "id": one_of(self._draw, "msg_9", "msg_9", "", None),
            "type": one_of(self._draw, "message", "message", None),
            "role": one_of(self._draw, "assistant", "assistant", ""),
            "model": one_of(self._draw, "m", "m", None),
            "content": one_of(self._draw, [], [], None),
            "usage": one_of(self._draw, {"input_tokens": 10, "output_tokens": 0}, {"input_tokens": 10}),
        }
        for _ in range(one_of(self._draw, 1, 1, 2)):
            yield {"type": "message_start", "message": message}

    def _index(self, place: int) -> int:
        return int(self._first_index + place * self._step)

    def _start(self, place: int) -> Body:
        kind, _ = self._blocks[place]
        block: Body = {"type": kind}
        if kind == "tool_use":
            block |= {"name": f"f{place}", "input": one_of(self._draw, {}, None)}
            block |= one_of(self._draw, {"id": f"toolu_{place}"}, {"id": f"toolu_{place}"}, {"id": ""}, {})
        else:
            block |= one_of(self._draw, {kind: ""}, {kind: None}, {})
        return {"type": "content_block_start", "index": self._index(place), "content_block": block}

    def _pieces(self, place: int) -> Iterator[Body]:
        kind, pieces = self._blocks[place]
        delta, member = _DELTAS[kind]
        for piece in pieces:
            yield {"type": "content_block_delta", "index": self._index(place), "delta": {"type": delta, member: piece}}
        for _ in range(one_of(self._draw, 1, 1, 1, 0, 2)):
            yield {"type": "content_block_stop", "index": self._index(place)}


@st.composite
def written(draw: st.DrawFn) -> tuple[list[Block], list[Body], int]:
    meant = draw(blocks())
    return meant, list(Writer(draw, meant).write()), draw(st.sampled_from([40, 300, 1 << 20]))


def in_order(events: list[Body]) -> bool:
    """Whether events are in Anthropic's order, with blocks that are counted from 0."""
    count, is_open = 0, False
    kinds = [event["type"] for event in events]
    if (
        kinds.count("message_start") != 1
        or kinds[0] != "message_start"
        or kinds[-2:] != ["message_delta", "message_stop"]
    ):
        return False
    for event, kind in list(zip(events, kinds, strict=True))[1:-2]:
        allowed = ("content_block_delta", "content_block_stop") if is_open else ("content_block_start",)
        if event["index"] != count or kind not in allowed:
            return False
        is_open, count = kind != "content_block_stop", count + (kind == "content_block_stop")
    return not is_open


@tries(500)
@given(written())
def test_anthropic_s_sdk_reads_what_was_meant_however_it_was_written(case: tuple[list[Block], list[Body], int]) -> None:
    meant, events, size = case
    body, outcome = replayed(ANTHROPICS, decoder_as_sent(PRESET), sse(*events), size)
    assert isinstance(outcome, Ending)
    told = [json.loads(line[6:]) for line in body.splitlines() if line.startswith(b"data: ")]
    assert in_order([event for event in told if event["type"] != "ping"])
    reading = read_anthropic(body)
    said = {kind: ["".join(pieces) for one, pieces in meant if one == kind] for kind in _DELTAS}
    assert sorted(reading.text) == sorted("".join(said["text"]))
    assert sorted(reading.reasoning) == sorted("".join(said["thinking"]))
    assert [arguments for _, _, arguments in reading.tools] == [json.loads(text or "{}") for text in said["tool_use"]]
    ids = [id for id, _, _ in reading.tools]
    assert all(ids) and len(set(ids)) == len(ids)
    assert reading.native == ("tool_use" if said["tool_use"] else "end_turn")
    assert reading.usage == {"input_tokens": 10, "output_tokens": 5}
    places = [event["index"] for event in events if event["type"] == "content_block_delta"]
    if places == sorted(places):
        assert (reading.text, reading.reasoning) == ("".join(said["text"]), "".join(said["thinking"]))
