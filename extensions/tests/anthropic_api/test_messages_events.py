"""Streams of `/v1/messages`: the order of events, one block at a time, and what Anthropic's own SDK reads of them."""

import json
from typing import Any

import anthropic
import pytest
from anthropic.types import Message

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, TextRun, ToolCall, Usage
from opensearch_ml_stream.connectors.errors import Throttled, UpstreamError
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.extensions.anthropic_api.protocol.messages_events import MessageEvents
from tests.counted_work import steps
from tests.providers.recordings.sdk_readers import read_anthropic

ENDING = Ending()


def stream() -> MessageEvents:
    return MessageEvents("my-model", "msg_1")


def events(data: bytes) -> list[dict[str, Any]]:
    """The events without pings and comments; each has its name in its data, too."""
    found: list[dict[str, Any]] = []
    for block in data.decode().split("\n\n")[:-1]:
        lines = [line for line in block.split("\n") if not line.startswith(":")]
        if lines:
            name, event = lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))
            assert event["type"] == name
            found.append(event)
    return [event for event in found if event["type"] != "ping"]


def names(data: bytes) -> list[str]:
    return [event["type"] for event in events(data)]


def written(*chunks: Chunks, ending: Ending = ENDING) -> bytes:
    wire = stream()
    return b"".join([wire.chunks(each) for each in chunks]) + wire.ending(ending, {})


def call(index: int, name: str | None = None, arguments: str = "", id: str | None = None) -> Chunk:
    return Chunk(tool_calls=(ToolCall(index, id, name, arguments),))


def test_the_events_of_a_text_come_in_anthropics_order() -> None:
    data = written([Chunk("Hel")], [Chunk("lo")], ending=Ending(usage=Usage(3, 2)))
    assert data.count(b"event: ping\n") == 1
    assert data.index(b"content_block_start") < data.index(b"event: ping") < data.index(b"content_block_delta")
    start, *blocks, delta, stop = events(data)
    message = start["message"]
    assert (start["type"], message["id"], message["model"], message["content"]) == (
        "message_start", "msg_1", "my-model", [],
    )  # fmt: skip
    assert blocks == [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}},
        {"type": "content_block_stop", "index": 0},
    ]
    assert delta["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert (delta["usage"]["input_tokens"], delta["usage"]["output_tokens"]) == (3, 2)
    assert stop == {"type": "message_stop"}


def test_a_refusal_in_words_is_text_that_ends_as_a_refusal() -> None:
    found = events(written([Chunk("No.", refusal="No.")], ending=Ending("content_filter", "stop")))
    assert found[2]["delta"] == {"type": "text_delta", "text": "No."}
    assert found[-2]["delta"]["stop_reason"] == "refusal"


def test_a_run_of_texts_is_written_as_its_chunks_are() -> None:
    run = TextRun(b'a\0\\"b\\u00e9\0c')
    assert events(written([Chunk("x", "r")], run)) == events(written([Chunk("x", "r")], run.to_chunks()))


def test_the_text_of_a_run_is_not_decoded_on_the_way() -> None:
    assert b'"text":"\\u00e9"' in written(TextRun(b"\\u00e9"))


def test_reasoning_is_a_thinking_block_that_its_signature_ends() -> None:
    found = events(written([Chunk(reasoning="Hm"), Chunk(signature="sig"), Chunk("Yes")]))[1:-2]
    assert [(event["type"], event["index"]) for event in found] == [
        ("content_block_start", 0), ("content_block_delta", 0), ("content_block_delta", 0), ("content_block_stop", 0),
        ("content_block_start", 1), ("content_block_delta", 1), ("content_block_stop", 1),
    ]  # fmt: skip
    assert found[1]["delta"] == {"type": "thinking_delta", "thinking": "Hm"}
    assert found[2]["delta"] == {"type": "signature_delta", "signature": "sig"}


def test_a_signature_may_stand_without_reasoning() -> None:
    reading = read_anthropic(written([Chunk("Yes"), Chunk(signature="sig")]))
    assert (reading.text, reading.reasoning) == ("Yes", "")
    assert names(written([Chunk(signature="sig")])).count("content_block_start") == 1


def test_each_tool_call_is_a_block_with_its_arguments_as_they_come() -> None:
    chunks = [call(0, "get", id="a"), call(0, arguments='{"q":'), call(0, arguments="1}"), call(1, "put", "{}", "b")]
    found = events(written(chunks, ending=Ending("tool_calls")))
    starts = [event["content_block"] for event in found if event["type"] == "content_block_start"]
    assert starts == [
        {"type": "tool_use", "id": "a", "name": "get", "input": {}},
        {"type": "tool_use", "id": "b", "name": "put", "input": {}},
    ]
    deltas = [
        (event["index"], event["delta"]["partial_json"]) for event in found if "index" in event and "delta" in event
    ]
    assert deltas == [(0, '{"q":'), (0, "1}"), (1, "{}")]
    assert found[-2]["delta"]["stop_reason"] == "tool_use"


def test_the_text_that_a_free_form_tool_is_called_with_is_in_an_object() -> None:
    text = ToolCall(0, "a", "sql", "", is_text=True)
    chunks = [Chunk(tool_calls=(text,)), call(0, arguments='SELECT "a"'), call(0, arguments="\n"), Chunk("So")]
    chunks += [Chunk(tool_calls=(ToolCall(1, "b", "sql", "{}", is_text=True),))]
    reading = read_anthropic(written(chunks, ending=Ending("tool_calls")))
    assert reading.tools == [("a", "sql", {"input": 'SELECT "a"\n'}), ("b", "sql", {"input": "{}"})]
    assert reading.text == "So"


def test_a_call_without_an_id_gets_one_that_is_its_own() -> None:
    chunks = [Chunk(tool_calls=(ToolCall(0, name="get", arguments="{}"), ToolCall(1, name="get", arguments="{}")))]
    ids = [tool[0] for tool in read_anthropic(written(chunks)).tools]
    assert ids == ["toolu_1_0", "toolu_1_1"]


def test_the_fragments_of_calls_that_come_by_turns_are_put_together() -> None:
    chunks = [
        call(0, "get", id="a"), call(1, "put", id="b"), call(0, arguments='{"q"'), call(1, arguments='{"r"'),
        Chunk("Wait", "Hm"), call(0, arguments=":1}"), call(1, arguments=":2}"), call(2, "end", "{}", "c"),
    ]  # fmt: skip
    wire = stream()
    parts = [wire.chunks([chunk]) for chunk in chunks]
    assert all(parts)  # never no bytes at all
    assert b'":1}"' in parts[5]  # the first goes on while the others wait
    reading = read_anthropic(b"".join(parts) + wire.ending(Ending("tool_calls"), {}))
    assert reading.tools == [("a", "get", {"q": 1}), ("b", "put", {"r": 2}), ("c", "end", {})]
    assert (reading.text, reading.reasoning) == ("Wait", "Hm")


def test_a_call_whose_arguments_are_whole_makes_way() -> None:
    wire = stream()
    wire.chunks([call(0, "get", '{"q":"\\ud83d"}', "a")])
    assert b'"name":"put"' in wire.chunks([call(1, "put", id="b")])
    wire.chunks([call(1, arguments="{}")])
    assert b"And" in wire.chunks([Chunk("And")])


def test_calls_that_wait_cost_a_time_in_proportion_to_their_number() -> None:
    def work(count: int) -> int:
        chunks = [call(0, "get", '{"q', "a"), *[call(index, "put", "{}", "b") for index in range(1, count)]]
        chunks += [call(0, arguments=" ") for _ in range(count)]
        return steps(lambda: written(chunks))

    assert work(400) < 2.2 * work(200)


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        (Ending("stop"), "end_turn"),
        (Ending("stop", "stop_sequence"), "stop_sequence"),
        (Ending("stop", "pause_turn"), "pause_turn"),
        (Ending("length"), "max_tokens"),
        (Ending("length", "model_context_window_exceeded"), "model_context_window_exceeded"),
        (Ending("tool_calls"), "tool_use"),
        (Ending("content_filter", "SAFETY"), "refusal"),
        (Ending("content_filter", guardrail="output"), "refusal"),
        (Ending("content_filter", "stop_sequence", guardrail="output"), "refusal"),
    ],
)
def test_a_stop_reason_is_one_of_anthropics(ending: Ending, reason: str) -> None:
    assert events(written([Chunk("a")], ending=ending))[-2]["delta"]["stop_reason"] == reason


def test_an_answer_that_the_provider_broke_off_ends_with_an_error() -> None:
    data = written([Chunk("a"), call(0, "get", '{"q', "a"), Chunk("b")], ending=Ending("error", "MALFORMED"))
    assert names(data)[-1] == "error" and "message_stop" not in names(data)
    assert "MALFORMED" in events(data)[-1]["error"]["message"]
    assert b'"b"' in data


def test_usage_is_counted_as_anthropic_does() -> None:
    usage = Usage(100, 20, cached_tokens=60, reasoning_tokens=5, cache_write_tokens=30)
    assert events(written([Chunk("a")], ending=Ending(usage=usage)))[-2]["usage"] == {
        "input_tokens": 10,
        "cache_creation_input_tokens": 30,
        "cache_read_input_tokens": 60,
        "output_tokens": 20,
        "output_tokens_details": {"thinking_tokens": 5},
    }


def test_what_else_is_to_say_is_a_comment_before_the_end() -> None:
    wire = stream()
    data = wire.last([Chunk("a")], Ending("content_filter", "SAFETY", guardrail="output"), {"model_id": "m1"})
    (comment,) = [line for line in data.split(b"\n") if line.startswith(b": ")]
    said = json.loads(comment.removeprefix(b": opensearch_ml_stream "))
    assert said == {"native_finish_reason": "SAFETY", "guardrail": "output", "model_id": "m1"}
    assert data.index(comment) < data.index(b"event: message_stop")
    assert read_anthropic(data).text == "a"


def test_a_stream_without_chunks_is_an_empty_message() -> None:
    assert names(written()) == ["message_start", "message_delta", "message_stop"]


def test_a_heartbeat_is_a_ping_and_an_error_ends_the_stream() -> None:
    wire = stream()
    assert wire.heartbeat == b'event: ping\ndata: {"type": "ping"}\n\n'
    data = wire.heartbeat + wire.chunks([Chunk("a")]) + wire.heartbeat + wire.error(Throttled("Too many"))
    assert events(data)[-1] == {
        "type": "error", "error": {"type": "rate_limit_error", "message": "Too many"}, "request_id": None,
    }  # fmt: skip
    with pytest.raises(anthropic.APIStatusError, match="Too many") as raised:
        read_anthropic(data)
    assert raised.value.type == "rate_limit_error"


def as_sent(event: dict[str, Any], **fields: Any) -> Chunk:
    return Chunk(**fields, event=Event.of(event))


MESSAGE = {
    "id": "msg_9", "type": "message", "role": "assistant", "model": "claude", "content": [],
    "usage": {"input_tokens": 3, "output_tokens": 1},
}  # fmt: skip
START = {"type": "message_start", "message": MESSAGE}


def block_start(index: int, kind: str, calls: tuple[ToolCall, ...] = (), **block: Any) -> Chunk:
    block = {"type": kind, **({kind: ""} if kind in ("text", "thinking") else {}), **block}
    return as_sent({"type": "content_block_start", "index": index, "content_block": block}, tool_calls=calls)


def block_delta(index: int, kind: str, **delta: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **delta}}


def block_stop(index: int) -> Chunk:
    return as_sent({"type": "content_block_stop", "index": index})


END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}, "new": 1}


def test_events_pass_as_they_were_sent_and_text_is_of_the_block_that_is_open() -> None:
    citation = block_delta(0, "citations_delta", citation={})
    chunks: list[Chunks] = [
        [as_sent(START), block_start(0, "text", citations=[])], TextRun(b"a"), [Chunk("b"), as_sent(citation)],
        [block_stop(0), block_start(1, "server_tool_use", id="s", name="search", input={}), block_stop(1)],
        [block_start(2, "web_search_tool_result", content=[]), block_stop(2), as_sent(END)],
    ]  # fmt: skip
    found = events(written(*chunks, ending=Ending(usage=Usage(3, 2))))
    sent = [chunk.event.payload for read in chunks if isinstance(read, list) for chunk in read if chunk.event]
    texts = [block_delta(0, "text_delta", text=one) for one in "ab"]
    assert found == [*sent[:2], *texts, *sent[2:], {"type": "message_stop"}]


@pytest.mark.parametrize(
    "message",
    [{**MESSAGE, "usage": None}, {**MESSAGE, "usage": {"input_tokens": 3}}, {**MESSAGE, "id": "", "role": None},
     {**MESSAGE, "content": None, "x": 1}, {**MESSAGE, "model": {}}, {**MESSAGE, "type": "msg", "stop_reason": ""}],
)  # fmt: skip
def test_a_message_begins_with_all_that_it_has_to_have(message: dict[str, Any]) -> None:
    (begun, *_) = events(written([as_sent({"type": "message_start", "message": message}), Chunk("a")]))
    Message.model_validate(begun["message"])
    assert begun["message"]["id"] == (message["id"] or "msg_1")
    assert begun["message"].get("x") == message.get("x")


OUT_OF_PLACE: dict[str, list[Chunk]] = {
    "no beginning": [block_start(0, "text"), Chunk("a"), block_stop(0)],
    "two beginnings": [as_sent(START), as_sent(START), block_start(0, "text"), Chunk("a"), block_stop(0)],
    "no start": [as_sent(START), as_sent(block_delta(0, "text_delta", text="a"), text="a"), block_stop(0)],
    "no stop": [as_sent(START), block_start(0, "text"), Chunk("a"), as_sent(END)],
    "two stops": [as_sent(START), block_start(0, "text"), Chunk("a"), block_stop(0), block_stop(0)],
    "another index": [as_sent(START), block_start(7, "text"), Chunk("a"), block_stop(7)],
    "no index": [as_sent(START), as_sent({"type": "content_block_start", "content_block": {}}), Chunk("a")],
    "the end first": [as_sent(START), as_sent(END), block_start(0, "text"), Chunk("a"), block_stop(0)],
    "a block of no known type": [as_sent(START), block_start(0, "output"), Chunk("a"), block_stop(0)],
    "a delta of no known type": [as_sent(START), as_sent(block_delta(0, "output_delta", text="a"), text="a")],
    "a delta of another block": [
        as_sent(START), block_start(0, "thinking"), as_sent(block_delta(0, "text_delta", text="a"), text="a"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("chunks", OUT_OF_PLACE.values(), ids=OUT_OF_PLACE)
def test_what_is_out_of_its_place_is_written_where_it_belongs(chunks: list[Chunk]) -> None:
    data = written(chunks, ending=Ending("stop", "end_turn", Usage(3, 2)))
    assert in_order(events(data))
    reading = read_anthropic(data)
    assert (reading.text, reading.native, reading.usage["output_tokens"]) == ("a", "end_turn", 2)


def in_order(events: list[dict[str, Any]]) -> bool:
    """Whether events are in Anthropic's order, with blocks that are counted from 0."""
    count, is_open = 0, False
    assert [event["type"] for event in events].count("message_start") == 1
    for event in events[1:-2]:
        kind = event["type"]
        if kind == "ping":
            continue
        assert event["index"] == count
        assert kind == "content_block_start" if not is_open else kind in ("content_block_delta", "content_block_stop")
        is_open, count = kind != "content_block_stop", count + (kind == "content_block_stop")
    assert [event["type"] for event in events[-2:]] == ["message_delta", "message_stop"]
    return not is_open


FIRST, SECOND = ToolCall(0, "c1", "get"), ToolCall(1, "c2", "put")


def test_calls_that_are_open_at_once_are_written_one_after_the_other() -> None:
    calls = ((0, FIRST), (1, SECOND))
    starts = [block_start(n, "tool_use", (call,), id=call.id, name=call.name, input={}) for n, call in calls]
    pieces = [
        as_sent(block_delta(n, "input_json_delta", partial_json=text), tool_calls=(ToolCall(n, arguments=text),))
        for text in ('{"q":', "1}") for n in (0, 1)
    ]  # fmt: skip
    data = written([as_sent(START), *starts, *pieces, block_stop(0), block_stop(1)], ending=Ending("tool_calls"))
    assert in_order(events(data))
    assert read_anthropic(data).tools == [("c1", "get", {"q": 1}), ("c2", "put", {"q": 1})]


@pytest.mark.parametrize("block", [{"id": "", "name": "get", "input": {}}, {"name": "get"}, {"id": "c", "input": {}}])
def test_a_call_that_is_not_well_formed_is_written_anew(block: dict[str, Any]) -> None:
    call = ToolCall(0, block.get("id") or None, block.get("name"))
    piece = as_sent(block_delta(0, "input_json_delta", partial_json="{}"), tool_calls=(ToolCall(0, arguments="{}"),))
    data = written([as_sent(START), block_start(0, "tool_use", (call,), **block), piece, block_stop(0)])
    assert in_order(events(data))
    assert read_anthropic(data).tools == [(block.get("id") or "toolu_1_0", block.get("name", ""), {})]


def test_a_call_with_the_id_of_another_gets_its_own() -> None:
    block = {"id": "c", "name": "get", "input": {}}
    starts = [block_start(n, "tool_use", (ToolCall(n, id, "get"),), **block) for n, id in ((0, "c"), (1, None))]
    data = written([as_sent(START), starts[0], block_stop(0), starts[1], block_stop(1)])
    assert in_order(events(data))
    assert read_anthropic(data).tools == [("c", "get", {}), ("toolu_1_1", "get", {})]


@pytest.mark.parametrize(
    "end",
    [{"delta": {"stop_reason": "eos"}}, {"delta": {"stop_reason": None}}, {"delta": None}, {"usage": None},
     {"usage": {"output_tokens": "2"}}],
)  # fmt: skip
def test_an_end_that_is_not_well_formed_is_made(end: dict[str, Any]) -> None:
    found = events(written([as_sent(START), as_sent({**END, **end})], ending=Ending("length", "eos", Usage(3, 2))))
    assert (found[-2]["delta"]["stop_reason"], found[-2]["usage"]["output_tokens"]) == ("max_tokens", 2)


def test_an_end_that_was_not_sent_is_made() -> None:
    found = events(written([as_sent(START), block_start(0, "text"), Chunk("a")], ending=Ending("length")))
    assert [event["type"] for event in found[-3:]] == ["content_block_stop", "message_delta", "message_stop"]
    assert found[-2]["delta"]["stop_reason"] == "max_tokens"


def test_a_guardrail_has_the_last_word_on_an_end_that_was_sent() -> None:
    delta = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}
    chunks = [as_sent(START), block_start(0, "text"), Chunk("a"), as_sent(delta)]
    found = events(written(chunks, ending=Ending("content_filter", guardrail="output")))
    assert found[-2]["delta"]["stop_reason"] == "refusal"


def test_the_end_and_errors_are_said_once() -> None:
    chunks = [as_sent(START), as_sent({"type": "error", "error": {}}), as_sent({"type": "message_stop"})]
    assert names(written(chunks)) == ["message_start", "message_delta", "message_stop"]


def test_a_provider_cannot_write_events_of_its_own_into_the_stream() -> None:
    pretty = json.dumps(START).replace(",", ",\n\r\n").encode()
    odd: list[dict[str, Any]] = [
        {"type": "x\n\nevent: y"},
        {"type": ["x"]},
        {"type": "content_block_start", "index": "1\n"},
        {"type": "of_the_future"},
    ]
    data = written([Chunk(event=Event("", pretty)), *[as_sent(event) for event in odd], Chunk("a")])
    assert names(data) == [
        "message_start", "of_the_future", "content_block_start", "content_block_delta", "content_block_stop",
        "message_delta", "message_stop",
    ]  # fmt: skip


def test_what_waited_for_the_end_of_a_call_comes_before_an_error() -> None:
    wire = stream()
    before = wire.chunks([call(0, "get", '{"q":', "a"), Chunk("Hi")])
    deltas = [event["delta"] for event in events(before + wire.error(UpstreamError("cut"))) if "delta" in event]
    assert deltas[-1] == {"type": "text_delta", "text": "Hi"}


def test_a_truncated_stream_is_an_error_of_the_api() -> None:
    assert events(stream().error(UpstreamError("cut")))[0]["error"]["type"] == "api_error"
