"""Conversations as Gemini takes them, in `generateContent` and in the Interactions API."""

from typing import Any

import pytest

from opensearch_ml_stream.connectors.chunks import Chunk, ToolCall
from opensearch_ml_stream.connectors.conversation.conversation import (
    AnswerFormat,
    Conversation,
    Media,
    Part,
    Reasoning,
    Result,
    Text,
    Tool,
    ToolChoice,
)
from opensearch_ml_stream.connectors.conversation.dialects.gemini_contents import GEMINI, SKIP_VALIDATION
from opensearch_ml_stream.connectors.providers.gemini_interactions import DIALECT as GEMINI_INTERACTIONS
from tests.conversation.common_conversation import (
    CALLS,
    PICTURE,
    RICH,
    TOOLS,
    WEATHER,
    refused,
    said,
    turn,
    without_reasoning,
    write,
)
from tests.providers.stream_bodies import decode, sse

INLINE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0K"}}
CITY = {"functionCall": {"id": "c1", "name": "weather", "args": {"city": "Ulm"}}}
CLOCK = {"functionCall": {"id": "c2", "name": "now", "args": {}}}


def test_a_whole_conversation_is_written_as_gemini_documents_it() -> None:
    assert write(GEMINI, RICH) == {
        "systemInstruction": {"parts": [{"text": "Be short."}, {"text": "In verse."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "What is this?"}, INLINE]},
            {
                "role": "model",
                "parts": [
                    {"text": "A church: Ulm.", "thought": True, "thoughtSignature": "c2ln"},
                    {"text": "I look."},
                    {**CITY, "thoughtSignature": SKIP_VALIDATION},
                    CLOCK,
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "c1", "name": "weather", "response": {"output": "rain"}}},
                    {"functionResponse": {"id": "c2", "name": "now", "response": {"error": "no clock"}}},
                    {"text": "Now?"},
                ],
            },
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "weather", "description": "Weather of a city", "parametersJsonSchema": WEATHER},
                    {"name": "now"},
                ]
            }
        ],
        "generationConfig": {
            "maxOutputTokens": 100,
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 40,
            "seed": 7,
            "presencePenalty": 0.1,
        },
    }


def answer(*parts: Part | str) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = write(GEMINI, Conversation((turn("assistant", *parts),)))["contents"][0]["parts"]
    return written


@pytest.mark.parametrize(
    ("parts", "written"),
    [
        (
            [Reasoning("Hm.", "s1"), *CALLS],
            [{"text": "Hm.", "thought": True}, {**CITY, "thoughtSignature": "s1"}, CLOCK],
        ),
        (["Hi.", Reasoning("", "s1")], [{"text": "Hi.", "thoughtSignature": "s1"}]),
        ([Reasoning("", "s1"), "Hi."], [{"text": "", "thoughtSignature": "s1"}, {"text": "Hi."}]),
        (
            ["Hi.", Reasoning("", "s1"), Reasoning("", "s2"), CALLS[0]],
            [{"text": "Hi.", "thoughtSignature": "s1"}, {**CITY, "thoughtSignature": "s2"}],
        ),
        ([Reasoning("Hm."), "Hi."], [{"text": "Hi."}]),
        ([Reasoning(encrypted="x"), "Hi."], [{"text": "Hi."}]),
    ],
    ids=["of a call", "of a text", "before a text", "of both", "none", "of another provider"],
)
def test_a_signature_stands_where_gemini_gave_it(parts: list[Part | str], written: list[dict[str, Any]]) -> None:
    assert answer(*parts) == written


def test_an_answer_of_nothing_is_left_out() -> None:
    silent = write(GEMINI, Conversation((turn("user", "Hi"), turn("assistant"), turn("user", "Well?"))))
    assert silent == {"contents": [{"role": "user", "parts": [{"text": "Hi"}, {"text": "Well?"}]}]}


def test_what_gemini_signs_comes_back_as_it_was() -> None:
    parts: list[dict[str, Any]] = [
        {"text": "Hm.", "thought": True},
        {"text": "I look.", "thoughtSignature": "s1"},
        {**CITY, "thoughtSignature": "s2"},
        CLOCK,
    ]
    chunks, _ = decode(
        "gemini/v1beta/generatecontent",
        sse(*({"candidates": [{"content": {"parts": [part]}}]} for part in parts), {"candidates": [{}]}),
    )
    assert chunks == [
        Chunk(reasoning="Hm."),
        Chunk("I look."),
        Chunk(signature="s1"),
        Chunk(tool_calls=(ToolCall(0, "c1", "weather", '{"city":"Ulm"}'),), signature="s2"),
        Chunk(tool_calls=(ToolCall(1, "c2", "now", "{}"),)),
    ]
    again = answer(Reasoning("Hm."), "I look.", Reasoning("", "s1"), Reasoning("", "s2"), *CALLS)
    assert again == parts[1:]


def test_results_of_one_turns_calls_are_in_one_content() -> None:
    results = (turn("user", Result("c1", (Text("rain"),))), turn("user", Result("c2", (Text("noon"), PICTURE))))
    contents = write(GEMINI, Conversation((turn("assistant", *CALLS), *results)))["contents"]
    assert [content["role"] for content in contents] == ["model", "user"]
    assert contents[1]["parts"][1] == {
        "functionResponse": {"id": "c2", "name": "now", "response": {"output": "noon"}, "parts": [INLINE]}
    }


def test_a_result_of_an_unknown_call_is_refused_unless_it_has_its_tools_name() -> None:
    assert refused(GEMINI, said(Result("c9", (Text("x"),)))) == ["turns.tool_name"]
    named = write(GEMINI, said(Result("c9", (Text("x"),), name="weather")))["contents"][0]["parts"][0]
    assert named["functionResponse"]["name"] == "weather"


@pytest.mark.parametrize(
    ("media", "part"),
    [
        (
            Media("image", url="https://h/a.JPG?w=9"),
            {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://h/a.JPG?w=9"}},
        ),
        (Media("image", url="https://h/a"), {"fileData": {"fileUri": "https://h/a"}}),
        (Media("file", file_id="https://g/files/f1"), {"fileData": {"fileUri": "https://g/files/f1"}}),
        (Media("audio", "audio/wav", data="UklG"), {"inlineData": {"mimeType": "audio/wav", "data": "UklG"}}),
        (Media("file", "text/plain", text="Once."), {"text": "Once."}),
    ],
    ids=["url", "url without a type", "a file of Gemini's", "audio", "plain text"],
)
def test_media_are_written_by_what_they_are(media: Media, part: dict[str, Any]) -> None:
    assert write(GEMINI, said(media))["contents"][0]["parts"] == [part]


@pytest.mark.parametrize(
    ("choice", "strict", "config"),
    [
        (None, None, None),
        (ToolChoice("auto"), None, {"mode": "AUTO"}),
        (ToolChoice("none"), True, {"mode": "NONE"}),
        (ToolChoice("required"), None, {"mode": "ANY"}),
        (ToolChoice("named", "now"), None, {"mode": "ANY", "allowedFunctionNames": ["now"]}),
        (None, True, {"mode": "VALIDATED"}),
    ],
)
def test_the_choice_of_tools_is_a_mode(choice: ToolChoice | None, strict: bool | None, config: Any) -> None:
    body = write(GEMINI, said("Hi", tools=(*TOOLS, Tool("x", strict=strict)), tool_choice=choice))
    assert body.get("toolConfig", {}).get("functionCallingConfig") == config


@pytest.mark.parametrize(
    ("options", "config"),
    [
        ({"reasoning_effort": "low"}, {"thinkingConfig": {"thinkingBudget": 1024}}),
        ({"reasoning_effort": "none"}, {"thinkingConfig": {"thinkingBudget": 0}}),
        ({"reasoning_tokens": 2000}, {"thinkingConfig": {"thinkingBudget": 2000, "includeThoughts": True}}),
        (
            {"reasoning_tokens": 2000, "reasoning_summary": "omitted", "reasoning_effort": "low"},
            {"thinkingConfig": {"thinkingBudget": 2000}},
        ),
        ({"reasoning_summary": "auto"}, {"thinkingConfig": {"includeThoughts": True}}),
        ({"stop": ["END"], "frequency_penalty": 0.2}, {"stopSequences": ["END"], "frequencyPenalty": 0.2}),
    ],
)
def test_options_are_in_the_generation_config(options: dict[str, Any], config: dict[str, Any]) -> None:
    assert write(GEMINI, said("Hi", options=options))["generationConfig"] == config


def test_the_answers_format_is_a_media_type_and_a_schema() -> None:
    json_only = said("Hi", answer_format=AnswerFormat("json"))
    assert write(GEMINI, json_only)["generationConfig"] == {"responseMimeType": "application/json"}
    wanted = AnswerFormat("schema", "w", "The weather", WEATHER, strict=True)
    assert write(GEMINI, said("Hi", answer_format=wanted))["generationConfig"] == {
        "responseMimeType": "application/json",
        "responseJsonSchema": {"description": "The weather", **WEATHER},
    }


def test_all_images_have_one_resolution() -> None:
    low, high = (Media("image", "image/png", data="iVBO", detail=detail) for detail in ("low", "high"))
    assert write(GEMINI, said(low, low))["generationConfig"] == {"mediaResolution": "MEDIA_RESOLUTION_LOW"}
    assert refused(GEMINI, said(low, high)) == ["turns.detail"]


@pytest.mark.parametrize("dialect", [GEMINI, GEMINI_INTERACTIONS], ids=lambda dialect: dialect.name)
def test_googles_tiers_of_service_are_taken_by_their_names(dialect: Any) -> None:
    assert "flex" in write(dialect, said("Hi", options={"service_tier": "flex"})).values()
    assert write(dialect, said("Hi", options={"service_tier": "auto"})) == write(dialect, said("Hi"))
    assert refused(dialect, said("Hi", options={"service_tier": "scale"})) == ["service_tier"]


def test_a_whole_conversation_is_written_as_steps() -> None:
    body = write(GEMINI_INTERACTIONS, Conversation(RICH.turns, TOOLS, options={"max_tokens": 9, "stop": ["END"]}))
    assert body == {
        "system_instruction": "Be short.\n\nIn verse.",
        "input": [
            {
                "type": "user_input",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image", "data": "iVBORw0K", "mime_type": "image/png"},
                ],
            },
            {"type": "thought", "signature": "c2ln", "summary": [{"type": "text", "text": "A church: Ulm."}]},
            {"type": "model_output", "content": [{"type": "text", "text": "I look."}]},
            {"type": "function_call", "id": "c1", "name": "weather", "arguments": {"city": "Ulm"}},
            {"type": "function_call", "id": "c2", "name": "now", "arguments": {}},
            {"type": "function_result", "call_id": "c1", "name": "weather", "result": "rain"},
            {"type": "function_result", "call_id": "c2", "name": "now", "result": "no clock", "is_error": True},
            {"type": "user_input", "content": [{"type": "text", "text": "Now?"}]},
        ],
        "tools": [
            {"type": "function", "name": "weather", "description": "Weather of a city", "parameters": WEATHER},
            {"type": "function", "name": "now"},
        ],
        "generation_config": {"max_output_tokens": 9, "stop_sequences": ["END"]},
        "store": False,
    }
    unsigned = write(GEMINI_INTERACTIONS, without_reasoning(Conversation(RICH.turns)))["input"]
    assert unsigned == [step for step in body["input"] if step["type"] != "thought"]


@pytest.mark.parametrize(
    ("more", "member", "value"),
    [
        ({"options": {"reasoning_effort": "high"}}, "generation_config", {"thinking_level": "high"}),
        (
            {"options": {"reasoning_tokens": 1500}},
            "generation_config",
            {"thinking_level": "low", "thinking_summaries": "auto"},
        ),
        ({"options": {"reasoning_tokens": 0}}, "generation_config", {"thinking_level": "minimal"}),
        ({"options": {"reasoning_summary": "auto"}}, "generation_config", {"thinking_summaries": "auto"}),
        (
            {"tools": TOOLS, "tool_choice": ToolChoice("named", "now")},
            "generation_config",
            {"tool_choice": {"allowed_tools": {"mode": "any", "tools": ["now"]}}},
        ),
        ({"tools": TOOLS, "tool_choice": ToolChoice("required")}, "generation_config", {"tool_choice": "any"}),
        ({"tools": (Tool("x", strict=True),)}, "generation_config", {"tool_choice": "validated"}),
        (
            {"answer_format": AnswerFormat("schema", schema=WEATHER)},
            "response_format",
            {"type": "text", "mime_type": "application/json", "schema": WEATHER},
        ),
    ],
)
def test_what_is_asked_of_an_interactions_answer_is_written(more: dict[str, Any], member: str, value: Any) -> None:
    assert write(GEMINI_INTERACTIONS, said("Hi", **more))[member] == value


def test_a_tools_media_are_content_of_its_result() -> None:
    body = write(GEMINI_INTERACTIONS, said(Result("c9", (Media("image", url="https://h/a.png", detail="low"),))))
    image = {"type": "image", "uri": "https://h/a.png", "mime_type": "image/png", "resolution": "low"}
    assert body["input"] == [{"type": "function_result", "call_id": "c9", "result": [image]}]


def test_a_thoughts_signature_is_given_however_it_comes() -> None:
    step = {"type": "thought", "summary": [{"type": "text", "text": "Hm."}], "signature": "s1"}
    delta = {"type": "thought_signature", "signature": "s2"}
    chunks, _ = decode(
        "gemini/v1beta/interactions",
        sse(
            {"event_type": "step.start", "index": 0, "step": step},
            {"event_type": "step.start", "index": 1, "step": {"type": "thought"}},
            {"event_type": "step.delta", "index": 1, "delta": delta},
        ),
    )
    assert chunks == [Chunk(reasoning="Hm."), Chunk(signature="s1"), Chunk(signature="s2")]
