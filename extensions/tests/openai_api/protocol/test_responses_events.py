"""Events of streams of `/v1/responses`, those written here and those that pass as they were sent."""

import json
from typing import Any
from weakref import ref

import httpx
import pytest
from openai import OpenAI
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from opensearch_ml_stream.connectors.chunks import Chunk, Chunks, Ending, TextRun, ToolCall, Usage
from opensearch_ml_stream.connectors.errors import (
    CONTEXT_LENGTH_EXCEEDED,
    MLStreamError,
    ProviderWords,
    Throttled,
    UpstreamError,
)
from opensearch_ml_stream.connectors.event import Event
from opensearch_ml_stream.extensions.openai_api.protocol.responses_as_sent import ResponsesStream, SentEvents
from opensearch_ml_stream.extensions.openai_api.protocol.responses_events import ResponsesEvents
from opensearch_ml_stream.extensions.openai_api.protocol.responses_items import ResponseObject
from opensearch_ml_stream.extensions.openai_api.protocol.responses_tools import client_tools

_STOP = Ending()
_EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def response_object(**request: Any) -> ResponseObject:
    return ResponseObject("t1", 1_700_000_000, "poet", request)


def events(data: bytes) -> list[dict[str, Any]]:
    """The events, each with its name as its type; comments are left out."""
    parsed: list[dict[str, Any]] = []
    for block in data.decode().split("\n\n"):
        if not block or block.startswith(":"):
            continue
        name, payload = block.split("\n")
        parsed.append(json.loads(payload.removeprefix("data: ")))
        assert name == f"event: {parsed[-1]['type']}"
    return parsed


def written(
    *reads: Chunks, end: Ending | MLStreamError = _STOP, last: Chunks | None = None, **request: Any
) -> list[dict[str, Any]]:
    """The events of a stream of these reads, checked against the types of OpenAI's SDK."""
    wire = ResponsesStream(response_object(**request))
    data = b"".join([wire.chunks(chunks) for chunks in reads])
    data += wire.error(end) if isinstance(end, MLStreamError) else wire.last(last or [], end, {})
    found = events(data)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    for event in found:
        _EVENTS.validate_python(event)
    return found


def kinds(found: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in found]


def final_response(found: list[dict[str, Any]]) -> Any:
    """The response that the SDK's own helper makes of a stream."""
    body = b"".join([b"data: %b\n\n" % json.dumps(event).encode() for event in found])
    headers = {"content-type": "text/event-stream"}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, headers=headers, content=body))
    http: Any = httpx.Client(transport=transport)
    with (
        OpenAI(api_key="k", base_url="http://m/v1", http_client=http) as client,
        client.responses.stream(model="poet", input="Why?") as stream,
    ):
        return stream.get_final_response()


def test_a_refusal_has_events_of_its_own() -> None:
    found = written([Chunk("I ", refusal="I "), Chunk("can't", refusal="can't")], end=Ending("content_filter", "stop"))
    assert kinds(found)[2:] == [
        "output_item.added", "content_part.added", "refusal.delta", "refusal.delta", "refusal.done",
        "content_part.done", "output_item.done", "completed",
    ]  # fmt: skip
    assert found[6]["refusal"] == "I can't"
    assert final_response(found).output[0].content[0].refusal == "I can't"


def test_a_text_has_openai_s_events_in_openai_s_order() -> None:
    usage = Usage(10, 5, cached_tokens=4, cache_write_tokens=1, reasoning_tokens=2)
    found = written(TextRun(b"Hel"), TextRun(b'lo\0 \\"you\\"'), end=Ending("stop", usage=usage))
    assert kinds(found) == [
        "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta", "output_text.delta",
        "output_text.delta", "output_text.done", "content_part.done", "output_item.done", "completed",
    ]  # fmt: skip
    assert [event["delta"] for event in found if "delta" in event] == ["Hel", "lo", ' "you"']
    response = found[-1]["response"]
    assert (found[7]["text"], found[8]["part"]["text"]) == ('Hello "you"', 'Hello "you"')
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": 'Hello "you"'}
    message = {"id": "msg_t1_0", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
    assert (response["output"], found[9]["item"]) == ([message], message)
    assert (response["id"], response["model"], response["status"]) == ("resp_t1", "poet", "completed")
    assert response["usage"] == {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 15,
    }
    assert (found[0]["response"]["status"], found[0]["response"]["output"]) == ("in_progress", [])
    assert final_response(found).output_text == 'Hello "you"'


def test_a_run_gives_the_bytes_of_its_chunks_one_by_one() -> None:
    run = TextRun(b'Hel\0lo \\u00e9\0"'.replace(b'"', b'\\"'))
    one, other = ResponsesEvents(response_object()), ResponsesEvents(response_object())
    assert events(one.chunks(run)) == events(b"".join([other.chunks([chunk]) for chunk in run.to_chunks()]))
    assert events(one.ending(Ending(), {})) == events(other.ending(Ending(), {}))


def test_reasoning_a_message_and_calls_are_items_of_their_own() -> None:
    found = written(
        [Chunk(reasoning="Let"), Chunk(reasoning=" me")],
        [Chunk(signature="EqQB"), Chunk("I "), Chunk("look")],
        [Chunk(tool_calls=(ToolCall(0, "c1", "weather", '{"a'), ToolCall(1, "c2", "time")))],
        [Chunk(tool_calls=(ToolCall(0, arguments='":1}'),))],
        end=Ending("tool_calls"),
    )
    assert kinds(found) == [
        "created", "in_progress",
        "output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta",
        "reasoning_summary_text.delta", "reasoning_summary_text.done", "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added", "content_part.added", "output_text.delta", "output_text.delta", "output_text.done",
        "content_part.done", "output_item.done",
        "output_item.added", "function_call_arguments.delta", "output_item.added", "function_call_arguments.delta",
        "function_call_arguments.done", "output_item.done",
        "function_call_arguments.delta", "function_call_arguments.done", "output_item.done",
        "completed",
    ]  # fmt: skip
    output = found[-1]["response"]["output"]
    assert output[0] == {
        "id": "rs_t1_0",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Let me"}],
        "encrypted_content": "signature:EqQB",
    }
    assert [(item.get("call_id"), item.get("name"), item.get("arguments")) for item in output[2:]] == [
        ("c1", "weather", '{"a":1}'),
        ("c2", "time", "{}"),
    ]
    assert [event["item"] for event in found if event["type"] == "response.output_item.done"] == output
    final = final_response(found)
    assert (final.output_text, [item.type for item in final.output]) == (
        "I look",
        ["reasoning", "message", "function_call", "function_call"],
    )


NAMED = [
    {"type": "custom", "name": "edit"},
    {"type": "namespace", "name": "docs", "description": "D", "tools": [{"type": "function", "name": "time"}]},
]


@pytest.mark.parametrize("request_", [{"tools": NAMED}, {"input": [{"type": "additional_tools", "tools": NAMED}]}])
def test_tools_are_called_as_the_client_named_them(request_: Any) -> None:
    found = written(
        [Chunk(tool_calls=(ToolCall(0, "c1", "edit", '{"inp'), ToolCall(1, "c2", "docs__time", '{"a":')))],
        [Chunk(tool_calls=(ToolCall(0, arguments='ut":"é\\n"}'), ToolCall(1, arguments="1}")))],
        end=Ending("tool_calls"),
        **request_,
    )
    assert kinds(found)[2:-1] == [
        "output_item.added", "output_item.added", "function_call_arguments.delta", "function_call_arguments.delta",
        "custom_tool_call_input.delta", "custom_tool_call_input.done", "output_item.done",
        "function_call_arguments.done", "output_item.done",
    ]  # fmt: skip
    edit, time = (event["item"] for event in found if event["type"] == "response.output_item.done")
    assert (edit["type"], edit["call_id"], edit["name"], edit["input"]) == ("custom_tool_call", "c1", "edit", "é\n")
    assert (time["type"], time["namespace"], time["name"], time["arguments"]) == (
        "function_call",
        "docs",
        "time",
        '{"a":1}',
    )
    assert found[-1]["response"]["output"] == [edit, time]


@pytest.mark.parametrize(
    "wrong", [{}, [None], [{"type": "custom"}], [{"type": "namespace", "name": "a"}], [{"type": "custom", "name": 1}]]
)
def test_a_request_with_wrong_tools_is_refused_by_who_reads_it(wrong: Any) -> None:
    assert client_tools({"tools": wrong, "input": [3, {"type": "additional_tools", "tools": wrong}]}) == {}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"input":"a"}', "a"),
        ('{"patch":"a"}', "a"),
        ("*** Begin Patch", "*** Begin Patch"),
        ("", ""),
        ("{}", "{}"),
        ('{"input":1}', '{"input":1}'),
        ('["a"]', '["a"]'),
        ('{"input":"a\nb\\ud83d"}', "a\nb\ufffd"),
    ],
)
def test_a_free_form_tool_is_called_with_the_text_however_the_model_says_it(arguments: str, text: str) -> None:
    call = Chunk(tool_calls=(ToolCall(0, "c1", "edit", arguments),))
    found = written([call], end=Ending("tool_calls"), tools=NAMED)
    assert found[-1]["response"]["output"][0]["input"] == text


def test_what_follows_a_signature_is_an_item_of_its_own() -> None:
    found = written([Chunk(reasoning="A"), Chunk(signature="s1"), Chunk(reasoning="B"), Chunk(signature="s2")])
    assert [(item["summary"][0]["text"], item["encrypted_content"]) for item in found[-1]["response"]["output"]] == [
        ("A", "signature:s1"),
        ("B", "signature:s2"),
    ]


def test_a_signature_may_stand_alone() -> None:
    found = written([Chunk("Hi"), Chunk(signature="s")])
    assert found[-1]["response"]["output"][1] == {
        "id": "rs_t1_1", "type": "reasoning", "summary": [], "encrypted_content": "signature:s",
    }  # fmt: skip


def test_text_after_a_call_is_another_message() -> None:
    found = written([Chunk("a"), Chunk(tool_calls=(ToolCall(0, None, "f", "{}"),)), Chunk("b")])
    output = found[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["message", "function_call", "message"]
    assert output[1]["call_id"] == "call_t1_1"
    assert final_response(found).output_text == "ab"


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_an_answer_that_is_cut_off_is_incomplete(finish: str, reason: str) -> None:
    found = written(TextRun(b"Hel"), end=Ending(finish))
    response = found[-1]["response"]
    assert (found[-1]["type"], response["status"]) == ("response.incomplete", "incomplete")
    assert response["incomplete_details"] == {"reason": reason}
    assert response["output"][0]["status"] == "incomplete"


def test_a_call_that_is_cut_off_keeps_the_arguments_it_has() -> None:
    calls = (ToolCall(0, "c1", "f"), ToolCall(1, "c2", "g", '{"a'))
    found = written([Chunk(tool_calls=calls)], end=Ending("length"))
    output = found[-1]["response"]["output"]
    assert [(item["status"], item["arguments"]) for item in output] == [("completed", "{}"), ("incomplete", '{"a')]


def test_an_answer_that_its_provider_broke_off_has_failed() -> None:
    found = written(TextRun(b"Hel"), end=Ending("error", "engine_died"))
    assert found[-1]["type"] == "response.failed"
    assert found[-1]["response"]["error"] == {
        "code": "server_error", "message": "The provider broke the answer off: engine_died",
    }  # fmt: skip


def test_an_empty_answer_has_a_beginning_and_an_end() -> None:
    assert kinds(written()) == ["created", "in_progress", "completed"]


def test_the_last_texts_may_come_with_the_end() -> None:
    found = written(TextRun(b"Hel"), last=TextRun(b"lo"))
    assert found[-1]["response"]["output"][0]["content"][0]["text"] == "Hello"


@pytest.mark.parametrize(
    ("error", "code"), [(UpstreamError("It is gone"), "server_error"), (Throttled("Slow"), "rate_limit_exceeded")]
)
def test_an_error_is_told_both_ways_after_the_beginning(error: MLStreamError, code: str) -> None:
    assert kinds(written(end=error)) == ["created", "in_progress", "error", "failed"]
    found = written([Chunk(reasoning="A"), Chunk("B")], end=error)
    assert (found[-2]["code"], found[-2]["message"]) == (code, error.reason)
    response = found[-1]["response"]
    assert (response["status"], response["error"]) == ("failed", {"code": code, "message": error.reason})
    assert [item["type"] for item in response["output"]] == ["reasoning"]


@pytest.mark.parametrize("code", [CONTEXT_LENGTH_EXCEEDED, "server_is_overloaded"])
def test_a_provider_s_own_code_is_told_though_openai_s_types_do_not_list_it(code: str) -> None:
    error = UpstreamError("It broke", provider=ProviderWords(code, "t", "input"))
    *_, told, failed = events(ResponsesStream(response_object()).error(error))
    assert (told["code"], told["param"]) == (code, "input")
    assert failed["response"]["error"] == {"code": code, "message": "It broke"}


def test_a_response_repeats_its_request_but_not_its_input() -> None:
    tool = {"type": "function", "name": "f", "parameters": {"maximum": 10**30}, "strict": None}
    request = {"input": "secret", "tools": [tool], "temperature": 0.5, "metadata": {"a": "\ud800"}, "store": False}
    wire = ResponsesEvents(response_object(**request))
    begun = events(wire.chunks([Chunk("Hi")]))[0]["response"]
    assert (begun["tools"], begun["temperature"], begun["top_p"], begun["store"]) == ([tool], 0.5, None, False)
    assert (begun["metadata"], "input" in begun) == ({"a": "\ud800"}, False)


def test_what_openai_has_no_place_for_is_a_member_of_our_own() -> None:
    wire = ResponsesEvents(response_object())
    last = events(wire.ending(Ending("content_filter", guardrail="output"), {"model_id": "m2"}))[-1]
    assert last["response"]["opensearch_ml_stream"] == {"guardrail": "output", "model_id": "m2"}


def test_an_answer_that_no_event_could_repeat_fails_once() -> None:
    wire = ResponsesEvents(response_object(), max_bytes=2000)
    found: list[dict[str, Any]] = []
    for _ in range(3):
        data = wire.chunks(TextRun(b"x" * 800))
        assert data
        found += events(data)
    assert kinds(found)[-3:] == ["output_text.delta", "error", "failed"]
    assert wire.chunks(TextRun(b"more")) == b": ping\n\n"
    assert wire.last(TextRun(b"more"), Ending(), {}) == b": ping\n\n"
    assert wire.error(UpstreamError("Gone")) == b""


def test_endless_items_are_too_many() -> None:
    wire = ResponsesEvents(response_object(), max_bytes=5000)
    found = events(b"".join([wire.chunks([Chunk("a", "b")]) for _ in range(20)]))
    assert kinds(found)[-1] == "failed"


# Events as they were sent.


def sent(kind: str, number: Any, text: str = "", **members: Any) -> Chunk:
    payload = {"type": f"response.{kind}", "sequence_number": number, **members}
    return Chunk(text, event=Event.of(payload))


OF_PROVIDER = {"id": "resp_p", "object": "response", "model": "gpt-5", "status": "in_progress", "output": []}
TEXT_PART = {"type": "output_text", "text": "Hi", "annotations": []}
MESSAGE_ITEM = {"id": "msg_p", "type": "message", "role": "assistant", "status": "completed", "content": [TEXT_PART]}
PLACE: dict[str, Any] = {"item_id": "msg_p", "output_index": 0, "content_index": 0}
BEGUN = sent("created", 0, response=OF_PROVIDER)
ADDED = sent("output_item.added", 1, output_index=0, item={**MESSAGE_ITEM, "status": "in_progress", "content": []})
PART = sent("content_part.added", 2, **PLACE, part={**TEXT_PART, "text": ""})
DELTA = sent("output_text.delta", 3, "Hi", **PLACE, delta="Hi", logprobs=[{"token": "Hi", "logprob": 0.0}], made_up=1)
ITEM_DONE = sent("output_item.done", 4, output_index=0, item=MESSAGE_ITEM)
DONE = sent("completed", 5, response={**OF_PROVIDER, "status": "completed", "output": [MESSAGE_ITEM], "made_up": 1})
TOLD = (BEGUN, ADDED, PART, DELTA, ITEM_DONE)


def payloads(*chunks: Chunk) -> list[Any]:
    return [chunk.event and chunk.event.payload for chunk in chunks]


def test_events_pass_as_they_were_sent_and_the_last_one_waits_for_the_end() -> None:
    wire = ResponsesStream(response_object())
    assert events(wire.chunks(list(TOLD))) == payloads(*TOLD)
    assert wire.chunks([DONE]) == b": ping\n\n"
    data = json.dumps(payloads(DONE)[0], separators=(",", ":")).encode()
    assert wire.ending(Ending(), {}) == b"event: response.completed\ndata: " + data + b"\n\n"


def test_the_last_event_gets_what_is_to_be_said_beside_it() -> None:
    wire = ResponsesStream(response_object())
    wire.chunks(list(TOLD))
    (last,) = events(wire.last([DONE], Ending(), {"model_id": "m2"})[len(b": ping\n\n") :])
    assert last["response"] == {**payloads(DONE)[0]["response"], "opensearch_ml_stream": {"model_id": "m2"}}


def test_an_error_replaces_a_good_end() -> None:
    wire = ResponsesStream(response_object())
    wire.chunks([*TOLD, DONE])
    error, failed = events(wire.error(UpstreamError("Too dear")))
    assert (error["type"], error["sequence_number"], error["message"]) == ("error", 5, "Too dear")
    assert (failed["sequence_number"], failed["response"]["id"]) == (6, "resp_p")
    assert failed["response"]["error"] == {"code": "server_error", "message": "Too dear"}


def test_a_failure_of_the_provider_passes_as_it_was_sent() -> None:
    failure = sent("failed", 1, response={**OF_PROVIDER, "status": "failed", "error": {"code": "image_parse_error"}})
    wire = ResponsesStream(response_object())
    assert events(wire.chunks([BEGUN, failure])) == payloads(BEGUN)
    assert events(wire.error(UpstreamError("image_parse_error"))) == payloads(failure)


def test_a_provider_s_bare_error_is_told_once() -> None:
    wire = ResponsesStream(response_object())
    bare = Chunk(event=Event.of({"type": "error", "code": "x", "message": "Gone", "sequence_number": 1}))
    found = events(wire.chunks([BEGUN, bare]) + wire.error(UpstreamError("Gone")))
    assert kinds(found) == ["created", "error", "failed"]


def test_text_without_its_event_goes_to_the_part_that_was_begun_last() -> None:
    wire = ResponsesStream(response_object())
    wire.chunks([BEGUN, ADDED, PART])
    first, second = events(wire.chunks(TextRun(b"a\0b")))
    assert (first["item_id"], first["content_index"], first["delta"], first["sequence_number"]) == ("msg_p", 0, "a", 3)
    assert (second["delta"], second["sequence_number"]) == ("b", 4)


def test_an_end_without_an_event_is_made_of_how_the_response_began() -> None:
    wire = ResponsesStream(response_object())
    wire.chunks([BEGUN])
    (last,) = events(wire.ending(Ending("length"), {}))
    assert (last["type"], last["sequence_number"]) == ("response.incomplete", 1)
    assert last["response"] == {
        **OF_PROVIDER, "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
    }  # fmt: skip


def test_an_event_that_has_lines_is_sent_whole() -> None:
    wire = ResponsesStream(response_object())
    lines = (b'{"response":{"id":"r"},', b'"sequence_number":0,"type":"response.created"}')
    data = wire.chunks([Chunk(event=Event("", b"\n".join(lines)))])
    assert data == b"event: response.created\ndata: %b\ndata: %b\n\n" % lines


@pytest.mark.parametrize("numbers", [(None, None, None), (0, 4, 4), (3, 9, "x")])
def test_the_events_are_counted(numbers: tuple[Any, ...]) -> None:
    wire = ResponsesStream(response_object())
    chunks = [sent("created", numbers[0], response=OF_PROVIDER), sent("in_progress", numbers[1], response=OF_PROVIDER)]
    end = sent("completed", numbers[2], response={**OF_PROVIDER, "status": "completed"})
    first = numbers[0] or 0
    found = events(wire.chunks(chunks)) + events(wire.last([end], Ending(), {})[len(b": ping\n\n") :])
    assert [event["sequence_number"] for event in found] == [first, first + 1, first + 2]


@pytest.mark.parametrize("place", [{"output_index": 0}, {"output_index": None}, {}])
def test_an_item_that_is_done_has_begun_and_is_in_the_response(place: dict[str, Any]) -> None:
    wire = ResponsesStream(response_object())
    done = sent("output_item.done", 1, item=MESSAGE_ITEM, **place)
    end = sent("completed", 2, response={**OF_PROVIDER, "id": "other", "status": "completed", "output": None})
    found = events(wire.chunks([BEGUN, done])) + events(wire.last([end], Ending(), {})[len(b": ping\n\n") :])
    written = ["output_item.added", "content_part.added", "output_text.delta", "output_item.done"]
    assert kinds(found) == ["created", *written, "completed"]
    assert [event["output_index"] for event in found[1:5]] == [0, 0, 0, 0]
    assert (found[-1]["response"]["id"], found[-1]["response"]["output"]) == ("resp_p", [MESSAGE_ITEM])


@pytest.mark.parametrize(
    "first", [ADDED, DELTA, sent("created", 0, response=None), sent("created", 0, response={"id": ""})]
)
def test_a_stream_that_does_not_begin_as_a_response_begins_as_one(first: Chunk) -> None:
    found = written([first, DELTA], end=Ending())
    assert kinds(found)[:3] == ["created", "output_item.added", "content_part.added"]
    assert final_response(found).output_text == ("HiHi" if first is DELTA else "Hi")


def test_an_answer_that_no_event_could_repeat_fails_as_sent_too() -> None:
    wire = SentEvents(response_object(), max_chars=5)
    found = events(wire.chunks([BEGUN, DELTA, DELTA, DELTA]))
    assert kinds(found)[-2:] == ["error", "failed"]
    assert (wire.chunks([DELTA]), wire.ending(Ending(), {}), wire.error(UpstreamError("Gone"))) == (
        b": ping\n\n",
        b"",
        b"",
    )


class Input(list[Any]):
    """An input that a weak reference may point to."""


def test_a_stream_that_waits_holds_nothing_of_its_input() -> None:
    given = {"input": Input(), "temperature": 0.5}
    sent, wire = ref(given["input"]), ResponsesStream(response_object(**given))
    del given
    assert sent() is None
    assert events(wire.chunks(TextRun(b"Hello")))[0]["response"]["temperature"] == 0.5
