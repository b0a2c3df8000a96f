"""Conversations as OpenAI's Responses interface takes them."""

from dataclasses import replace
from typing import Any

import pytest

from opensearch_ml_stream.connectors.conversation.conversation import (
    AnswerFormat,
    Call,
    Conversation,
    Media,
    Reasoning,
    Result,
    Text,
    Tool,
    ToolChoice,
    Turn,
)
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.connectors.providers.openai_responses import DIALECT
from tests.conversation.conversations import ASKED, RICH, SCHEMA, asking
from tests.conversation.refusals import Dropped, refuse

NOT_TAKEN = ("stop", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "n")


def write(conversation: Conversation) -> dict[str, Any]:
    return DIALECT.write(conversation, refuse)


def test_the_model_is_told_everything() -> None:
    dropped = Dropped()
    assert DIALECT.write(RICH, dropped) == {
        "instructions": "Be brief.\nBe kind.",
        "input": [
            {"type": "message", "role": "developer", "content": "No jokes."},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is this?"},
                    {"type": "input_image", "image_url": "data:image/png;base64,aW1n", "detail": "low"},
                    {"type": "input_image", "image_url": "https://x/y.png"},
                    {"type": "input_audio", "input_audio": {"data": "c25k", "format": "mp3"}},
                    {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,cGRm"},
                    {"type": "input_file", "file_id": "file-1"},
                    {"type": "input_text", "text": "note:\na note"},
                ],
            },
            {"type": "message", "role": "assistant", "content": "I look."},
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Ulm"}'},
            {"type": "function_call", "call_id": "c2", "name": "time", "arguments": "{}"},
            {"type": "message", "role": "user", "content": "And?"},
            {
                "type": "function_call_output",
                "call_id": "c2",
                "output": [{"type": "input_text", "text": "noon"}, {"type": "input_text", "text": "sharp"}],
            },
            {
                "type": "function_call_output",
                "call_id": "c1",
                "output": [
                    {"type": "input_text", "text": "Error: broken"},
                    {"type": "input_image", "image_url": "data:image/png;base64,bWFw"},
                ],
            },
        ],
        "store": False,
        "tools": [
            {"type": "function", "name": "weather", "description": "Tells it", "parameters": SCHEMA, "strict": True},
            {"type": "function", "name": "time", "parameters": {"type": "object", "properties": {}}, "strict": False},
        ],
        "tool_choice": {"type": "function", "name": "weather"},
        "parallel_tool_calls": False,
        "max_output_tokens": 9, "temperature": 0.5, "top_p": 0.9, "top_logprobs": 2, "user": "u1",
        "metadata": {"k": "v"}, "service_tier": "flex",
        "include": ["message.output_text.logprobs"],
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {
            "format": {
                "type": "json_schema", "name": "place", "description": "A place", "schema": SCHEMA, "strict": True,
            },
            "verbosity": "low",
        },
    }  # fmt: skip
    assert dropped == [*NOT_TAKEN, "messages.name"]


@pytest.mark.parametrize("member", [*NOT_TAKEN, "top_k", "min_p", "audio"])
def test_what_it_has_no_place_for_is_refused_by_the_clients_name(member: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"^\[their_{member}\]"):
        write(asking(**{member: 5}))


def test_members_that_are_unknown_are_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"^\[safety\]"):
        write(Conversation(ASKED, unknown={"safety": 1}))


def test_what_asks_for_nothing_is_left_out() -> None:
    body = write(asking(n=1, modalities=["text"], logprobs=False))
    assert body == {"input": [{"type": "message", "role": "user", "content": "Hi"}], "store": False}


def test_encrypted_reasoning_goes_back_and_other_reasoning_is_left_out() -> None:
    parts = (Reasoning("mine"), Reasoning("in short", encrypted="x"), Text("So"), Reasoning(encrypted="y"))
    assert write(Conversation((Turn("assistant", parts),)))["input"] == [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "in short"}], "encrypted_content": "x"},
        {"type": "message", "role": "assistant", "content": "So"},
        {"type": "reasoning", "summary": [], "encrypted_content": "y"},
    ]


def test_texts_of_an_answer_are_its_output_in_order_with_its_calls() -> None:
    parts = (Text("a"), Text("b"), Call("1", "f", ""), Text("c"))
    items = write(Conversation((Turn("assistant", parts),)))["input"]
    assert items[0]["content"] == [{"type": "output_text", "text": "a"}, {"type": "output_text", "text": "b"}]
    assert [item.get("content") for item in items[1:]] == [None, "c"]


def test_only_the_first_words_of_the_system_are_instructions() -> None:
    body = write(Conversation((Turn("system", (Text("a"),)), *ASKED, Turn("system", (Text("b"),)))))
    assert (body["instructions"], body["input"][1]["role"]) == ("a", "system")
    assert "instructions" not in write(Conversation(ASKED))


@pytest.mark.parametrize(
    ("media", "part"),
    [
        (Media("image", file_id="f"), {"type": "input_image", "file_id": "f"}),
        (Media("file", url="https://x/y.pdf"), {"type": "input_file", "file_url": "https://x/y.pdf"}),
        (
            Media("file", data="YQ=="),
            {"type": "input_file", "filename": "file", "file_data": "data:application/pdf;base64,YQ=="},
        ),
    ],
)
def test_media_by_id_and_url(media: Media, part: dict[str, Any]) -> None:
    assert write(Conversation((Turn("user", (media,)),)))["input"][0]["content"] == [part]


@pytest.mark.parametrize(
    "turn", [Turn("user", (Media("audio", url="https://x"),)), Turn("assistant", (Media("audio", file_id="a"),))]
)
def test_a_sound_that_cannot_be_said_is_refused_or_left_out(turn: Turn) -> None:
    with pytest.raises(InvalidRequest, match=r"^\[messages\.audio\]"):
        write(Conversation((turn,)))
    assert DIALECT.write(Conversation((turn,)), Dropped())["input"] == []


def test_an_error_without_a_text_says_that_it_is_one() -> None:
    [item] = write(Conversation((Turn("user", (Result("1", (), is_error=True),)),)))["input"]
    assert item["output"] == "Error: "


def test_a_budget_of_reasoning_is_an_effort_and_json_a_format() -> None:
    conversation = replace(asking(reasoning_tokens=2048), answer_format=AnswerFormat("json"))
    body = write(conversation)
    assert (body["reasoning"], body["text"]) == ({"effort": "medium"}, {"format": {"type": "json_object"}})


def test_a_choice_of_tools_is_a_word_and_needs_tools() -> None:
    conversation = Conversation(ASKED, tools=(Tool("f"),), tool_choice=ToolChoice("required"))
    assert write(conversation)["tool_choice"] == "required"
    assert "tool_choice" not in write(replace(conversation, tools=()))
