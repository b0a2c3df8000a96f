"""Conversations as OpenAI's chat completions take them, and as their kin do."""

from dataclasses import replace
from typing import Any

import pytest

from opensearch_ml_stream.connectors.conversation.conversation import (
    AnswerFormat,
    Call,
    Conversation,
    Media,
    Part,
    Reasoning,
    Result,
    Text,
    Tool,
    ToolChoice,
    Turn,
)
from opensearch_ml_stream.connectors.conversation.dialects import openai_compatible
from opensearch_ml_stream.connectors.conversation.dialects.chat_completions import COMPATIBLE, Variant, chat_dialect
from opensearch_ml_stream.connectors.errors import InvalidRequest
from tests.conversation.conversations import ASKED, RICH, SCHEMA, asking
from tests.conversation.refusals import Dropped, refuse

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]},
    {"role": "developer", "content": "No jokes."},
    {
        "role": "user",
        "name": "ann",
        "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
            {"type": "input_audio", "input_audio": {"data": "c25k", "format": "mp3"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,cGRm"}},
            {"type": "file", "file": {"file_id": "file-1"}},
            {"type": "text", "text": "note:\na note"},
        ],
    },
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Ulm"}'}},
            {"id": "c2", "type": "function", "function": {"name": "time", "arguments": "{}"}},
        ],
    },
    {
        "role": "tool",
        "tool_call_id": "c2",
        "content": [{"type": "text", "text": "noon"}, {"type": "text", "text": "sharp"}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "Error: broken"},
    {
        "role": "user",
        "content": [
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,bWFw"}},
            {"type": "text", "text": "And?"},
        ],
    },
]


def write(conversation: Conversation, dialect: Any = COMPATIBLE) -> dict[str, Any]:
    body: dict[str, Any] = dialect.write(conversation, refuse)
    return body


def messages(*turns: Turn, dialect: Any = COMPATIBLE) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = write(Conversation(turns), dialect)["messages"]
    return written


def say(*parts: Part) -> Turn:
    return Turn("user", parts)


def test_openai_is_told_everything() -> None:
    assert write(RICH, openai_compatible.OPENAI) == {
        "messages": MESSAGES,
        "tools": [
            {
                "type": "function",
                "function": {"name": "weather", "description": "Tells it", "parameters": SCHEMA, "strict": True},
            },
            {"type": "function", "function": {"name": "time", "parameters": {"type": "object", "properties": {}}}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "parallel_tool_calls": False,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "place", "description": "A place", "schema": SCHEMA, "strict": True},
        },
        "max_completion_tokens": 9, "temperature": 0.5, "top_p": 0.9, "stop": ["END"], "seed": 7,
        "presence_penalty": 0.1, "frequency_penalty": 0.2, "logit_bias": {"5": 1}, "logprobs": True,
        "top_logprobs": 2, "n": 2, "reasoning_effort": "low", "verbosity": "low", "user": "u1",
        "metadata": {"k": "v"}, "service_tier": "flex",
    }  # fmt: skip


def test_its_kin_take_max_tokens_no_developer_and_one_text_where_there_is_no_medium() -> None:
    body = write(RICH)
    assert (body["max_tokens"], "max_completion_tokens" in body) == (9, False)
    assert body["messages"][:2] == [
        {"role": "system", "content": "Be brief.\nBe kind."},
        {"role": "system", "content": "No jokes."},
    ]
    assert body["messages"][4]["content"] == "noon\nsharp"


def test_a_template_says_the_limit_by_either_name() -> None:
    assert COMPATIBLE.instead_of["max_tokens"] == ("max_completion_tokens",)
    assert openai_compatible.OPENAI.instead_of["max_completion_tokens"] == ("max_tokens",)
    assert openai_compatible.MISTRAL.instead_of["random_seed"] == ("seed",)


def test_results_follow_the_message_with_their_calls_wherever_they_came() -> None:
    """Clients of Responses send each call as an item of its own, and results when they please."""
    written = messages(
        Turn("assistant", (Call("a", "f", "{}"),)),
        Turn("assistant", (Call("b", "g", "{}"),)),
        say(Text("wait")),
        say(Result("b", (Text("2"),)), Result("a", (Text("1"),))),
        Turn("assistant", (Text("Well"),)),
        Turn("assistant", (Text("then"),)),
    )
    assert [message["role"] for message in written] == ["assistant", "tool", "tool", "user", "assistant", "assistant"]
    assert [call["id"] for call in written[0]["tool_calls"]] == ["a", "b"]
    assert [message["tool_call_id"] for message in written[1:3]] == ["b", "a"]
    assert (written[0]["content"], written[4]["content"]) == (None, "Well")


def test_a_result_of_an_unknown_call_stays_where_it_is() -> None:
    assert messages(say(Result("x", ()))) == [{"role": "tool", "tool_call_id": "x", "content": ""}]


def test_a_sound_of_an_earlier_answer_is_named_by_its_id() -> None:
    [message] = messages(Turn("assistant", (Media("audio", file_id="audio_1"),)))
    assert message == {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}


@pytest.mark.parametrize(
    ("format", "written"),
    [
        (AnswerFormat("json"), {"type": "json_object"}),
        (
            AnswerFormat("schema", schema=SCHEMA),
            {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}},
        ),
    ],
)
def test_the_format_of_an_answer(format: AnswerFormat, written: dict[str, Any]) -> None:
    assert write(Conversation(ASKED, answer_format=format))["response_format"] == written


@pytest.mark.parametrize("mode", ["auto", "none", "required"])
def test_a_choice_of_tools_is_a_word_and_needs_tools(mode: Any) -> None:
    conversation = Conversation(ASKED, tools=(Tool("f"),), tool_choice=ToolChoice(mode), parallel_tool_calls=True)
    assert write(conversation)["tool_choice"] == mode
    assert write(replace(conversation, tools=())).keys() == {"messages"}


@pytest.mark.parametrize(
    ("tokens", "effort"), [(0, "none"), (1, "minimal"), (1024, "low"), (2048, "medium"), (32000, "high")]
)
def test_a_budget_of_reasoning_is_an_effort(tokens: int, effort: str) -> None:
    assert write(asking(reasoning_tokens=tokens))["reasoning_effort"] == effort
    assert write(asking(reasoning_tokens=tokens, reasoning_effort="xhigh"))["reasoning_effort"] == "xhigh"


@pytest.mark.parametrize(
    ("dialect", "tokens", "written"),
    [
        (openai_compatible.DEEPSEEK, 0, {"thinking": {"type": "disabled"}}),
        (openai_compatible.DEEPSEEK, 4096, {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
        (openai_compatible.OPENROUTER, 0, {"reasoning": {"enabled": False}}),
        (openai_compatible.OPENROUTER, 99, {"reasoning": {"max_tokens": 99}}),
        (openai_compatible.DASHSCOPE, 0, {"enable_thinking": False}),
        (openai_compatible.DASHSCOPE, 99, {"enable_thinking": True, "thinking_budget": 99}),
        (openai_compatible.DATABRICKS, 0, {"thinking": {"type": "disabled"}}),
        (openai_compatible.DATABRICKS, 99, {"thinking": {"type": "enabled", "budget_tokens": 99}}),
    ],
)
def test_a_budget_stays_one_where_there_are_budgets(dialect: Any, tokens: int, written: dict[str, Any]) -> None:
    body = write(asking(reasoning_tokens=tokens), dialect)
    del body["messages"]
    assert body == written


@pytest.mark.parametrize(
    ("dialect", "member"),
    [
        (openai_compatible.DEEPSEEK, "reasoning_content"),
        (openai_compatible.DASHSCOPE, "reasoning_content"),
        (openai_compatible.TAKES_REASONING_CONTENT, "reasoning_content"),
        (openai_compatible.TAKES_REASONING, "reasoning"),
        (openai_compatible.OPENROUTER, "reasoning"),
        (COMPATIBLE, None),
        (openai_compatible.OPENAI, None),
    ],
)
def test_reasoning_goes_back_to_providers_that_take_it(dialect: Any, member: str | None) -> None:
    turn = Turn("assistant", (Reasoning("think", "signed"), Reasoning(encrypted="x"), Text("So")))
    reasoning = {} if member is None else {member: "think"}
    assert messages(turn, dialect=dialect) == [{"role": "assistant", "content": "So", **reasoning}]


def test_marks_of_what_to_cache_go_where_they_are_known() -> None:
    turn = Turn("system", (Text("a", cache={"type": "ephemeral"}),))
    assert messages(turn) == [{"role": "system", "content": "a"}]
    [message] = messages(turn, dialect=openai_compatible.OPENROUTER)
    assert message["content"] == [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]


@pytest.mark.parametrize(
    ("part", "member", "dialect"),
    [
        (Media("audio", url="https://x/y.wav"), "messages.audio", COMPATIBLE),
        (Media("file", url="https://x/y.pdf"), "messages.file", COMPATIBLE),
        (Media("image", file_id="f"), "messages.image", COMPATIBLE),
        (Media("image", url="https://x/y.png"), "messages.image", openai_compatible.DEEPSEEK),
        (Media("file", data="YQ=="), "messages.file", openai_compatible.GROQ),
    ],
)
def test_a_medium_that_cannot_be_said_is_refused_or_left_out(part: Media, member: str, dialect: Any) -> None:
    conversation = Conversation((say(Text("Hi"), part),))
    with pytest.raises(InvalidRequest, match=rf"^\[{member}\]"):
        write(conversation, dialect)
    with pytest.raises(InvalidRequest, match=r"^\[input\."):
        write(replace(conversation, members={"turns": "input"}), dialect)
    dropped = Dropped()
    assert dialect.write(conversation, dropped)["messages"] == [{"role": "user", "content": "Hi"}]
    assert dropped == [member]


def test_members_that_are_unknown_are_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"^\[safety\.level\]"):
        write(Conversation(ASKED, unknown={"safety.level": 1}))


@pytest.mark.parametrize(
    ("dialect", "refused"),
    [
        (openai_compatible.OPENAI, "top_k min_p"),
        (openai_compatible.GROQ, "top_k min_p logprobs top_logprobs logit_bias n"),
        (openai_compatible.MISTRAL, "top_k min_p logprobs logit_bias user service_tier modalities audio verbosity"),
        (openai_compatible.DEEPSEEK, "top_k min_p n seed logit_bias metadata"),
        (openai_compatible.OLLAMA, "top_k min_p n logit_bias metadata"),
        (openai_compatible.WATSONX, "top_k min_p user metadata"),
        (openai_compatible.XAI, "top_k min_p"),
        (openai_compatible.PERPLEXITY, "min_p seed logit_bias"),
        (openai_compatible.DASHSCOPE, "min_p"),
    ],
)
def test_what_a_provider_does_not_take_is_refused_by_the_clients_name(dialect: Any, refused: str) -> None:
    for member in refused.split():
        with pytest.raises(InvalidRequest, match=rf"^\[their_{member}\]"):
            write(asking(**{member: 5}), dialect)
        with pytest.raises(InvalidRequest, match=rf"^\[{member}\]"):
            dialect.adapt({"messages": [], member: 5}, refuse)
        dropped = Dropped()
        assert member not in dialect.write(asking(**{member: 5}), dropped)
        assert dropped == [f"their_{member}"]


def test_what_asks_for_nothing_is_left_out_where_it_is_not_known() -> None:
    body = {"messages": [], "n": 1, "logprobs": False, "tool_choice": "auto", "logit_bias": None}
    assert openai_compatible.GROQ.adapt(body, refuse) == {"messages": [], "tool_choice": "auto"}
    empty = {
        "messages": [],
        "logit_bias": {},
        "metadata": {},
        "service_tier": "auto",
        "verbosity": "medium",
        "min_p": 0,
    }
    assert openai_compatible.DEEPSEEK.adapt(empty, refuse) == {"messages": []}


@pytest.mark.parametrize(
    ("dialect", "format", "type"),
    [
        (openai_compatible.DEEPSEEK, AnswerFormat("schema", schema=SCHEMA), "json_schema"),
        (openai_compatible.PERPLEXITY, AnswerFormat("json"), "json_object"),
    ],
)
def test_a_format_that_a_provider_does_not_know_is_refused(dialect: Any, format: AnswerFormat, type: str) -> None:
    conversation = Conversation(ASKED, answer_format=format, members={"answer_format": "output_config.format"})
    with pytest.raises(InvalidRequest, match=r"^\[output_config\.format\]"):
        write(conversation, dialect)
    with pytest.raises(InvalidRequest, match=rf"^\[response_format\].*{type}"):
        dialect.adapt({"response_format": {"type": type}}, refuse)
    assert dialect.adapt({"response_format": {"type": type}}, Dropped()) == {}


def test_the_names_of_messages_are_refused_where_they_are_not_known() -> None:
    for turn in (Turn("user", (Text("a"),), "ann"), Turn("assistant", (Text("a"),), "bot")):
        with pytest.raises(InvalidRequest, match=r"^\[messages\.name\]"):
            messages(turn, dialect=openai_compatible.GROQ)
    with pytest.raises(InvalidRequest, match=r"^\[messages\.name\]"):
        openai_compatible.GROQ.adapt({"messages": [{"role": "user", "content": "a", "name": "ann"}]}, refuse)


def test_what_an_openai_client_sends_goes_on_as_it_is() -> None:
    body = {"messages": MESSAGES, "max_completion_tokens": 5, "some_new_member": {"a": 1}, "n": 2}
    for dialect in (
        COMPATIBLE,
        openai_compatible.OPENAI,
        openai_compatible.OPENROUTER,
        openai_compatible.TAKES_REASONING,
    ):
        assert dialect.adapt(dict(body), refuse) == body


def test_mistral_gets_its_own_words_and_parts() -> None:
    body = {
        "messages": [
            {"role": "developer", "content": "No jokes."},
            {"role": "user", "content": MESSAGES[2]["content"]},
            {"role": "tool", "tool_call_id": "1", "name": "f", "content": "x"},
        ],
        "max_completion_tokens": 5, "seed": 7, "prediction": {"type": "content"},
    }  # fmt: skip
    adapted = openai_compatible.MISTRAL.adapt(body, refuse)
    assert {name: adapted[name] for name in adapted if name != "messages"} == {
        "max_tokens": 5, "random_seed": 7, "prediction": {"type": "content"},
    }  # fmt: skip
    system, user, tool = adapted["messages"]
    assert (system["role"], tool["name"]) == ("system", "f")
    assert user["content"][3:6] == [
        {"type": "input_audio", "input_audio": "c25k"},
        {"type": "document_url", "document_url": "data:application/pdf;base64,cGRm", "document_name": "a.pdf"},
        {"type": "file", "file_id": "file-1"},
    ]
    written = write(Conversation((say(Media("file", url="https://x/y.pdf", name="y.pdf")),)), openai_compatible.MISTRAL)
    assert written["messages"][0]["content"] == [
        {"type": "document_url", "document_url": "https://x/y.pdf", "document_name": "y.pdf"}
    ]


def test_deepseek_has_a_switch_for_no_reasoning() -> None:
    body = {"reasoning_effort": "none", "max_completion_tokens": 3}
    assert openai_compatible.DEEPSEEK.adapt(body, refuse) == {"thinking": {"type": "disabled"}, "max_tokens": 3}


def test_watsonx_has_another_member_for_a_choice_by_a_word() -> None:
    assert openai_compatible.WATSONX.adapt({"tool_choice": "required"}, refuse) == {"tool_choice_option": "required"}
    named = {"tool_choice": {"type": "function", "function": {"name": "f"}}}
    assert openai_compatible.WATSONX.adapt(dict(named), refuse) == named


def test_of_two_names_of_one_member_the_providers_own_counts() -> None:
    dialect = chat_dialect(Variant(renamed={"max_completion_tokens": "max_tokens"}))
    assert dialect.adapt({"max_completion_tokens": 5, "max_tokens": 3}, refuse) == {"max_tokens": 3}


@pytest.mark.parametrize(
    "body",
    [
        {"messages": "x"},
        {"messages": [1, None, {"content": [1, {"file": 1}, {"input_audio": []}]}]},
        {"response_format": [], "messages": None},
        {"response_format": {"type": []}, "tool_choice": 1},
        {"reasoning_effort": [], "n": {}, "seed": []},
    ],
)
def test_a_body_of_another_form_is_for_the_provider_to_refuse(body: dict[str, Any]) -> None:
    for dialect in (
        COMPATIBLE,
        openai_compatible.MISTRAL,
        openai_compatible.DEEPSEEK,
        openai_compatible.WATSONX,
        openai_compatible.PERPLEXITY,
    ):
        dialect.adapt(dict(body), Dropped())
