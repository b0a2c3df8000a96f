"""Bodies of `/v1/responses` as conversations."""

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
from opensearch_ml_stream.extensions.openai_api.http.responses_api import ResponsesAPI
from opensearch_ml_stream.extensions.openai_api.protocol.responses_request import read_responses_request

PNG = "data:image/png;base64,iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER = {"type": "function", "name": "weather", "description": "Of a city", "parameters": SCHEMA, "strict": True}
TIME = {"type": "function", "name": "time", "parameters": None, "strict": None}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "weather", "arguments": '{"city":"Bonn"}'}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "rain"}
ANSWER = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Wait.", "annotations": [], "logprobs": []}],
}


def read(**members: Any) -> Conversation:
    return read_responses_request({"input": "Why?", **members})


def test_a_string_is_what_the_user_says_after_the_instructions() -> None:
    conversation = read(instructions="Be brief.")
    assert conversation.turns == (Turn("system", (Text("Be brief."),)), Turn("user", (Text("Why?"),)))
    assert (conversation.options, conversation.unknown) == ({}, {})


def test_messages_need_no_type_and_may_have_parts() -> None:
    conversation = read(
        input=[
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": [{"type": "input_text", "text": "In German."}]},
            {"type": "message", "role": "user", "content": "Why?"},
            ANSWER,
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        ]
    )
    assert conversation.turns == (
        Turn("system", (Text("Be brief."),)),
        Turn("developer", (Text("In German."),)),
        Turn("user", (Text("Why?"),)),
        Turn("assistant", (Text("Wait."),)),
        Turn("assistant", (Text("No."),)),
    )
    assert conversation.unknown == {}


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "input_image", "image_url": PNG, "detail": "low"},
         Media("image", "image/png", "iVBORw0KGgo=", detail="low")),
        ({"type": "input_image", "image_url": "https://x/i.png"}, Media("image", url="https://x/i.png")),
        ({"type": "input_image", "file_id": "file_1", "detail": "auto"},
         Media("image", file_id="file_1", detail="auto")),
        ({"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="},
         Media("file", "application/pdf", "JVBERg==", name="a.pdf")),
        ({"type": "input_file", "file_url": "https://x/a.pdf"}, Media("file", url="https://x/a.pdf")),
        ({"type": "input_file", "file_id": "file_1"}, Media("file", file_id="file_1")),
        ({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
         Media("audio", "audio/wav", "UklGRg==")),
    ],
)  # fmt: skip
def test_parts_hold_images_files_and_sounds(part: dict[str, Any], expected: Media) -> None:
    conversation = read(input=[{"role": "user", "content": [{"type": "input_text", "text": "See"}, part]}])
    assert conversation.turns == (Turn("user", (Text("See"), expected)),)
    assert conversation.unknown == {}


def test_the_items_of_one_answer_are_one_turn_and_so_are_the_outputs_of_its_calls() -> None:
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}]}
    second = {**CALL, "call_id": "c2", "name": "time", "arguments": ""}
    parts = [{"type": "input_text", "text": "12"}, {"type": "input_image", "image_url": PNG}]
    conversation = read(
        input=[
            {"role": "user", "content": "Weather?"},
            {**reasoning, "encrypted_content": "gAAAA"},
            ANSWER,
            CALL,
            second,
            OUTPUT,
            {"type": "function_call_output", "call_id": "c2", "output": parts},
            {"role": "user", "content": "And?"},
        ]
    )
    assert conversation.turns[1:] == (
        Turn(
            "assistant",
            (
                Reasoning("Hm", encrypted="gAAAA"),
                Text("Wait."),
                Call("c1", "weather", '{"city":"Bonn"}'),
                Call("c2", "time", "{}"),
            ),
        ),
        Turn(
            "user",
            (
                Result("c1", (Text("rain"),), "weather"),
                Result("c2", (Text("12"), Media("image", "image/png", "iVBORw0KGgo=")), "time"),
            ),
        ),
        Turn("user", (Text("And?"),)),
    )
    assert conversation.unknown == {}


def test_a_signature_comes_back_as_the_encrypted_content_that_it_was_sent_as() -> None:
    content = [{"type": "reasoning_text", "text": "So"}]
    item = {"type": "reasoning", "summary": [], "content": content, "encrypted_content": "signature:EqQB"}
    assert read(input=[item]).turns == (Turn("assistant", (Reasoning("So", signature="EqQB"),)),)


def test_reasoning_of_which_a_client_has_nothing_is_left_out() -> None:
    empty: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None}
    assert read(input=[empty, ANSWER]).turns == (Turn("assistant", (Text("Wait."),)),)


def test_tools_are_flat_and_those_of_openai_s_own_are_left_out_by_name() -> None:
    conversation = read(tools=[WEATHER, {"type": "web_search", "filters": {}}, TIME], parallel_tool_calls=False)
    assert conversation.tools == (Tool("weather", "Of a city", SCHEMA, True), Tool("time"))
    assert (conversation.left_out, conversation.unknown) == (("tools[1] (web_search)",), {})
    assert conversation.parallel_tool_calls is False


_TEXT = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}
EDIT = {"type": "custom", "name": "edit", "description": "Edit.", "format": {"type": "text"}}
GRAMMAR = {"type": "grammar", "syntax": "regex", "definition": "a+"}


@pytest.mark.parametrize(
    ("changed", "description"),
    [
        ({}, "Edit."),
        ({"format": None, "defer_loading": True}, "Edit."),
        ({"format": GRAMMAR}, "Edit.\n\nThe input is text of this regex grammar:\na+"),
        ({"format": GRAMMAR, "description": None}, "The input is text of this regex grammar:\na+"),
    ],
)
def test_a_free_form_tool_is_a_function_of_one_string(changed: dict[str, Any], description: str) -> None:
    conversation = read(tools=[{**EDIT, **changed}])
    assert (conversation.tools, conversation.unknown) == ((Tool("edit", description, _TEXT),), {})


def test_tools_of_a_namespace_and_those_that_the_input_adds_are_functions() -> None:
    docs = {"type": "namespace", "name": "docs", "description": "D", "tools": [TIME, EDIT, {"type": "web_search"}]}
    added = {"type": "additional_tools", "role": "developer", "tools": [docs]}
    for conversation, path in (
        (read(tools=[docs]), "tools[0]"),
        (read(input=[added, ANSWER]), "input[0].tools[0]"),
    ):
        assert [tool.name for tool in conversation.tools] == ["docs__time", "docs__edit"]
        assert (conversation.left_out, conversation.unknown) == ((f"{path}.tools[2] (web_search)",), {})


def test_calls_of_tools_that_are_no_functions_are_calls_of_their_functions() -> None:
    call = {"type": "custom_tool_call", "call_id": "c1", "name": "edit", "input": 'a "b"'}
    output = {"type": "custom_tool_call_output", "call_id": "c1", "output": "Done."}
    of_docs = {"type": "function_call", "call_id": "c2", "name": "time", "namespace": "docs", "arguments": ""}
    conversation = read(input=[call, of_docs, output])
    assert conversation.turns == (
        Turn("assistant", (Call("c1", "edit", '{"input":"a \\"b\\""}'), Call("c2", "docs__time", "{}"))),
        Turn("user", (Result("c1", (Text("Done."),), "edit"),)),
    )
    assert conversation.unknown == {}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", ToolChoice("auto")),
        ("required", ToolChoice("required")),
        ({"type": "function", "name": "time"}, ToolChoice("named", "time")),
        ({"type": "custom", "name": "edit"}, ToolChoice("named", "edit")),
        ({"type": "function", "namespace": "docs", "name": "time"}, ToolChoice("named", "docs__time")),
    ],
)
def test_a_tool_choice_is_a_word_or_names_a_function(choice: Any, expected: ToolChoice) -> None:
    assert read(tools=[WEATHER, TIME], tool_choice=choice).tool_choice == expected


def test_tools_that_are_not_allowed_are_left_out() -> None:
    allowed = [{"type": "function", "name": "time"}, {"type": "mcp", "server_label": "x"}]
    choice = {"type": "allowed_tools", "mode": "required", "tools": allowed}
    conversation = read(tools=[WEATHER, TIME], tool_choice=choice)
    assert (conversation.tools, conversation.tool_choice) == ((Tool("time"),), ToolChoice("required"))


@pytest.mark.parametrize(
    "choice",
    [
        {"type": "web_search"},
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp", "server_label": "x"}]},
    ],
)
def test_a_choice_of_openai_s_own_tools_is_unknown(choice: Any) -> None:
    conversation = read(tools=[WEATHER], tool_choice=choice)
    assert (conversation.tool_choice, conversation.unknown) == (None, {"tool_choice": choice})
    assert len(conversation.tools) == 1


def test_a_call_that_is_forced_needs_a_tool_that_is_not_left_out() -> None:
    assert read(tools=[{"type": "web_search"}], tool_choice="required").unknown == {"tool_choice": "required"}
    assert read(tools=[{"type": "web_search"}], tool_choice="auto").unknown == {}
    assert read(tools=[{"type": "web_search"}, TIME], tool_choice="required").unknown == {}


def test_formats_of_text() -> None:
    schema = {"type": "json_schema", "name": "place", "schema": SCHEMA, "strict": True}
    assert read(text={"format": schema}).answer_format == AnswerFormat("schema", "place", "", SCHEMA, True)
    assert read(text={"format": {"type": "json_object"}}).answer_format == AnswerFormat("json")
    assert read(text={"format": {"type": "text"}}).answer_format is None
    grammar = {"type": "grammar", "definition": "x"}
    assert read(text={"format": grammar}).unknown == {"text.format": grammar}


def test_options_have_the_names_of_the_neutral_form_and_errors_those_of_the_client() -> None:
    conversation = read(
        max_output_tokens=5,
        temperature=0,
        top_p=0.5,
        text={"verbosity": "low"},
        reasoning={"effort": "low", "summary": "auto"},
        metadata={"a": "b"},
        service_tier="flex",
        safety_identifier="u1",
    )
    assert conversation.options == {
        "max_tokens": 5,
        "temperature": 0,
        "top_p": 0.5,
        "verbosity": "low",
        "reasoning_effort": "low",
        "reasoning_summary": "auto",
        "metadata": {"a": "b"},
        "service_tier": "flex",
        "user": "u1",
    }
    assert conversation.unknown == {}
    names = ("max_tokens", "verbosity", "reasoning_effort", "user", "temperature", "answer_format", "turns")
    assert [conversation.member(name) for name in names] == [
        "max_output_tokens", "text.verbosity", "reasoning.effort", "safety_identifier", "temperature", "text.format",
        "input",
    ]  # fmt: skip


def test_what_asks_for_nothing_is_not_unknown() -> None:
    conversation = read(
        store=False,
        background=False,
        truncation="disabled",
        include=["reasoning.encrypted_content"],
        top_logprobs=0,
        service_tier="auto",
        metadata={},
        prompt=None,
        stream_options={"include_obfuscation": False},
        text={"format": {"type": "text"}},
        prompt_cache_key="a hint",
        prompt_cache_retention="24h",
        client_metadata={"a": "b"},
    )
    assert (conversation.options, conversation.unknown) == ({}, {})


def test_what_only_openai_s_own_interface_does_is_unknown() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    breakpoint = {"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}
    conversation = read(
        input=[search, {"role": "user", "content": [breakpoint, {"type": "input_video"}]}],
        include=["message.output_text.logprobs", "reasoning.encrypted_content"],
        top_logprobs=3,
        truncation="auto",
        max_tool_calls=2,
        reasoning={"context": "auto"},
        made_up=1,
    )
    assert conversation.unknown == {
        "input[0]": search,
        "input[1].content[0].prompt_cache_breakpoint": {"mode": "explicit"},
        "input[1].content[1]": {"type": "input_video"},
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 3,
        "truncation": "auto",
        "max_tool_calls": 2,
        "reasoning.context": "auto",
        "made_up": 1,
    }


@pytest.mark.parametrize(
    ("members", "begins"),
    [
        ({"input": 3}, "input must be"),
        ({"input": None}, "input must be"),
        ({"input": ["a"]}, "input[0] must be an object"),
        ({"input": [{"role": "tool", "content": "a"}]}, "input[0].role must be"),
        ({"input": [{"role": "user"}]}, "input[0].content must be"),
        ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]}, "input[0].content[0].text is missing"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0].image_url is"),
        ({"input": [{"type": "function_call", "name": "f"}]}, "input[0].call_id is missing"),
        ({"input": [{"type": "function_call_output", "call_id": "c"}]}, "input[0].output must be"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0] cannot be a reference"),
        ({"input": [{"type": "reasoning", "summary": "a"}]}, "input[0].summary must be an array"),
        ({"max_output_tokens": "5"}, "max_output_tokens must be an integer"),
        ({"reasoning": {"effort": "huge"}}, "reasoning.effort must be one of"),
        ({"tools": [{"type": "function"}]}, "tools[0].name is missing"),
        ({"tools": [{"type": "namespace", "name": "a", "tools": {}}]}, "tools[0].tools must be an array"),
        ({"tools": [{"type": "namespace", "name": "a" * 129, "tools": []}]}, "tools[0].name may have 128"),
        ({"input": [{"type": "custom_tool_call", "call_id": "c"}]}, "input[0].name is missing"),
        ({"tool_choice": "any"}, "tool_choice must be"),
        ({"tool_choice": ["auto"]}, "tool_choice must be"),
        ({"text": {"format": {"type": "json_schema", "name": "a"}}}, "text.format.schema is missing"),
    ],
)
def test_a_wrong_member_is_named(members: dict[str, Any], begins: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read(**members)
    assert caught.value.reason.startswith(begins)


@pytest.mark.parametrize(
    "member",
    [{"store": True}, {"background": True}, {"previous_response_id": "resp_1"}, {"conversation": {"id": "conv_1"}}],
)
def test_what_needs_a_store_is_refused(member: dict[str, Any]) -> None:
    (name,) = member
    with pytest.raises(InvalidRequest, match=f"{name} cannot .* not stored here"):
        ResponsesAPI(lambda: 0).read({"model": "m", "input": "Why?", **member})


def test_a_provider_of_the_dialect_is_told_to_store_nothing_and_gets_the_rest_as_it_was_sent() -> None:
    sent = {"input": "Why?", "tools": [{"type": "web_search"}], "made_up": 1, "previous_response_id": None}
    asked = ResponsesAPI(lambda: 0).read({"model": "m", "stream": True, **sent})
    assert (asked.model, asked.is_stream) == ("m", True)
    assert asked.request.body == {**sent, "store": False}
