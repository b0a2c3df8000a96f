"""Anthropic's events for clients of Anthropic's API: what their chunks say is what was sent."""

import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, TextRun, ToolCall, to_chunk_list
from opensearch_ml_stream.connectors.conversation.dialect import Dialect
from opensearch_ml_stream.connectors.conversation.dialects.anthropic_messages import (
    ANTHROPIC_MESSAGES,
    HOSTED_MESSAGES,
)
from opensearch_ml_stream.connectors.decoding.aws_eventstream import AWSEventStreamFraming
from opensearch_ml_stream.connectors.decoding.decoder import Decoder, FastPathDecoder
from opensearch_ml_stream.connectors.decoding.sse import SSEFraming
from opensearch_ml_stream.connectors.event import Event
from tests.conversation.sent_streams import decoder_as_sent
from tests.providers.eventstream_frames import METRICS, event, exception, invoke_chunk
from tests.providers.recorded_streams import ALL_STREAMS, STREAMS, join_chunks, outcome_fields, play
from tests.providers.recordings.recording_files import RECORDINGS
from tests.providers.stream_bodies import sse

MESSAGES = "anthropic/v1/messages"
ALL: tuple[Any, ...] = (*RECORDINGS, *ALL_STREAMS)
RECORDED = [one for one in ALL if one.preset == MESSAGES]
START = {"type": "message_start", "message": {"id": "m", "model": "c", "content": [], "usage": {"input_tokens": 5}}}
BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
DELTA = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}
STOP = {"type": "message_stop"}


def text(words: str, index: int = 0) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": words}}


def decoder(preset: str = MESSAGES, dialect: Dialect = ANTHROPIC_MESSAGES) -> Decoder | FastPathDecoder:
    return decoder_as_sent(preset, dialect)


def restored(chunks: list[Chunk]) -> Iterator[dict[str, Any]]:
    """The events, as one writes them who knows which block was started last."""
    index = 0
    for chunk in chunks:
        if chunk.event is None:
            assert chunk == Chunk(chunk.text)
            yield text(chunk.text, index)
            continue
        payload = chunk.event.payload
        if payload["type"] == "content_block_start":
            index = payload["index"]
        yield payload


def payloads(chunks: list[Chunk]) -> list[Any]:
    return [chunk.event and chunk.event.payload for chunk in chunks]


def sent(data: bytes) -> Iterator[dict[str, Any]]:
    """The events of a body up to its end, but for those that are not passed."""
    framing = SSEFraming()
    for one in (*framing.feed(data), *framing.close()):
        payload = orjson.loads(one.data)
        if payload["type"] in ("message_stop", "error"):
            return
        if payload["type"] != "ping":
            yield payload


@pytest.mark.parametrize("stream", RECORDED, ids=lambda stream: stream.name)
@pytest.mark.parametrize("size", [1, 7, 1000, 1_000_000])
def test_the_chunks_of_a_recorded_stream_hold_its_events(stream: Any, size: int) -> None:
    pieces = [stream.data[start : start + size] for start in range(0, len(stream.data), size)]
    chunks, outcome = play(decoder(), pieces)
    assert list(restored(chunks)) == list(sent(stream.data))
    plain, plain_outcome = play(stream.decoder(), [stream.data])
    assert join_chunks(chunks) == join_chunks(plain)
    assert [chunk.signature for chunk in chunks if chunk.signature] == [
        chunk.signature for chunk in plain if chunk.signature
    ]
    assert outcome_fields(outcome) == outcome_fields(plain_outcome)


def test_there_are_recorded_streams_of_every_kind_of_event() -> None:
    kinds = {payload.get("delta", {}).get("type", payload["type"]) for one in RECORDED for payload in sent(one.data)}
    assert kinds >= {"input_json_delta", "thinking_delta", "signature_delta", "content_block_stop", "message_delta"}


def test_texts_take_the_fast_path() -> None:
    reader = decoder()
    reader.feed(sse(START, BLOCK, text("a"), text("b")))
    assert reader.feed(sse(text("c"))) == TextRun(b"c")
    assert reader.feed(sse(text("d"), text('"e"'))) == TextRun(b'd\0\\"e\\"')
    other_block = to_chunk_list(
        reader.feed(sse({"type": "content_block_stop", "index": 0}, {**BLOCK, "index": 1}, text("f", 1)))
    )
    assert [chunk.text for chunk in other_block] == ["", "", "f"]
    assert not other_block[-1].event


CALL = {"type": "tool_use", "id": "c", "name": "t", "input": {}}


@pytest.mark.parametrize(("said", "told"), [("end_turn", "tool_use"), ("stop_sequence", "tool_use"),
                                            ("max_tokens", "max_tokens"), (None, None)])  # fmt: skip
@pytest.mark.parametrize("block", [CALL, {**CALL, "type": "server_tool_use"}])
def test_a_message_with_calls_does_not_end_as_a_finished_one(said: str, told: str, block: dict[str, Any]) -> None:
    told = told if block is CALL else said
    end = {"stop_reason": said, "stop_sequence": None}
    delta = {**DELTA, "delta": end}
    chunks, _ = play(decoder(), [sse(START, {**BLOCK, "content_block": block}, delta, STOP)])
    assert payloads(chunks)[-1] == {**delta, "delta": {**end, "stop_reason": told}}
    start = {"type": "message_start", "message": {"content": [block], "stop_reason": said}}
    chunks, _ = play(decoder(), [sse(start, STOP)])
    assert payloads(chunks) == [{**start, "message": {"content": [block], "stop_reason": told}}]


@pytest.mark.parametrize(
    "delta",
    [
        {**text("a"), "p": "abc"},
        text("a", 1),
        text(""),
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a", "x": 1}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"a": 1}}},
        {"type": "acme_event"},
    ],
)
def test_what_more_than_text_says_is_passed_as_it_was_sent(delta: dict[str, Any]) -> None:
    chunks, _ = play(decoder(), [sse(START, BLOCK, delta, {"type": "ping"}, DELTA, STOP)])
    assert payloads(chunks) == [START, BLOCK, delta, DELTA]


def test_an_event_that_says_several_things_is_one_chunk() -> None:
    content = [
        {"type": "thinking", "thinking": "Hm", "signature": "c2ln"},
        {"type": "text", "text": "Hi"},
        {"type": "tool_use", "id": "c", "name": "t", "input": {"a": 1}},
    ]
    start = {"type": "message_start", "message": {"content": content}}
    chunks, _ = play(decoder(), [sse(start, DELTA, STOP)])
    calls = (ToolCall(0, "c", "t"), ToolCall(0, arguments='{"a":1}'))
    assert chunks[0] == Chunk("Hi", "Hm", calls, signature="c2ln", event=Event("", json.dumps(start).encode()))


def test_a_text_without_the_number_of_its_block_is_read_once() -> None:
    bare = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}}
    chunks, outcome = play(decoder(), [sse(START, BLOCK, bare, DELTA, STOP)])
    assert payloads(chunks) == [START, BLOCK, bare, DELTA]
    assert "".join(chunk.text for chunk in chunks) == "a"
    assert isinstance(outcome, Ending)


def test_an_error_is_not_passed() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    chunks, outcome = play(decoder(), [sse(START, BLOCK, error)])
    assert payloads(chunks) == [START, BLOCK]
    assert not isinstance(outcome, Ending)


def test_of_bedrock_the_event_within_is_passed() -> None:
    call = {"type": "tool_use", "id": "c", "name": "t", "input": {}}
    delta = {**DELTA, "delta": {"stop_reason": "tool_use"}}
    events = [START, BLOCK, text("a"), {**BLOCK, "index": 1, "content_block": call}, delta]
    body = b"".join([event("other", {}), *map(invoke_chunk, [*events, {**STOP, **METRICS}])])
    for size in (1, 50, 10_000):
        pieces = [body[start : start + size] for start in range(0, len(body), size)]
        chunks, outcome = play(decoder("bedrock/invoke", HOSTED_MESSAGES), pieces)
        assert list(restored(chunks)) == events
        assert isinstance(outcome, Ending)
    _, outcome = play(decoder("bedrock/invoke", HOSTED_MESSAGES), [exception("throttlingException", "slow down")])
    assert not isinstance(outcome, Ending)


def test_recorded_events_of_bedrock_are_restored() -> None:
    recorded = STREAMS["bedrock-invoke-anthropic"]
    framing = AWSEventStreamFraming()
    events = [orjson.loads(b64decode(orjson.loads(one.data)["bytes"])) for one in framing.feed(recorded.data)]
    chunks, _ = play(decoder("bedrock/invoke", HOSTED_MESSAGES), [recorded.data])
    assert list(restored(chunks)) == [one for one in events if one["type"] not in ("ping", "message_stop")]


@pytest.mark.parametrize(
    "event",
    [{"type": "message_start"}, {"type": "message_start", "message": None}, {"type": "content_block_start"},
     {"type": "content_block_delta", "delta": None}, {"type": "content_block_delta", "delta": {"type": "text_delta"}},
     {"type": "message_delta", "delta": None}, {"type": "message_delta", "usage": []}],
)  # fmt: skip
def test_an_event_without_what_it_should_have_costs_no_answer(event: dict[str, Any]) -> None:
    chunks, outcome = play(decoder(), [sse(START, event, BLOCK, text("a"), DELTA, STOP)])
    assert "".join(chunk.text for chunk in chunks) == "a"
    assert isinstance(outcome, Ending)


def test_calls_without_ids_and_blocks_without_indices_are_read() -> None:
    starts = [{"type": "content_block_start", "content_block": {"type": "tool_use", "name": name}} for name in "fg"]
    pieces = [
        {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": text}}
        for text in ('{"a":1}', "{}")
    ]
    stop = {"type": "content_block_stop"}
    events = [event for start, piece in zip(starts, pieces, strict=True) for event in (start, piece, stop)]
    chunks, _ = play(decoder(), [sse(START, *events, DELTA, STOP)])
    assert [call for chunk in chunks for call in chunk.tool_calls] == [
        ToolCall(0, None, "f"), ToolCall(0, arguments='{"a":1}'), ToolCall(1, None, "g"), ToolCall(1, arguments="{}"),
    ]  # fmt: skip
