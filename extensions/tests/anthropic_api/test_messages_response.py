"""Whole messages: made of what an answer says, or the provider's own."""

import json
from typing import Any

import pytest
from anthropic.types import Message

from opensearch_ml_stream.connectors.chunks import Chunk, Ending, ToolCall, Usage
from opensearch_ml_stream.connectors.conversation.answer import WholeAnswer
from opensearch_ml_stream.connectors.errors import UpstreamError
from opensearch_ml_stream.extensions.anthropic_api.protocol.messages_response import whole_message


def answer(chunk: Chunk, ending: Ending | None = None, **extra: Any) -> WholeAnswer:
    return WholeAnswer(chunk, ending or Ending(), "id", {}, is_as_sent=False, extra=extra)


def message(said: WholeAnswer) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(whole_message(said, "my-model", "msg_1"))
    return body


def test_an_answer_is_a_message_that_the_sdk_takes() -> None:
    call = ToolCall(0, "a", "get", '{"q":1}')
    body = message(
        answer(Chunk("Hi", "Hm", (call,), (), "sig"), Ending("tool_calls", usage=Usage(9, 2, cached_tokens=4)))
    )
    assert body == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "my-model",
        "content": [
            {"type": "thinking", "thinking": "Hm", "signature": "sig"},
            {"type": "text", "text": "Hi"},
            {"type": "tool_use", "id": "a", "name": "get", "input": {"q": 1}},
        ],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 5,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 4,
            "output_tokens": 2,
        },
    }
    assert Message.model_validate(body).content[1].type == "text"


SENT: dict[str, Any] = {
    "id": "msg_9", "type": "message", "role": "assistant", "model": "claude",
    "content": [{"type": "text", "text": "a"}],
    "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 2, "new": 1},
    "new": 1,
}  # fmt: skip


def as_sent(sent: dict[str, Any], chunk: Chunk, ending: Ending) -> dict[str, Any]:
    return message(WholeAnswer(chunk, ending, "id", sent, is_as_sent=True, extra={}))


def test_calls_of_a_message_as_it_was_sent_have_ids_of_their_own() -> None:
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}, "new": 1}
    sent = {**SENT, "content": [call, *SENT["content"], call], "stop_reason": "tool_use"}
    first, text, second = as_sent(sent, Chunk("a"), Ending("tool_calls"))["content"]
    assert (first, text) == (call, SENT["content"][0])
    assert second == {**call, "id": second["id"]} and second["id"] not in ("", "t")


def test_an_answer_as_it_was_sent_passes_with_what_is_unknown() -> None:
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}, "new": 1}
    for sent in (SENT, {**SENT, "content": [search]}):
        assert as_sent(sent, Chunk("a"), Ending()) == sent


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"id": None, "role": "", "model": None}, {"id": "msg_1", "model": "my-model"}),
        ({"content": "a"}, {}),
        ({"content": [{"type": "text", "text": None}]}, {}),
        ({"content": [{"type": "output", "text": "a"}]}, {}),
        ({"stop_reason": "eos"}, {"stop_reason": "max_tokens"}),
        ({"usage": None}, {}),
    ],
)
def test_what_is_not_well_formed_in_an_answer_is_what_was_read_of_it(
    wrong: dict[str, Any], right: dict[str, Any]
) -> None:
    told = as_sent({**SENT, **wrong}, Chunk("a"), Ending("length", "eos", Usage(5, 2)))
    Message.model_validate(told)
    assert {name: value for name, value in told.items() if name != "usage"} == {
        name: value for name, value in {**SENT, **right}.items() if name != "usage"
    }
    assert (told["usage"]["input_tokens"], told["usage"]["output_tokens"]) == (5 if "usage" in wrong else 3, 2)


def test_the_text_that_a_free_form_tool_is_called_with_is_in_an_object() -> None:
    calls = (ToolCall(0, "a", "sql", "SELECT", is_text=True), ToolCall(0, arguments=" 1"))
    assert message(answer(Chunk(tool_calls=calls)))["content"][0]["input"] == {"input": "SELECT 1"}


@pytest.mark.parametrize(("stop", "told"), [("end_turn", "tool_use"), ("max_tokens", "max_tokens")])
def test_a_message_with_calls_as_it_was_sent_does_not_end_as_a_finished_one(stop: str, told: str) -> None:
    sent = {**SENT, "content": [{"type": "tool_use", "id": "c", "name": "t", "input": {}}], "stop_reason": stop}
    said = as_sent(sent, Chunk(tool_calls=(ToolCall(0, "c", "t"),)), Ending("tool_calls"))
    assert said == {**sent, "stop_reason": told}


@pytest.mark.parametrize("is_as_sent", [True, False])
def test_what_else_is_to_say_is_a_member_of_ours(is_as_sent: bool) -> None:
    ending = Ending("content_filter", "SAFETY")
    said = WholeAnswer(Chunk("a"), ending, "id", {"type": "message"}, is_as_sent, extra={"model_id": "other"})
    assert message(said)["opensearch_ml_stream"] == {"native_finish_reason": "SAFETY", "model_id": "other"}


def test_fragments_of_a_call_are_one_block_and_no_arguments_an_empty_object() -> None:
    fragments = (ToolCall(0, None, "get"), ToolCall(1, "b", "put", '{"q"'), ToolCall(1, arguments=":1}"))
    assert message(answer(Chunk(tool_calls=fragments)))["content"] == [
        {"type": "tool_use", "id": "toolu_1_0", "name": "get", "input": {}},
        {"type": "tool_use", "id": "b", "name": "put", "input": {"q": 1}},
    ]


def test_arguments_that_are_not_quite_json_are_read_as_they_are_meant() -> None:
    call = ToolCall(0, "a", "get", '{"q":"\\ud83d","n":NaN,"t":"a\nb"}')
    [block] = message(answer(Chunk(tool_calls=(call,))))["content"]
    assert block["input"] == {"q": "\ufffd", "n": None, "t": "a\nb"}


def test_of_arguments_that_a_limit_has_cut_there_is_nothing_to_be_read() -> None:
    cut = Chunk(tool_calls=(ToolCall(0, "a", "get", '{"q'),))
    assert message(answer(cut, Ending("length")))["content"][0]["input"] == {}


@pytest.mark.parametrize("arguments", ['{"q', "[1]", "x"])
def test_arguments_that_are_no_object_are_the_providers_fault(arguments: str) -> None:
    with pytest.raises(UpstreamError, match=r"tool \[get\] are not a JSON object"):
        message(answer(Chunk(tool_calls=(ToolCall(0, "a", "get", arguments),))))


def test_an_answer_that_the_provider_broke_off_is_its_fault() -> None:
    with pytest.raises(UpstreamError, match="broke its answer off: MALFORMED"):
        message(answer(Chunk("a"), Ending("error", "MALFORMED")))
