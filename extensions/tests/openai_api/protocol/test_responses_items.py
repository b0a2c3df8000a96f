"""Responses of `/v1/responses` in one piece."""

import json
from typing import Any

import pytest
from openai.types.responses import Response

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer
from opensearch_ml_stream.extensions.openai_api.http.responses_api import ResponsesAPI
from opensearch_ml_stream.extensions.openai_api.protocol.responses_events import ResponsesEvents
from opensearch_ml_stream.extensions.openai_api.protocol.responses_items import ResponseObject, whole_response

_STOP = Ending()
CALLS = (
    ToolCall(0, "c1", "weather", '{"a'),
    ToolCall(1, None, "time"),
    ToolCall(0, arguments='":1}'),
    ToolCall(2, "c3", "edit", '{"input":"a'),
    ToolCall(2, arguments='"}'),
    ToolCall(3, "c4", "docs__time", "{}"),
)
_TOOLS = [
    {"type": "custom", "name": "edit"},
    {"type": "namespace", "name": "docs", "description": "D", "tools": [{"type": "function", "name": "time"}]},
]
SAID = Chunk('I "look"', "Hm", CALLS, signature="EqQB")


def answer(chunk: Chunk, ending: Ending = _STOP, **extra: Any) -> WholeAnswer:
    return WholeAnswer(chunk, ending, "m1", {}, is_as_sent=False, extra=extra)


def response_object() -> ResponseObject:
    return ResponseObject("t1", 1_700_000_000, "poet", {"input": "Why?", "tools": _TOOLS})


def whole(chunk: Chunk, ending: Ending = _STOP, **extra: Any) -> dict[str, Any]:
    data = whole_response(answer(chunk, ending, **extra), response_object())
    Response.model_validate_json(data)
    response: dict[str, Any] = json.loads(data)
    return response


REFUSED = Chunk("Well. No.", refusal="No.")


@pytest.mark.parametrize("chunk", [SAID, REFUSED])
@pytest.mark.parametrize("finish", ["stop", "length", "content_filter", "error"])
def test_a_whole_response_is_that_which_ends_a_stream_of_the_same(finish: str, chunk: Chunk) -> None:
    ending = Ending(finish, finish, usage=Usage(1, 2))
    wire = ResponsesEvents(response_object())
    last = wire.last([chunk], ending, {"model_id": "m2"}).rpartition(b"data: ")[2]
    assert whole(chunk, ending, model_id="m2") == json.loads(last)["response"]


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        (Ending("content_filter", "stop"), "completed"),
        (Ending("content_filter", "SAFETY"), "incomplete"),
        (Ending("content_filter", "stop", guardrail="regex[0]"), "incomplete"),
        (Ending("length", "length"), "incomplete"),
    ],
)
def test_a_refusal_in_words_is_a_part_of_a_response_that_is_whole(ending: Ending, status: str) -> None:
    response = whole(REFUSED, ending)
    assert [item["content"][0]["type"] for item in response["output"]] == ["output_text", "refusal"]
    assert (response["output"][1]["content"][0]["refusal"], response["status"]) == ("No.", status)


def test_reasoning_a_message_and_calls_are_items() -> None:
    response = whole(SAID, Ending("tool_calls"))
    assert [item["type"] for item in response["output"]] == [
        "reasoning", "message", "function_call", "function_call", "custom_tool_call", "function_call",
    ]  # fmt: skip
    assert response["output"][0]["encrypted_content"] == "signature:EqQB"
    assert response["output"][1]["content"][0]["text"] == 'I "look"'
    assert [(item["call_id"], item["arguments"]) for item in response["output"][2:4]] == [
        ("c1", '{"a":1}'),
        ("call_t1_3", "{}"),
    ]
    assert response["output"][4]["input"] == "a"
    assert (response["output"][5]["namespace"], response["output"][5]["name"]) == ("docs", "time")
    assert (response["status"], response["id"]) == ("completed", "resp_t1")


def test_an_empty_answer_has_no_output() -> None:
    assert whole(Chunk())["output"] == []


def test_a_response_of_the_client_s_dialect_is_as_it_was_sent() -> None:
    sent = {"id": "resp_p", "object": "response", "status": "completed", "output": [], "made_up": {"a": 1}}
    given = WholeAnswer(Chunk(), Ending(), "m1", sent, is_as_sent=True, extra={})
    asked = ResponsesAPI(lambda: 0).read({"model": "m", "input": "Why?"})
    assert json.loads(asked.whole(given)) == sent


def test_a_malformed_response_is_repaired_and_keeps_all_else() -> None:
    call = {"type": "function_call", "call_id": "", "name": "f", "arguments": {"a": 1}}
    output = [
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "gAAAA"},
        {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "message", "content": "Hi"},
        call,
        call | {"id": "fc", "arguments": None},
        call | {"call_id": "fc"},
        call | {"call_id": "fc", "id": "fc2"},
        {"id": "of no type"},
    ]
    sent = {"id": None, "object": "x", "output": output, "usage": {"input_tokens": 1}, "made_up": 1}
    answer = WholeAnswer(SAID, Ending(usage=Usage(1, 2)), "m1", sent, is_as_sent=True, extra={})
    asked = ResponsesAPI(lambda: 0).read({"model": "m", "input": "Why?"})
    whole = json.loads(asked.whole(answer))
    assert (whole["output"][:2], whole["made_up"], whole["object"]) == (output[:2], 1, "response")
    beside = {"created_at": 1, "model": "m", "tools": [], "parallel_tool_calls": True, "tool_choice": "auto"}
    told = Response.model_validate(whole | beside)
    assert told.output_text == "Hi"
    calls = [item for item in told.output if item.type == "function_call"]
    assert [call.arguments for call in calls] == ['{"a":1}', "{}", '{"a":1}', '{"a":1}']
    assert len({call.call_id for call in calls}) == 4
    assert told.usage is not None
    assert (told.usage.total_tokens, told.status) == (3, "completed")


def test_what_openai_has_no_place_for_is_a_member_of_our_own() -> None:
    assert whole(Chunk("a"), model_id="m2")["opensearch_ml_stream"] == {"model_id": "m2"}


def test_the_time_is_in_seconds_and_the_model_is_as_the_client_named_it() -> None:
    asked = ResponsesAPI(lambda: 1_700_000_000_999).read({"model": "poet", "input": "Why?"})
    response = json.loads(asked.whole(answer(Chunk("a"))))
    assert (response["created_at"], response["model"], response["store"]) == (1_700_000_000, "poet", False)
