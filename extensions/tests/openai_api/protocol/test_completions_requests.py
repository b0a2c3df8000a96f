"""Bodies of `/v1/chat/completions`, and of `/v1/completions`, as conversations."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.conversation.conversation import (
    AnswerFormat,
    Call,
    Media,
    Reasoning,
    Result,
    Text,
    Tool,
    ToolChoice,
    Turn,
)
from opensearch_ml_stream.connectors.errors import InvalidRequest
from opensearch_ml_stream.extensions.openai_api.protocol.completions_request import (
    read_chat_request,
    read_completions_request,
)

ASKED: dict[str, Any] = {"role": "user", "content": "Why?"}
PNG = "data:image/png;base64,iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "Of a city", "parameters": SCHEMA}}


def with_messages(*messages: Any) -> dict[str, Any]:
    return {"messages": list(messages)}


def with_parts(*parts: Any) -> dict[str, Any]:
    return with_messages({"role": "user", "content": list(parts)})


def test_messages_of_plain_roles_are_turns() -> None:
    read = read_chat_request(
        with_messages(
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": "In German."},
            {"role": "user", "content": "Why?", "name": "ann"},
            {"role": "assistant", "content": "Darum."},
            ASKED,
        )
    )
    assert read.turns == (
        Turn("system", (Text("Be brief."),)),
        Turn("developer", (Text("In German."),)),
        Turn("user", (Text("Why?"),), "ann"),
        Turn("assistant", (Text("Darum."),)),
        Turn("user", (Text("Why?"),)),
    )
    assert (read.options, read.unknown, read.tools, read.tool_choice) == ({}, {}, (), None)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "text", "text": "a"}, Text("a")),
        (
            {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
            Text("a", {"type": "ephemeral"}),
        ),
        (
            {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
            Media("image", "image/png", "iVBORw0KGgo=", detail="low"),
        ),
        ({"type": "image_url", "image_url": {"url": "https://x.org/a.png"}}, Media("image", url="https://x.org/a.png")),
        ({"type": "image_url", "image_url": "https://x.org/a.png"}, Media("image", url="https://x.org/a.png")),
        (
            {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
            Media("audio", "audio/wav", "UklG"),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
            Media("audio", "audio/mpeg", "SUQz"),
        ),
        ({"type": "file", "file": {"file_id": "file-1"}}, Media("file", file_id="file-1")),
        (
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
            Media("file", "application/pdf", "JVBE", name="a.pdf"),
        ),
        (
            {"type": "file", "file": {"filename": "a.PDF", "file_data": "JVBE"}},
            Media("file", "application/pdf", "JVBE", name="a.PDF"),
        ),
        ({"type": "refusal", "refusal": "No."}, Text("No.")),
    ],
)
def test_parts_of_a_content_are_texts_and_media(part: dict[str, Any], expected: Text | Media) -> None:
    assert read_chat_request(with_parts(part)).turns == (Turn("user", (expected,)),)


def test_calls_and_their_results_are_told_by_ids_and_results_know_their_tool() -> None:
    def call(id: str, name: str) -> dict[str, Any]:
        return {"id": id, "type": "function", "function": {"name": name, "arguments": '{"city":"Ulm"}'}}

    read = read_chat_request(
        with_messages(
            ASKED,
            {"role": "assistant", "content": None, "tool_calls": [call("a", "weather"), call("b", "time")]},
            {"role": "tool", "tool_call_id": "b", "content": "noon"},
            {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "rain"}]},
            {"role": "user", "content": "So?"},
        )
    )
    arguments = '{"city":"Ulm"}'
    assert read.turns[1:] == (
        Turn("assistant", (Call("a", "weather", arguments), Call("b", "time", arguments))),
        Turn("user", (Result("b", (Text("noon"),), "time"), Result("a", (Text("rain"),), "weather"))),
        Turn("user", (Text("So?"),)),
    )


def test_functions_as_they_were_before_tools_are_tools_with_ids_of_ours() -> None:
    read = read_chat_request(
        {
            "messages": [
                ASKED,
                {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": "{}"}},
                {"role": "function", "name": "weather", "content": "rain"},
            ],
            "functions": [WEATHER["function"]],
            "function_call": {"name": "weather"},
        }
    )
    assert read.turns[1:] == (
        Turn("assistant", (Call("call_1", "weather", "{}"),)),
        Turn("user", (Result("call_1", (Text("rain"),), "weather"),)),
    )
    assert read.tools == (Tool("weather", "Of a city", SCHEMA),)
    assert read.tool_choice == ToolChoice("named", "weather")
    assert (read.member("tools"), read.member("tool_choice")) == ("functions", "function_call")


def test_an_answer_of_a_response_can_be_sent_back_as_it_was() -> None:
    answer: dict[str, Any] = {
        "role": "assistant",
        "content": "Rain.",
        "refusal": None,
        "annotations": [],
        "audio": None,
        "function_call": None,
        "tool_calls": None,
        "reasoning_content": "Clouds.",
        "reasoning_signature": "c2ln",
    }
    read = read_chat_request(with_messages(ASKED, answer, ASKED))
    assert read.turns[1] == Turn("assistant", (Reasoning("Clouds.", "c2ln"), Text("Rain.")))
    assert read.unknown == {}


def test_a_sound_that_the_provider_has_kept_is_a_part_of_its_answer() -> None:
    read = read_chat_request(with_messages(ASKED, {"role": "assistant", "audio": {"id": "audio_1"}}, ASKED))
    assert read.turns[1] == Turn("assistant", (Media("audio", file_id="audio_1"),))


@pytest.mark.parametrize(
    ("choice", "expected", "tools"),
    [
        ("auto", ToolChoice("auto"), ["weather", "time"]),
        ("none", ToolChoice("none"), ["weather", "time"]),
        ("required", ToolChoice("required"), ["weather", "time"]),
        ({"type": "function", "function": {"name": "time"}}, ToolChoice("named", "time"), ["weather", "time"]),
        (
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "time"}}]},
            },
            ToolChoice("required"),
            ["time"],
        ),
    ],
)
def test_the_choice_of_tools_leaves_those_that_are_allowed(choice: Any, expected: ToolChoice, tools: list[str]) -> None:
    time = {"type": "function", "function": {"name": "time", "strict": True}}
    read = read_chat_request(
        {"messages": [ASKED], "tools": [WEATHER, time], "tool_choice": choice, "parallel_tool_calls": False}
    )
    assert read.tool_choice == expected
    assert [tool.name for tool in read.tools] == tools
    assert read.parallel_tool_calls is False


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"type": "text"}, None),
        ({"type": "json_object"}, AnswerFormat("json")),
        (
            {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA, "strict": True}},
            AnswerFormat("schema", "city", "", SCHEMA, True),
        ),
    ],
)
def test_response_formats_are_read(value: Any, expected: AnswerFormat | None) -> None:
    read = read_chat_request({"messages": [ASKED], "response_format": value})
    assert read.answer_format == expected
    assert read.member("answer_format") == "response_format"


def test_options_have_neutral_names_and_the_client_s_are_known() -> None:
    options = {
        "temperature": 0,
        "top_p": 0.5,
        "top_k": 5,
        "seed": 7,
        "presence_penalty": 0.5,
        "logit_bias": {"5": 1},
        "logprobs": True,
        "top_logprobs": 2,
        "n": 2,
        "reasoning_effort": "low",
        "verbosity": "high",
        "metadata": {"a": "b"},
        "service_tier": "flex",
    }
    read = read_chat_request(
        {"messages": [ASKED], "max_completion_tokens": 9, "stop": "END", "safety_identifier": "u1", **options}
    )
    assert read.options == {**options, "max_tokens": 9, "stop": ["END"], "user": "u1"}
    assert read.member("max_tokens") == "max_completion_tokens"
    assert read.member("user") == "safety_identifier"
    assert read.unknown == {}


def test_members_of_an_earlier_answer_that_are_empty_are_not_unknown() -> None:
    answer = {"role": "assistant", "content": "Hi", "provider_specific_fields": {"refusal": None}}
    assert read_chat_request({"messages": [ASKED, answer, ASKED]}).unknown == {}


def test_what_asks_for_nothing_is_left_out() -> None:
    read = read_chat_request(
        {
            "messages": [ASKED],
            "n": 1,
            "logprobs": False,
            "frequency_penalty": 0.0,
            "service_tier": "auto",
            "store": False,
            "modalities": ["text"],
            "stop": None,
            "tools": [],
        }
    )
    assert (read.options, read.unknown, read.tools) == ({}, {}, ())


def test_what_has_no_place_is_unknown_by_its_path() -> None:
    custom = {"type": "custom", "custom": {"name": "sql"}}
    read = read_chat_request(
        {
            "messages": [
                {"role": "user", "content": [{"type": "video_url", "video_url": {"url": "u"}}], "weight": 1},
            ],
            "tools": [custom, {"type": "function", "function": {"name": "f", "x": 1}}],
            "response_format": {"type": "grammar", "grammar": "g"},
            "store": True,
            "prediction": {"type": "content"},
            "chat_template_kwargs": {"enable_thinking": False},
        }
    )
    assert read.unknown == {
        "messages[0].content[0].video_url": {"url": "u"},
        "messages[0].weight": 1,
        "tools[0]": custom,
        "tools[1].function.x": 1,
        "response_format": {"type": "grammar", "grammar": "g"},
        "store": True,
        "prediction": {"type": "content"},
        "chat_template_kwargs": {"enable_thinking": False},
    }


@pytest.mark.parametrize(
    ("body", "member"),
    [
        ({}, "messages is missing"),
        ({"messages": "Why?"}, "messages must be an array"),
        (with_messages("Why?"), "messages[0] must be an object"),
        (with_messages(ASKED, {"role": "bot", "content": ""}), "messages[1].role must be"),
        (with_messages({"content": "a"}), "messages[0].role is missing"),
        (with_messages({"role": "user", "content": 5}), "messages[0].content must be"),
        (with_messages({"role": "user"}), "messages[0].content must be"),
        (
            with_messages(ASKED, ASKED, {"role": "user", "content": [{"type": "image_url"}]}),
            "messages[2].content[0].image_url must be an object",
        ),
        (
            with_parts({"type": "image_url", "image_url": {"url": "data:image/png,x"}}),
            "messages[0].content[0].image_url.url must be",
        ),
        (with_parts({"type": "text"}), "messages[0].content[0].text is missing"),
        (with_messages({"role": "tool", "content": "a"}), "messages[0].tool_call_id is missing"),
        (
            with_messages(
                {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {}}}]}
            ),
            "messages[0].tool_calls[0].function.arguments must be a string",
        ),
        ({"messages": [ASKED], "temperature": "hot"}, "temperature must be a number"),
        ({"messages": [ASKED], "max_tokens": 1.5}, "max_tokens must be an integer"),
        ({"messages": [ASKED], "n": True}, "n must be an integer"),
        ({"messages": [ASKED], "stop": [1]}, "stop must be"),
        ({"messages": [ASKED], "reasoning_effort": "huge"}, "reasoning_effort must be one of"),
        ({"messages": [ASKED], "tool_choice": "any"}, "tool_choice must be"),
        ({"messages": [ASKED], "tools": [{"type": "function"}]}, "tools[0].function must be an object"),
        ({"messages": [ASKED], "response_format": {"type": "json_schema"}}, "response_format.json_schema must be"),
    ],
)
def test_an_error_names_the_member_that_is_wrong(body: dict[str, Any], member: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        read_chat_request(body)
    assert raised.value.reason.startswith(member)


@pytest.mark.parametrize("prompt", ["Once", ["Once"]])
def test_a_prompt_is_a_turn_of_the_user(prompt: Any) -> None:
    read = read_completions_request({"prompt": prompt, "max_tokens": 5, "stop": ["."], "best_of": 1})
    assert read.turns == (Turn("user", (Text("Once"),)),)
    assert read.options == {"max_tokens": 5, "stop": ["."]}
    assert read.unknown == {}
    assert read.member("turns") == "prompt"


def test_what_only_completions_have_is_unknown() -> None:
    read = read_completions_request({"prompt": "Once", "echo": True, "suffix": "End", "best_of": 3, "logprobs": 2})
    assert read.unknown == {"echo": True, "suffix": "End", "best_of": 3}
    assert read.options == {"logprobs": True, "top_logprobs": 2}
    assert read.member("top_logprobs") == "logprobs"


@pytest.mark.parametrize("prompt", [None, 5, [], [1, 2], [[1, 2]], ["a", "b"]])
def test_a_prompt_of_anything_but_one_text_is_refused(prompt: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"^prompt must be"):
        read_completions_request({"prompt": prompt})
