"""Chats as tensors to the messages of a connector."""

import json

import orjson
import pytest

from opensearch_ml_stream.extensions.v2.protocol.chat_messages import MAX_MESSAGES
from opensearch_ml_stream.extensions.v2.protocol.messages import Tensor
from tests.v2.protocol.predict_input_setup import (
    BLUEPRINTS,
    MESSAGES,
    PROMPT,
    QUESTION,
    action,
    compiled,
    read,
    refused,
    rendered,
    text,
)


@pytest.mark.parametrize("name", ["openai-chat", "bedrock-converse", "gemini-chat", "anthropic-messages"])
def test_a_chat_is_written_in_the_connectors_own_form_of_a_message(name: str) -> None:
    path = next(path for path in BLUEPRINTS if path.stem == name)
    target = compiled(json.loads(path.read_text())["connector"])
    chat = [text("user", "assistant", name="role"), text("a", "b", name="content"), text("text", "text", name="type")]
    found = read(target, *chat)
    assert found.is_chat
    body = orjson.loads(target.render(found.inputs[0].parameters).body)
    assert body.get("messages", body.get("contents")) == {
        "bedrock-converse": [
            {"role": "user", "content": [{"text": "a"}]}, {"role": "assistant", "content": [{"text": "b"}]},
        ],
        "gemini-chat": [{"role": "user", "parts": [{"text": "a"}]}, {"role": "model", "parts": [{"text": "b"}]}],
    }.get(name, [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])  # fmt: skip


def test_where_messages_are_wanted_a_text_is_one_message_of_the_user() -> None:
    assert rendered(MESSAGES, text(QUESTION))["messages"] == [{"role": "user", "content": QUESTION}]


def test_a_chat_becomes_messages_with_their_tool_calls_and_parts() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    tool = {"type": "function", "function": {"name": "f"}}
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aa"}}
    body = rendered(
        MESSAGES,
        text("user", "assistant", "tool", "user", name="role"),
        text("Hi", "", "12", json.dumps(["What?", "data:image/png;base64,aa"]), name="content"),
        text("text", "text", "text", '["text","image_url"]', name="type"),
        text("", json.dumps(call), "", "", name="tool_calls"),
        text("", "", "c1", "", name="tool_call_id"),
        text(json.dumps(tool), name="tools"),
    )
    assert body == {
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "12", "tool_call_id": "c1"},
            {"role": "user", "content": [{"type": "text", "text": "What?"}, image]},
        ],
        "tools": [tool],
    }


def test_a_chat_may_leave_out_its_types_and_have_many_calls_in_its_only_message() -> None:
    calls = [text("{}", '{"id":"2"}', name="tool_calls"), text("assistant", name="role"), text("", name="content")]
    assert rendered(MESSAGES, *calls)["messages"] == [
        {"role": "assistant", "content": "", "tool_calls": [{}, {"id": "2"}]}
    ]
    one = [text("user", name="role"), text("u", name="content"), text("image_url", name="type")]
    image = {"type": "image_url", "image_url": {"url": "u"}}
    assert rendered(MESSAGES, *one)["messages"] == [{"role": "user", "content": [image]}]
    of_one_text = [text("user", name="role"), text('["u"]', name="content"), text('["text"]', name="type")]
    assert rendered(MESSAGES, *of_one_text)["messages"] == [{"role": "user", "content": "u"}]


def test_a_chat_of_one_text_is_a_prompt_where_the_model_takes_no_chat() -> None:
    chat = [text("user", name="role"), text("Hi", name="content")]
    assert rendered(PROMPT, *chat) == {"prompt": "Hi", "n": 1}
    assert read(PROMPT, *chat).is_chat
    two = [text("user", "user", name="role"), text("Hi", "there", name="content")]
    assert "several messages" in refused(PROMPT, *two)


@pytest.mark.parametrize(
    "chat",
    [
        [text("user", name="role"), text("a", "b", name="content")],
        [text(name="role"), text(name="content")],
        [text("user", name="role"), text("a", name="content"), text(name="type")],
        [text("user", name="role"), text("a", name="content"), text('["text"]', name="type")],
        [text("user", "user", name="role"), text("a", "b", name="content"), text("c", name="tool_call_id")],
        [text("user", name="role"), text("a", name="content"), text("b", name="c")],
        [text("user", name="role"), text(None, name="content")],
    ],
)
def test_a_chat_whose_tensors_do_not_fit_is_refused(chat: list[Tensor]) -> None:
    refused(MESSAGES, *chat)


def test_the_messages_of_a_chat_are_bounded() -> None:
    chat = [text(*["user"] * (MAX_MESSAGES + 1), name="role"), text(*["a"] * (MAX_MESSAGES + 1), name="content")]
    assert "5000 messages" in refused(MESSAGES, *chat)


def test_a_connectors_message_that_a_text_alone_does_not_fill_is_no_form_of_a_message() -> None:
    for messages in (
        '[{"role":"user","content":"Q: ${parameters.inputs}"}]',
        '[{"role":"system","content":"x"},{"role":"user","content":"${parameters.inputs}"}]',
        '["${parameters.inputs}"]',
        '[{"role":"user","content":"${parameters.inputs}", "n": ${parameters.n}}]',
        '[{"role":"user","content":"${parameters.inputs}","pad":"' + "x" * 5000 + '"}]',
    ):
        target = action('{"messages": ${parameters.messages}}', messages=messages, n=1)
        chat = [text("user", "user", name="role"), text("a", "b", name="content")]
        assert rendered(target, *chat)["messages"] == [
            {"role": "user", "content": "a"},
            {"role": "user", "content": "b"},
        ]
