"""A conversation of one text as OpenAI's completions take it."""

import pytest

from opensearch_ml_stream.connectors.conversation.conversation import (
    AnswerFormat,
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
from opensearch_ml_stream.connectors.providers.openai_completions import DIALECT
from tests.conversation.conversations import ASKED, asking
from tests.conversation.refusals import Dropped, refuse


def test_the_text_is_the_prompt() -> None:
    options = {
        "max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "top_k": 3, "min_p": 0.1, "stop": ["END"], "seed": 7,
        "presence_penalty": 0.1, "frequency_penalty": 0.2, "logit_bias": {"5": 1}, "n": 2, "user": "u1",
    }  # fmt: skip
    conversation = Conversation(
        ASKED, options={**options, "logprobs": True, "top_logprobs": 2, "reasoning_summary": "auto"}
    )
    assert DIALECT.write(conversation, refuse) == {"prompt": "Hi", **options, "logprobs": 2}


@pytest.mark.parametrize(
    "turns",
    [
        (),
        (Turn("system", (Text("a"),)), *ASKED),
        (Turn("system", (Text("a"),)),),
        (*ASKED, Turn("assistant", (Text("b"),))),
        (Turn("user", (Text("a"), Media("image", url="https://x"))),),
        (Turn("user", (Result("1", (Text("a"),)),)),),
        (Turn("user", (Text("a"), Reasoning("b"))),),
        (Turn("user", (Text("a"),), name="ann"),),
    ],
)
def test_what_is_more_than_one_text_is_refused(turns: tuple[Turn, ...]) -> None:
    for name, members in (("messages", {}), ("input", {"turns": "input"})):
        with pytest.raises(InvalidRequest, match=rf"^\[{name}\]"):
            DIALECT.write(Conversation(turns, members=members), Dropped())


@pytest.mark.parametrize("member", ["reasoning_effort", "verbosity", "metadata", "service_tier", "audio"])
def test_options_of_chat_are_refused_by_the_clients_name(member: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"^\[their_{member}\]"):
        DIALECT.write(asking(**{member: "x"}), refuse)
    assert DIALECT.write(asking(**{member: "x"}), Dropped()) == {"prompt": "Hi"}


def test_tools_and_formats_are_refused_or_left_out() -> None:
    conversation = Conversation(
        ASKED, tools=(Tool("f"),), tool_choice=ToolChoice("auto"), answer_format=AnswerFormat("json"), unknown={"x": 1}
    )
    dropped = Dropped()
    assert DIALECT.write(conversation, dropped) == {"prompt": "Hi"}
    assert dropped == ["x", "tools", "tool_choice", "answer_format"]


def test_what_asks_for_nothing_is_left_out() -> None:
    assert DIALECT.write(asking(modalities=["text"], reasoning_tokens=0, logprobs=False), refuse) == {"prompt": "Hi"}
