"""Conversations as Cohere, Ollama, DashScope and Workers AI take them: messages near to OpenAI's."""

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
)
from opensearch_ml_stream.connectors.conversation.dialect import Dialect
from opensearch_ml_stream.connectors.providers.cohere import DIALECT as COHERE
from opensearch_ml_stream.connectors.providers.dashscope import DIALECT as DASHSCOPE
from opensearch_ml_stream.connectors.providers.ollama import DIALECT as OLLAMA
from opensearch_ml_stream.connectors.providers.workers_ai_run import DIALECT as WORKERS_AI
from tests.conversation.common_conversation import CALLS, PICTURE, RICH, TOOLS, WEATHER, refused, said, turn, write

FUNCTIONS = [
    {"type": "function", "function": {"name": "weather", "description": "Weather of a city", "parameters": WEATHER}},
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
]
WRITTEN_CALLS = [
    {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Ulm"}'}},
    {"id": "c2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
]
DATA_URL = "data:image/png;base64,iVBORw0K"
SCHEMA = AnswerFormat("schema", "w", schema=WEATHER)


def test_a_whole_conversation_is_written_as_cohere_documents_it() -> None:
    assert write(COHERE, RICH) == {
        "messages": [
            {"role": "system", "content": "Be short."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": DATA_URL}},
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "I look."}], "tool_calls": WRITTEN_CALLS},
            {"role": "tool", "tool_call_id": "c1", "content": "rain"},
            {"role": "tool", "tool_call_id": "c2", "content": "Error: no clock"},
            {"role": "system", "content": "In verse."},
            {"role": "user", "content": "Now?"},
        ],
        "tools": FUNCTIONS,
        "max_tokens": 100,
        "temperature": 0.5,
        "p": 0.9,
        "k": 40,
        "seed": 7,
        "presence_penalty": 0.1,
    }


def test_a_whole_conversation_is_written_as_ollama_documents_it() -> None:
    assert write(OLLAMA, RICH) == {
        "messages": [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "What is this?", "images": ["iVBORw0K"]},
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {"id": "c1", "function": {"name": "weather", "arguments": {"city": "Ulm"}}},
                    {"id": "c2", "function": {"name": "now", "arguments": {}}},
                ],
            },
            {"role": "tool", "content": "rain", "tool_call_id": "c1", "tool_name": "weather"},
            {"role": "tool", "content": "Error: no clock", "tool_call_id": "c2", "tool_name": "now"},
            {"role": "system", "content": "In verse."},
            {"role": "user", "content": "Now?"},
        ],
        "tools": FUNCTIONS,
        "options": {
            "num_predict": 100,
            "temperature": 0.5,
            "top_p": 0.9,
            "top_k": 40,
            "seed": 7,
            "presence_penalty": 0.1,
        },
    }


def test_a_whole_conversation_is_written_as_dashscope_documents_it() -> None:
    assert write(DASHSCOPE, RICH) == {
        "input": {
            "messages": [
                {"role": "system", "content": "Be short."},
                {"role": "user", "content": [{"text": "What is this?"}, {"image": DATA_URL}]},
                {"role": "assistant", "content": "I look.", "tool_calls": WRITTEN_CALLS},
                {"role": "tool", "tool_call_id": "c1", "content": "rain"},
                {"role": "tool", "tool_call_id": "c2", "content": "Error: no clock"},
                {"role": "system", "content": "In verse."},
                {"role": "user", "content": "Now?"},
            ]
        },
        "parameters": {"result_format": "message", "tools": FUNCTIONS, **RICH.options},
    }


def test_a_whole_conversation_is_written_as_workers_ai_takes_it() -> None:
    assert write(WORKERS_AI, RICH) == {
        "messages": [
            {"role": "system", "content": "Be short."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": DATA_URL}},
                ],
            },
            {"role": "assistant", "content": "I look.", "tool_calls": WRITTEN_CALLS},
            {"role": "tool", "tool_call_id": "c1", "name": "weather", "content": "rain"},
            {"role": "tool", "tool_call_id": "c2", "name": "now", "content": "Error: no clock"},
            {"role": "system", "content": "In verse."},
            {"role": "user", "content": "Now?"},
        ],
        "tools": FUNCTIONS,
        **RICH.options,
    }


@pytest.mark.parametrize(
    ("dialect", "message"),
    [
        (
            COHERE,
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Hi."}],
            },
        ),
        (OLLAMA, {"role": "assistant", "content": "Hi.", "thinking": "Hm."}),
        (WORKERS_AI, {"role": "assistant", "content": "Hi."}),
    ],
    ids=["cohere", "ollama", "workers_ai"],
)
def test_reasoning_goes_back_where_it_is_taken(dialect: Dialect, message: dict[str, Any]) -> None:
    answers = turn("assistant", Reasoning("Hm."), "Hi.")
    of_another = turn("assistant", Reasoning("Hm.", "signed"), "Hi.")
    assert write(dialect, Conversation((answers,)))["messages"] == [message]
    assert "Hm." not in str(write(dialect, Conversation((of_another,))))


def test_an_answer_of_which_nothing_goes_back_is_no_message_of_coheres() -> None:
    turns = (turn("user", "Hi"), turn("assistant", Reasoning("Hm.", "signed")))
    assert write(COHERE, Conversation(turns))["messages"] == [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize(
    ("dialect", "more", "written"),
    [
        (COHERE, {"options": {"stop": ["END"]}}, {"stop_sequences": ["END"]}),
        (COHERE, {"options": {"reasoning_tokens": 500}}, {"thinking": {"type": "enabled", "token_budget": 500}}),
        (COHERE, {"options": {"reasoning_effort": "low"}}, {"thinking": {"type": "enabled", "token_budget": 1024}}),
        (COHERE, {"options": {"reasoning_effort": "none"}}, {"thinking": {"type": "disabled"}}),
        (
            COHERE,
            {"answer_format": SCHEMA},
            {"response_format": {"type": "json_object", "json_schema": WEATHER}},
        ),
        (
            COHERE,
            {"tools": TOOLS, "tool_choice": ToolChoice("named", "now")},
            {"tools": FUNCTIONS[1:], "tool_choice": "REQUIRED"},
        ),
        (COHERE, {"tools": TOOLS, "tool_choice": ToolChoice("none")}, {"tools": FUNCTIONS, "tool_choice": "NONE"}),
        (COHERE, {"tools": (Tool("now", strict=True),)}, {"tools": FUNCTIONS[1:], "strict_tools": True}),
        (OLLAMA, {"options": {"reasoning_effort": "minimal"}}, {"think": "low"}),
        (OLLAMA, {"options": {"reasoning_tokens": 0}}, {"think": False}),
        (OLLAMA, {"options": {"reasoning_tokens": 9000}}, {"think": "high"}),
        (OLLAMA, {"options": {"min_p": 0.1}}, {"options": {"min_p": 0.1}}),
        (OLLAMA, {"answer_format": SCHEMA}, {"format": WEATHER}),
        (OLLAMA, {"answer_format": AnswerFormat("json")}, {"format": "json"}),
        (OLLAMA, {"tools": TOOLS, "tool_choice": ToolChoice("none")}, {}),
        (WORKERS_AI, {"answer_format": SCHEMA}, {"response_format": {"type": "json_schema", "json_schema": WEATHER}}),
        (WORKERS_AI, {"tools": TOOLS, "tool_choice": ToolChoice("auto")}, {"tools": FUNCTIONS}),
    ],
)
def test_what_is_asked_of_an_answer_is_written(dialect: Dialect, more: dict[str, Any], written: dict[str, Any]) -> None:
    assert write(dialect, said("Hi", **more)) == {"messages": [{"role": "user", "content": "Hi"}], **written}


@pytest.mark.parametrize(
    ("more", "written"),
    [
        ({"options": {"reasoning_tokens": 500}}, {"enable_thinking": True, "thinking_budget": 500}),
        ({"options": {"reasoning_effort": "none"}}, {"enable_thinking": False}),
        (
            {"tools": TOOLS, "tool_choice": ToolChoice("named", "now"), "parallel_tool_calls": False},
            {
                "tools": FUNCTIONS,
                "tool_choice": {"type": "function", "function": {"name": "now"}},
                "parallel_tool_calls": False,
            },
        ),
        (
            {"answer_format": SCHEMA},
            {"response_format": {"type": "json_schema", "json_schema": {"name": "w", "schema": WEATHER}}},
        ),
    ],
)
def test_what_is_asked_of_dashscopes_answer_is_a_parameter(more: dict[str, Any], written: dict[str, Any]) -> None:
    assert write(DASHSCOPE, said("Hi", **more))["parameters"] == {"result_format": "message", **written}


def test_marks_of_the_cache_go_where_they_are_taken() -> None:
    body = write(DASHSCOPE, said(Text("A long text", cache={"type": "ephemeral", "ttl": "1h"}), "Hi"))
    assert body["input"]["messages"][0]["content"] == [
        {"text": "A long text", "cache_control": {"type": "ephemeral"}},
        {"text": "Hi"},
    ]


@pytest.mark.parametrize(
    ("dialect", "conversation", "member"),
    [
        (OLLAMA, said(Media("image", url="https://h/a.png")), "turns.image"),
        (OLLAMA, said("Hi", tools=(Tool("x", strict=True),)), "tools.strict"),
        (OLLAMA, said("Hi", tools=TOOLS, tool_choice=ToolChoice("required")), "tool_choice"),
        (
            OLLAMA,
            Conversation((turn("assistant", *CALLS[:1], type(CALLS[0])("c3", "now", "[1]")),)),
            "turns.arguments",
        ),
        (COHERE, said(Result("c1", (PICTURE,))), "turns.image"),
        (COHERE, said(Media("audio", "audio/wav", data="UklG")), "turns.audio"),
        (COHERE, said("Hi", tools=TOOLS, parallel_tool_calls=False), "parallel_tool_calls"),
        (COHERE, said("Hi", options={"reasoning_effort": "utmost"}), "reasoning_effort"),
        (DASHSCOPE, said(Media("image", "image/png", data="iVBO", detail="high")), "turns.detail"),
        (DASHSCOPE, said("Hi", tools=TOOLS, tool_choice=ToolChoice("required")), "tool_choice"),
        (WORKERS_AI, said(Media("file", file_id="file-1")), "turns.file"),
        (WORKERS_AI, said("Hi", answer_format=AnswerFormat("schema", schema=WEATHER, strict=True)), "answer_format"),
        (WORKERS_AI, said("Hi", options={"stop": ["END"]}), "stop"),
        (WORKERS_AI, said("Hi", options={"reasoning_summary": "auto"}), "reasoning_summary"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_provider_cannot_say_is_refused(dialect: Dialect, conversation: Conversation, member: str) -> None:
    assert refused(dialect, conversation) == [member]


def test_arguments_that_are_not_quite_json_are_written_as_they_are_meant() -> None:
    call = Call("c1", "weather", '{"city":"\\ud83d","n":NaN}')
    [message] = write(OLLAMA, Conversation((turn("assistant", call),)))["messages"]
    assert message["tool_calls"][0]["function"]["arguments"] == {"city": "\ufffd", "n": None}
