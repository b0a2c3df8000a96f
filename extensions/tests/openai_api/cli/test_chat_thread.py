"""What a thread keeps, and what of it is sent."""

from typing import Any

import pytest

from opensearch_ml_stream.extensions.openai_api.cli.chat_thread import ChatThread

CALLS: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "function": {"name": "f"}}, {"id": "b", "function": {"name": "g"}}],
}


def roles(thread: ChatThread) -> str:
    return " ".join(message["role"] for message in thread.messages)


@pytest.fixture
def thread() -> ChatThread:
    thread = ChatThread("m")
    thread.ask("hi")
    return thread


def answer(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def test_a_request_has_the_system_message_all_turns_and_the_options(thread: ChatThread) -> None:
    thread.keep(answer("hello"))
    thread.ask("again")
    thread.system, thread.options = "be brief", {"temperature": 0}
    assert thread.request(wants_usage=False) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": "again"},
        ],
        "stream": True,
        "temperature": 0,
    }
    assert thread.request(wants_usage=True)["stream_options"] == {"include_usage": True}


def test_a_question_without_an_answer_gives_way_to_the_next(thread: ChatThread) -> None:
    thread.keep({"role": "assistant", "content": None})  # nothing came
    thread.ask("another")
    assert thread.messages == [{"role": "user", "content": "another"}]


def test_files_stand_before_the_text_of_their_question(thread: ChatThread) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}
    thread.ask("what is it?", [image])
    assert thread.messages[-1]["content"] == [image, {"type": "text", "text": "what is it?"}]
    thread.ask("", [image])
    assert thread.messages[-1]["content"] == [image]


def test_an_answer_that_is_dropped_leaves_its_question(thread: ChatThread) -> None:
    thread.keep(answer("hello"))
    assert thread.drop_answer()
    assert roles(thread) == "user"
    assert thread.drop_answer()  # without an answer too
    assert roles(thread) == "user"
    assert not ChatThread("m").drop_answer()


def test_the_results_of_tool_calls_are_missing_one_after_the_other(thread: ChatThread) -> None:
    thread.keep(CALLS)
    assert [call["id"] for call in thread.calls_without_result] == ["a", "b"]
    thread.add_result("1")
    assert [call["id"] for call in thread.calls_without_result] == ["b"]
    thread.add_result("2")
    assert thread.calls_without_result == []
    assert thread.messages[-2:] == [
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
    ]


@pytest.mark.parametrize(
    ("results", "kept"), [(0, "user"), (1, "user"), (2, "user assistant tool tool")], ids=["none", "some", "all"]
)
def test_asking_again_in_the_middle_of_tool_calls_never_leaves_a_call_without_result(
    thread: ChatThread, results: int, kept: str
) -> None:
    thread.keep(CALLS)
    for _ in range(results):
        thread.add_result("1")
    assert thread.drop_answer()
    assert roles(thread) == kept


def test_reasoning_goes_back_only_with_its_proof(thread: ChatThread) -> None:
    thread.keep({**answer("a"), "reasoning_content": "r"})
    thread.keep({**answer("b"), "reasoning_content": "r", "reasoning_signature": "s"})
    assert thread.request(wants_usage=False)["messages"][1:] == [
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": "b", "reasoning_content": "r", "reasoning_signature": "s"},
    ]
